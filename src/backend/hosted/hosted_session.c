#include "backend/hosted/hosted_session_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/secret.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "realtime:"

enum { JITTER_PARTS = 5 /* a pause is up to a fifth longer */ };

const struct hosted_times hosted_usual_times = {
    .heartbeat_ms = 25000, .reply_ms = 10000, .confirm_ms = 20000, .step_ms = 1000, .track_ms = 7000
};

/* ---- new and free ---- */

struct hosted_session *hosted_session_new(const struct hosted_session_config *c)
{
    struct hosted_session *s = xcalloc(1, sizeof(*s));

    s->config = *c;
    if (!s->config.times)
        s->config.times = &hosted_usual_times;
    s->abbr = xstrdup(c->abbr);
    s->presence = hosted_presence_new();
    TAILQ_INIT(&s->channels);
    STAILQ_INIT(&s->speech);
    return s;
}

static void channel_free(struct hosted_session *s, struct hosted_channel *ch)
{
    TAILQ_REMOVE(&s->channels, ch, links);
    s->n_channels--;
    free(ch->topic);
    free(ch->table);
    free(ch->filter);
    free(ch);
}

static void spoken_free(struct hosted_session *s, struct hosted_spoken *b)
{
    STAILQ_REMOVE_HEAD(&s->speech, links);
    s->n_speech--;
    s->n_speech_bytes -= strlen(b->payload);
    free(b->topic);
    free(b->event);
    free(b->payload);
    free(b);
}

static void drop_token(struct hosted_session *s)
{
    if (s->token)
        secret_wipe(s->token, strlen(s->token));
    free(s->token);
    s->token = NULL;
}

struct hosted_session *hosted_session_free(struct hosted_session *s)
{
    if (!s)
        return NULL;
    while (!TAILQ_EMPTY(&s->channels))
        channel_free(s, TAILQ_FIRST(&s->channels));
    while (!STAILQ_EMPTY(&s->speech))
        spoken_free(s, STAILQ_FIRST(&s->speech));
    hosted_presence_free(s->presence);
    drop_token(s);
    free(s->record);
    free(s->machine_id);
    free(s->abbr);
    free(s);
    return NULL;
}

/* ---- states ---- */

void hosted_session_changed(struct hosted_session *s)
{
    s->n_states++;
}

uint64_t hosted_session_n_states(struct hosted_session *s)
{
    return s->n_states;
}

void hosted_fault_set(struct hosted_fault *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    f->wall_ms = clock_wall_ms();
}

/* 1, 2, 5, then 10 steps, each with jitter: the machines of a fleet do not come back in one moment. */
static int64_t pause_after(const struct hosted_session *s, unsigned n_failures)
{
    static const int64_t steps[] = { 1, 2, 5, 10 };
    int64_t ms = s->config.times->step_ms * steps[MIN(MAX(n_failures, 1U), (unsigned)ARRAY_SIZE(steps)) - 1];
    uint32_t chance;

    random_bytes(&chance, sizeof(chance));
    return ms + (int64_t)(chance % (uint64_t)(ms / JITTER_PARTS + 1));
}

void hosted_channel_fail(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, const char *why)
{
    ch->step = HOSTED_IDLE;
    ch->has_failed = true;
    ch->due_ms = now_ms + pause_after(s, ++ch->n_failures);
    hosted_fault_set(&ch->fault, "%s", why);
    if (ch->kind != HOSTED_TABLE)
        s->fault = ch->fault;
    hosted_session_changed(s);
}

void hosted_channel_live(struct hosted_session *s, struct hosted_channel *ch)
{
    ch->step = HOSTED_JOINED;
    ch->has_failed = false;
    ch->n_failures = 0;
    hosted_session_changed(s);
}

/* ---- what is wanted ---- */

static struct hosted_channel *find_topic(struct hosted_session *s, const char *topic)
{
    struct hosted_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, links)
    if (strcmp(ch->topic, topic) == 0)
        return ch;
    return NULL;
}

static int check_room(struct hosted_session *s, const char *topic, struct err *e)
{
    if (strlen(topic) > LIMIT_TOPIC_BYTES)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "The name of a realtime channel must be at most %zu bytes",
                       LIMIT_TOPIC_BYTES - strlen(PREFIX));
    if (s->n_channels >= LIMIT_HOSTED_CHANNELS)
        return err_set(e, -ENOSPC, "TOO_MANY_SUBSCRIPTIONS",
                       "One connection to the hosted backend may have at most %d tables and channels",
                       LIMIT_HOSTED_CHANNELS);
    return 0;
}

/* 0: *ret is the channel; it was there already when its topic is as_wanted. */
static int want(struct hosted_session *s, enum hosted_kind kind, const char *topic, bool is_private,
                struct hosted_channel **ret, struct err *e)
{
    struct hosted_channel *ch = find_topic(s, topic);
    int r;

    if (ch && (ch->kind != kind || ch->is_private != is_private) && ch->is_wanted)
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       "The realtime channel %.80s serves something else already, or is private for one and public for "
                       "the other",
                       topic + strlen(PREFIX));
    r = ch ? 0 : check_room(s, topic, e);
    if (r < 0)
        return r;
    if (!ch) {
        ch = xcalloc(1, sizeof(*ch));
        ch->topic = xstrdup(topic);
        ch->lag_ms = -1;
        TAILQ_INSERT_TAIL(&s->channels, ch, links);
        s->n_channels++;
    }
    if (!ch->is_wanted) { /* new, or left and not yet gone */
        ch->step = HOSTED_IDLE;
        ch->due_ms = 0;
        hosted_session_changed(s);
    }
    ch->kind = kind;
    ch->is_private = is_private;
    ch->is_wanted = true;
    *ret = ch;
    return 0;
}

/* The channel of a table, with a part of its own for each filter. */
static char *topic_of(struct hosted_session *s, struct arena *a, const char *table, const char *filter)
{
    if (!filter)
        return arena_printf(a, PREFIX "%s:%s", s->abbr, table);
    return arena_printf(a, PREFIX "%s:%s:%016" PRIx64, s->abbr, table, hash_fast(slice_of(filter)));
}

int hosted_session_watch(struct hosted_session *s, const char *table, const char *filter, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_channel *ch = NULL;
    int r;

    if (!*table || (filter && strlen(filter) > LIMIT_FILTER_BYTES))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "A table must have a name, and its filter at most %d bytes",
                       LIMIT_FILTER_BYTES);
    r = want(s, HOSTED_TABLE, topic_of(s, a, table, filter), false, &ch, e);
    if (r < 0)
        return r;
    assert(ch);
    if (!ch->table) {
        ch->table = xstrdup(table);
        ch->filter = filter ? xstrdup(filter) : NULL;
    }
    return 0;
}

static void forget(struct hosted_session *s, const char *topic)
{
    struct hosted_channel *ch = find_topic(s, topic);

    if (!ch)
        return;
    ch->is_wanted = false;
    hosted_session_changed(s);
}

void hosted_session_unwatch(struct hosted_session *s, const char *table, const char *filter)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    forget(s, topic_of(s, a, table, filter));
}

int hosted_session_listen(struct hosted_session *s, const char *topic, bool is_private, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_channel *ch = NULL;

    if (!*topic)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "A realtime channel must have a name");
    return want(s, HOSTED_TOPIC, arena_printf(a, PREFIX "%s", topic), is_private, &ch, e);
}

void hosted_session_unlisten(struct hosted_session *s, const char *topic)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    forget(s, arena_printf(a, PREFIX "%s", topic));
}

bool hosted_session_is_wanted(struct hosted_session *s)
{
    struct hosted_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, links)
    if (ch->is_wanted)
        return true;
    return false;
}

/* ---- presence ---- */

static struct hosted_channel *presence_channel(struct hosted_session *s)
{
    struct hosted_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, links)
    if (ch->kind == HOSTED_PRESENCE && ch->is_wanted)
        return ch;
    return NULL;
}

/* The key of a presence is said when its channel is joined. */
static void set_machine(struct hosted_session *s, struct hosted_channel *ch, const char *machine_id)
{
    if (s->machine_id && strcmp(s->machine_id, machine_id) == 0)
        return;
    free(s->machine_id);
    s->machine_id = xstrdup(machine_id);
    ch->step = HOSTED_IDLE;
    ch->due_ms = 0;
}

int hosted_session_track(struct hosted_session *s, const struct backend_presence *p, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_channel *ch = NULL;
    char *record = hosted_presence_record(p);
    int r;

    if (!record)
        return err_set(e, -E2BIG, "TOO_LARGE", "A presence record may have at most %d bytes as JSON",
                       LIMIT_PRESENCE_BYTES);
    r = want(s, HOSTED_PRESENCE, arena_printf(a, PREFIX "%s_presence", s->abbr), false, &ch, e);
    if (r < 0 || (s->record && strcmp(s->record, record) == 0)) {
        free(record);
        return r;
    }
    assert(ch);
    set_machine(s, ch, p->machine_id);
    free(s->record);
    s->record = record;
    s->is_tracked = s->is_track_sent = s->must_untrack = false;
    return 0;
}

void hosted_session_untrack(struct hosted_session *s)
{
    if (!s->record)
        return;
    free(s->record);
    s->record = NULL;
    s->must_untrack = s->is_tracked || s->is_track_sent;
    s->is_tracked = s->is_track_sent = false;
}

int hosted_session_presences(struct hosted_session *s, struct arena *a, struct backend_presences *ret, struct err *e)
{
    if (!s->is_connected || !s->is_presence_known)
        return err_set(e, -EAGAIN, "STORE_UNAVAILABLE",
                       "Which machines are there is not known now: the presence channel of the hosted backend is not "
                       "joined%s%s",
                       s->fault.text[0] ? ": " : "", s->fault.text);
    hosted_presence_list(s->presence, a, ret);
    return 0;
}

/* ---- broadcasts ---- */

int hosted_session_broadcast(struct hosted_session *s, const struct hosted_broadcast *b, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_channel *ch = find_topic(s, arena_printf(a, PREFIX "%s", b->topic));
    size_t n = strlen(b->payload_json);
    struct hosted_spoken *spoken;

    if (n > LIMIT_BROADCAST_BYTES)
        return err_set(e, -E2BIG, "TOO_LARGE", "A broadcast may have at most %d bytes as JSON", LIMIT_BROADCAST_BYTES);
    if (!s->is_connected || !ch || !ch->is_wanted || ch->step != HOSTED_JOINED || ch->kind != HOSTED_TOPIC ||
        ch->is_private != b->is_private)
        return -ENOTCONN;
    if (s->n_speech >= LIMIT_BROADCASTS_WAITING || s->n_speech_bytes + n > LIMIT_SOCKET_WAITING / 2)
        return err_set(e, -EAGAIN, "OVERLOADED", "Too many broadcasts wait to be sent; try again in a moment.");
    spoken = xcalloc(1, sizeof(*spoken));
    spoken->topic = xstrdup(ch->topic);
    spoken->event = xstrdup(b->event);
    spoken->payload = xstrdup(b->payload_json);
    STAILQ_INSERT_TAIL(&s->speech, spoken, links);
    s->n_speech++;
    s->n_speech_bytes += n;
    return 0;
}

/* ---- the connection ---- */

void hosted_session_begin(struct hosted_session *s, int64_t now_ms)
{
    struct hosted_channel *ch;

    s->is_connected = true;
    s->n_connects++;
    s->beat_ref[0] = '\0';
    s->beat_ms = now_ms + s->config.times->heartbeat_ms;
    s->track_due_ms = 0;
    TAILQ_FOREACH(ch, &s->channels, links)
    {
        ch->step = HOSTED_IDLE;
        ch->due_ms = now_ms;
        ch->n_failures = 0;
    }
    hosted_session_changed(s);
}

void hosted_session_end(struct hosted_session *s, int64_t now_ms, const char *why)
{
    struct hosted_channel *ch;

    s->is_connected = s->is_presence_known = s->is_tracked = s->is_track_sent = s->must_untrack = false;
    s->n_lost++;
    hosted_fault_set(&s->fault, "%s", why);
    hosted_presence_clear(s->presence);
    TAILQ_FOREACH(ch, &s->channels, links)
    {
        ch->step = HOSTED_IDLE;
        ch->has_failed = true;
        ch->is_at_server = false;
    }
    hosted_session_changed(s);
}

int64_t hosted_session_pause_ms(struct hosted_session *s)
{
    return pause_after(s, s->n_lost);
}

void hosted_session_use_token(struct hosted_session *s, const char *token)
{
    struct hosted_channel *ch;
    struct err ignored;

    if (token ? s->token && strcmp(token, s->token) == 0 : !s->token)
        return;
    drop_token(s);
    s->token = token ? xstrdup(token) : NULL;
    err_init(&ignored);
    TAILQ_FOREACH(ch, &s->channels, links)
    if (token && s->is_connected && ch->is_wanted && ch->is_at_server)
        (void)!hosted_send_token(s, ch, &ignored); /* a full queue ends the connection with the next heartbeat */
}

bool hosted_session_needs_token(struct hosted_session *s)
{
    bool needs = s->needs_token;

    s->needs_token = false;
    return needs;
}

/* ---- what is due ---- */

static int join(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, struct err *e)
{
    ch->n_retries += ch->has_failed;
    ch->step = HOSTED_JOINING;
    ch->is_at_server = true;
    ch->due_ms = now_ms + s->config.times->reply_ms;
    hosted_session_changed(s);
    return hosted_send_join(s, ch, now_ms, e);
}

static int leave(struct hosted_session *s, struct hosted_channel *ch, struct err *e)
{
    int r = ch->is_at_server ? hosted_send_leave(s, ch, e) : 0;

    if (ch->kind == HOSTED_PRESENCE)
        s->is_presence_known = false;
    channel_free(s, ch);
    hosted_session_changed(s);
    return r;
}

static int tick_channel(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, struct err *e)
{
    if (!ch->is_wanted)
        return leave(s, ch, e);
    if (ch->step == HOSTED_JOINED || now_ms < ch->due_ms)
        return 0;
    if (ch->step == HOSTED_IDLE)
        return join(s, ch, now_ms, e);
    hosted_channel_fail(s, ch, now_ms,
                        ch->step == HOSTED_JOINING ? "The server did not reply to the subscription in time."
                                                   : "The server did not say in time that changes arrive.");
    return 0;
}

static int tick_presence(struct hosted_session *s, int64_t now_ms, struct err *e)
{
    struct hosted_channel *ch = presence_channel(s);

    if (!ch || ch->step != HOSTED_JOINED || now_ms < s->track_due_ms ||
        !(s->must_untrack || (s->record && !s->is_track_sent)))
        return 0;
    s->is_track_sent = s->record;
    s->must_untrack = false;
    s->track_due_ms = now_ms + s->config.times->track_ms;
    return hosted_send_track(s, ch, e);
}

static int tick_speech(struct hosted_session *s, struct err *e)
{
    int r = 0;

    while (r == 0 && !STAILQ_EMPTY(&s->speech)) {
        struct hosted_spoken *b = STAILQ_FIRST(&s->speech);
        struct hosted_channel *ch = find_topic(s, b->topic);

        if (ch && ch->is_at_server)
            r = hosted_send_broadcast(s, ch, b, e);
        if (r != -EAGAIN) /* the socket is full: the rest goes out later */
            spoken_free(s, b);
    }
    return r == -EAGAIN ? 0 : r;
}

static int tick_heartbeat(struct hosted_session *s, int64_t now_ms, struct err *e)
{
    if (now_ms < s->beat_ms)
        return 0;
    if (s->beat_ref[0])
        return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The server left a heartbeat without a reply.");
    s->beat_ms = now_ms + s->config.times->reply_ms;
    return hosted_send_heartbeat(s, e);
}

int hosted_session_tick(struct hosted_session *s, int64_t now_ms, struct err *e)
{
    struct hosted_channel *ch, *next;
    int r = 0;

    for (ch = TAILQ_FIRST(&s->channels); r == 0 && ch; ch = next) {
        next = TAILQ_NEXT(ch, links);
        r = tick_channel(s, ch, now_ms, e);
    }
    if (r == 0)
        r = tick_presence(s, now_ms, e);
    if (r == 0)
        r = tick_speech(s, e);
    return r == 0 ? tick_heartbeat(s, now_ms, e) : r;
}

int64_t hosted_session_due_ms(struct hosted_session *s, int64_t now_ms)
{
    int64_t due_ms = s->beat_ms;

    if (!STAILQ_EMPTY(&s->speech))
        due_ms = MIN(due_ms, now_ms + s->config.times->step_ms / 10);
    for (const struct hosted_channel *ch = TAILQ_FIRST(&s->channels); ch; ch = TAILQ_NEXT(ch, links)) {
        if (!ch->is_wanted)
            return now_ms;
        if (ch->step != HOSTED_JOINED)
            due_ms = MIN(due_ms, ch->due_ms);
        else if (ch->kind == HOSTED_PRESENCE && (s->must_untrack || (s->record && !s->is_track_sent)))
            due_ms = MIN(due_ms, s->track_due_ms);
    }
    return due_ms;
}
