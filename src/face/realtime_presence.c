/* Presence: what the members of a channel say of themselves, and who is told. */
#include "face/realtime_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <strings.h>

enum { MS_A_SECOND = 1000, META_BYTES = 64 };

/* "1f": any text that no other meta has. */
static void add_meta(struct buf *out, const struct rt_meta *meta, uint64_t before)
{
    buf_printf(out, "{\"phx_ref\":\"%llx\"", (unsigned long long)meta->ref);
    if (before)
        buf_printf(out, ",\"phx_ref_prev\":\"%llx\"", (unsigned long long)before);
    if (meta->fields[0])
        buf_printf(out, ",%s", meta->fields);
    buf_add_char(out, '}');
}

/* {"<key>":{"metas":[...]}} */
static void add_one(struct buf *out, const struct rt_meta *meta, uint64_t before)
{
    json_quote(out, slice_of(meta->key));
    buf_add_str(out, ":{\"metas\":[");
    add_meta(out, meta, before);
    buf_add_str(out, "]}");
}

static void send_to(struct rt_channel *ch, const char *event, struct slice payload)
{
    const struct rt_message m = { .topic = slice_of(ch->topic->name), .event = slice_of(event), .text = payload };

    if (ch->has_presence)
        rt_send(ch->socket, &m);
}

/* Machines are shown to those who have signed in. */
static bool may_see(const struct rt_channel *ch, const struct rt_meta *meta)
{
    return !meta || meta->channel || ch->caller.role != FACE_ANON;
}

/* before: the meta that `joined` replaces, 0: none. */
static void send_diff(struct rt_topic *t, const struct rt_meta *joined, uint64_t before, const struct rt_meta *left)
{
    struct rt_channel *ch;
    struct buf diff;

    buf_init(&diff, LIMIT_SOCKET_WAITING);
    buf_add_str(&diff, "{\"joins\":{");
    if (joined)
        add_one(&diff, joined, before);
    buf_add_str(&diff, "},\"leaves\":{");
    if (left)
        add_one(&diff, left, 0);
    buf_add_str(&diff, "}}");
    TAILQ_FOREACH(ch, &t->members, of_topic)
    if (may_see(ch, joined) && may_see(ch, left))
        send_to(ch, "presence_diff", buf_slice(&diff));
    buf_clear(&diff);
}

/* ---- the state, for a member that joins ---- */

/* Is it the first meta of its key? Members of one key are told together. */
static bool is_first(const struct rt_channel *ch, const struct rt_meta *meta)
{
    const struct rt_meta *m = NULL;

    TAILQ_FOREACH(m, &ch->topic->present, links)
    if (may_see(ch, m) && strcmp(m->key, meta->key) == 0)
        return m == meta;
    return true;
}

static void add_key(struct buf *out, const struct rt_channel *ch, const struct rt_meta *first)
{
    const struct rt_meta *m = NULL;
    bool has_one = false;

    json_quote(out, slice_of(first->key));
    buf_add_str(out, ":{\"metas\":[");
    TAILQ_FOREACH(m, &ch->topic->present, links)
    {
        if (!may_see(ch, m) || strcmp(m->key, first->key) != 0)
            continue;
        if (has_one)
            buf_add_char(out, ',');
        add_meta(out, m, 0);
        has_one = true;
    }
    buf_add_str(out, "]}");
}

void rt_presence_state(struct rt_channel *ch)
{
    const struct rt_meta *m = NULL;
    struct buf state;
    bool has_one = false;

    buf_init(&state, LIMIT_SOCKET_WAITING);
    buf_add_char(&state, '{');
    TAILQ_FOREACH(m, &ch->topic->present, links)
    {
        if (!may_see(ch, m) || !is_first(ch, m))
            continue;
        if (has_one)
            buf_add_char(&state, ',');
        add_key(&state, ch, m);
        has_one = true;
    }
    buf_add_char(&state, '}');
    send_to(ch, "presence_state", buf_slice(&state));
    buf_clear(&state);
}

/* ---- track and untrack ---- */

static struct rt_meta *meta_of(const struct rt_channel *ch)
{
    struct rt_meta *m;

    TAILQ_FOREACH(m, &ch->topic->present, links)
    if (m->channel == ch)
        return m;
    return NULL;
}

/* At most this many bytes of presence_state; key and fields may be escaped. */
static size_t weight_of(const char *key, const char *fields)
{
    return 6 * strlen(key) + strlen(fields) + META_BYTES;
}

static void meta_free(struct rt_topic *t, struct rt_meta *m)
{
    TAILQ_REMOVE(&t->present, m, links);
    t->n_present_bytes -= weight_of(m->key, m->fields);
    free(m->key);
    free(m->fields);
    free(m);
}

/* The backend learns of machines that clients track. */
static void note_change(const struct rt_channel *ch)
{
    if (rt_is_of_machines(ch->socket->rt, ch->topic))
        rt_machines_tick(ch->socket->rt, true);
}

void rt_presence_gone(struct rt_channel *ch)
{
    struct rt_meta *m = meta_of(ch);

    if (!m)
        return;
    send_diff(ch->topic, NULL, 0, m);
    meta_free(ch->topic, m);
    note_change(ch);
}

void rt_presence_clear(struct rt_topic *t)
{
    while (!TAILQ_EMPTY(&t->present))
        meta_free(t, TAILQ_FIRST(&t->present));
}

void rt_presence_hide(struct rt_topic *t, struct rt_meta *m)
{
    send_diff(t, NULL, 0, m);
    meta_free(t, m);
}

static struct rt_meta *add_new(struct realtime *rt, struct rt_topic *t, const char *key, char *fields)
{
    struct rt_meta *fresh = xcalloc(1, sizeof(*fresh));

    fresh->key = xstrdup(key);
    fresh->fields = fields;
    fresh->ref = ++rt->last_meta;
    TAILQ_INSERT_TAIL(&t->present, fresh, links);
    t->n_present_bytes += weight_of(key, fields);
    return fresh;
}

/* `old` is replaced, NULL: none. */
static void announce(struct rt_topic *t, struct rt_meta *fresh, struct rt_meta *old)
{
    send_diff(t, fresh, old ? old->ref : 0, old);
    if (old)
        meta_free(t, old);
}

void rt_presence_show(struct realtime *rt, struct rt_topic *t, const char *key, char *fields)
{
    struct rt_meta *old = TAILQ_FIRST(&t->present);

    while (old && (old->channel || strcmp(old->key, key) != 0))
        old = TAILQ_NEXT(old, links);
    announce(t, add_new(rt, t, key, fields), old);
}

/* The members of an object without its braces. Members that the protocol itself writes are left out. */
static char *fields_of(struct json_value payload)
{
    struct json_value member;
    struct slice name;
    struct buf out;

    buf_init(&out, LIMIT_PRESENCE_BYTES);
    for (struct json_iter it = json_iter(payload); json_next(&it, &name, &member);) {
        if (slice_eq_str(name, "phx_ref") || slice_eq_str(name, "phx_ref_prev"))
            continue;
        if (out.n > 0)
            buf_add_char(&out, ',');
        json_quote(&out, name);
        buf_add_char(&out, ':');
        json_print(&out, member);
    }
    if (out.overflowed) {
        buf_clear(&out);
        return NULL;
    }
    return buf_take(&out);
}

static void track(struct rt_channel *ch, const struct rt_message *m, char *fields)
{
    struct rt_meta *old = meta_of(ch), *fresh;
    size_t weight = weight_of(ch->presence_key, fields);

    if (ch->topic->n_present_bytes + weight > LIMIT_PRESENCE_TOPIC_BYTES) {
        rt_reply_error(ch->socket, m, "The members of this channel track too much together");
        free(fields);
        return;
    }
    rt_reply(ch->socket, m, true, SLICE_LIT("{}"));
    if (old && strcmp(old->fields, fields) == 0) {
        free(fields);
        return;
    }
    fresh = add_new(ch->socket->rt, ch->topic, ch->presence_key, fields);
    fresh->channel = ch;
    announce(ch->topic, fresh, old);
    note_change(ch);
}

static void take_track(struct rt_channel *ch, const struct rt_message *m)
{
    struct json_value payload = json_get(m->payload, "payload");
    bool is_map = json_type(payload) == JSON_OBJECT || json_is_absent(payload);
    char *fields = is_map ? fields_of(payload) : NULL;

    if (!is_map)
        rt_reply_error(ch->socket, m, "Presence track payload must be a map");
    else if (!fields)
        rt_reply_error(ch->socket, m, "Presence track payload must be at most %d bytes", LIMIT_PRESENCE_BYTES);
    else
        track(ch, m, fields);
}

/* Each call is told to every member: too many of them close the channel. */
static bool is_too_often(struct rt_channel *ch)
{
    int64_t now_ms = clock_mono_ms();

    if (now_ms - ch->presence_since_ms >= LIMIT_PRESENCE_WINDOW_S * MS_A_SECOND) {
        ch->presence_since_ms = now_ms;
        ch->n_presence_calls = 0;
    }
    return ++ch->n_presence_calls > LIMIT_PRESENCE_CALLS;
}

static bool is_event(struct slice event, const char *name)
{
    return event.n == strlen(name) && strncasecmp(event.p, name, event.n) == 0;
}

void rt_presence_message(struct rt_channel *ch, const struct rt_message *m)
{
    struct slice event = json_string(json_get(m->payload, "event"));

    if (is_too_often(ch)) {
        rt_channel_fail(ch, "Client presence rate limit exceeded");
        return;
    }
    if (is_event(event, "track")) {
        bool had_presence = ch->has_presence;

        ch->has_presence = true;
        if (!had_presence)
            rt_presence_state(ch);
        take_track(ch, m);
    } else if (is_event(event, "untrack")) {
        rt_reply(ch->socket, m, true, SLICE_LIT("{}"));
        rt_presence_gone(ch);
    } else {
        rt_reply_error(ch->socket, m, "Presence event must be track or untrack");
    }
}
