/* The thread that follows the changes and delivers to the receivers. */
#include "backend/postgres/postgres_broadcast.h"
#include "backend/postgres/postgres_follow.h"
#include "backend/postgres/postgres_session.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"

#include <poll.h>

enum {
    DEFAULT_POLL_MS = 50,
    PUBLISHED_MS = 10000,
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 5000,
    PAUSE_STEP_MS = 10,
    PRUNE_EVERY_MS = 10000,
    PRUNE_SOON_MS = 100
};

/* --- position and status --- */

void follow_set_position(struct postgres_events *ev, char *position, bool is_new_reader)
{
    pthread_mutex_lock(&ev->lock);
    free(ev->position);
    ev->position = position;
    ev->generation += is_new_reader;
    pthread_mutex_unlock(&ev->lock);
}

bool follow_take_unsure(struct postgres_events *ev)
{
    bool is_unsure;

    pthread_mutex_lock(&ev->lock);
    is_unsure = ev->is_unsure;
    ev->is_unsure = false;
    pthread_mutex_unlock(&ev->lock);
    return is_unsure;
}

static void set_state(struct postgres_events *ev, enum postgres_events_state state)
{
    pthread_mutex_lock(&ev->lock);
    ev->status.state = state;
    ev->status.n_connects += state == POSTGRES_EVENTS_LIVE;
    pthread_cond_broadcast(&ev->changed);
    pthread_mutex_unlock(&ev->lock);
}

static void note_failure(struct postgres_events *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->n_failures++;
    pthread_cond_broadcast(&ev->changed);
    pthread_mutex_unlock(&ev->lock);
}

/* Until the connection hears notifications, or cannot be made. */
static void wait_for_connection(struct postgres_events *ev)
{
    int64_t until_us = clock_mono_us() + (int64_t)FOLLOW_OPERATION_MS * 1000;
    uint64_t n_failures;

    if (pthread_equal(pthread_self(), ev->thread))
        return; /* a callback */
    pthread_mutex_lock(&ev->lock);
    n_failures = ev->n_failures;
    while (ev->status.state != POSTGRES_EVENTS_LIVE && ev->n_failures == n_failures &&
           cond_wait_until(&ev->changed, &ev->lock, until_us))
        ;
    pthread_mutex_unlock(&ev->lock);
}

/* A later connection begins with a gap, so nobody has to wait for it. */
static bool has_failed(struct postgres_events *ev)
{
    bool is_so;

    pthread_mutex_lock(&ev->lock);
    is_so = ev->status.state != POSTGRES_EVENTS_LIVE && ev->n_failures > 0;
    pthread_mutex_unlock(&ev->lock);
    return is_so;
}

struct postgres_events_status postgres_events_status(struct postgres_events *ev)
{
    struct postgres_events_status status;

    pthread_mutex_lock(&ev->lock);
    status = ev->status;
    pthread_mutex_unlock(&ev->lock);
    return status;
}

struct net_wait follow_wait(struct postgres_events *ev, int64_t ms)
{
    return net_wait_of(ms, NULL, &ev->is_stopping);
}

bool follow_has_subscriber(struct postgres_events *ev)
{
    bool is_so;

    receivers_begin(ev->receivers);
    is_so = receivers_has_subscriber(ev->receivers);
    receivers_end(ev->receivers);
    return is_so;
}

/* --- delivery, between receivers_begin() and receivers_end() --- */

/* Numbers rise in the order of the reports; those of the outbox do not. */
void follow_deliver(void *arg, const struct backend_event *event)
{
    struct follower *f = arg;
    struct backend_event numbered = *event;

    f->n_delivered++;
    pthread_mutex_lock(&f->ev->lock);
    numbered.sequence = ++f->ev->status.n_events;
    pthread_mutex_unlock(&f->ev->lock);
    receivers_event(f->ev->receivers, &numbered);
}

void follow_note_gap(void *arg)
{
    struct follower *f = arg;

    f->n_delivered++;
    f->has_gap = true;
}

void follow_deliver_gap(struct follower *f)
{
    if (!f->has_gap)
        return;
    f->has_gap = false;
    pthread_mutex_lock(&f->ev->lock);
    f->ev->status.n_gaps++;
    pthread_mutex_unlock(&f->ev->lock);
    receivers_gap(f->ev->receivers);
}

static int prune(struct follower *f, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    bool is_more = false;
    int r;

    if (clock_mono_ms() < f->next_prune_ms)
        return 0;
    r = postgres_outbox_prune(f->outbox, &wait, &is_more, e);
    f->next_prune_ms = clock_mono_ms() + (is_more ? PRUNE_SOON_MS : PRUNE_EVERY_MS);
    return r;
}

/* --- notifications --- */

static void deliver_broadcast(struct postgres_events *ev, const char *text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_broadcast broadcast;

    if (!postgres_broadcast_read(a, text, &broadcast))
        return;
    receivers_begin(ev->receivers);
    receivers_broadcast(ev->receivers, broadcast.channel, broadcast.event, broadcast.payload);
    receivers_end(ev->receivers);
}

static void take_notice(void *arg, const char *channel, const char *payload)
{
    struct follower *f = arg;

    if (strcmp(channel, f->ev->broadcasts) == 0)
        deliver_broadcast(f->ev, payload);
    if (strcmp(channel, f->ev->changes) != 0)
        return;
    f->is_notified = true;
    f->has_gap = f->has_gap || strcmp(payload, "lost") == 0;
}

static int wait_for_input(struct follower *f, int64_t ms, struct err *e)
{
    struct pg_link *const links[] = { f->link, f->stream_link };
    const struct net_wait wait = follow_wait(f->ev, ms);
    int r;

    if (pg_link_take_notices(f->link, take_notice, f) > 0 || ms == 0)
        return 0;
    pg_link_settle(f->link);
    r = pg_link_await(links, f->stream_link ? 2 : 1, &wait, e);
    if (r > 0)
        pg_link_take_notices(f->link, take_notice, f);
    return MIN(r, 0);
}

/* --- the source of the changes --- */

/* Whether that is news. */
static bool set_why(struct postgres_events *ev, const char *why)
{
    bool is_new;

    pthread_mutex_lock(&ev->lock);
    is_new = strcmp(ev->status.why, why) != 0;
    snprintf(ev->status.why, sizeof(ev->status.why), "%s", why);
    pthread_mutex_unlock(&ev->lock);
    return is_new;
}

static void warn_unpublished(struct postgres_events *ev, const char *note)
{
    receivers_fault(ev->receivers, note);
    log_warn("backend", NULL, "changes of a table are found by the sweep only: %s", LOG_Q(note));
}

bool follow_note_unpublished(struct follower *f, const char *note)
{
    bool is_new = set_why(f->ev, note);

    if (is_new && *note)
        warn_unpublished(f->ev, note);
    else if (is_new)
        log_info("backend", NULL, "every table with work is in the publication %s_events again", f->ev->abbr);
    return is_new;
}

/* Told once for each change of source or reason. */
static void set_source(struct follower *f, const struct follow_source *source, const char *why)
{
    struct postgres_events_status *status = &f->ev->status;
    bool is_new;

    f->source = source;
    pthread_mutex_lock(&f->ev->lock);
    is_new = status->n_connects == 0 || status->is_logical != source->is_logical || strcmp(status->why, why) != 0;
    status->is_logical = source->is_logical;
    snprintf(status->why, sizeof(status->why), "%s", why);
    pthread_mutex_unlock(&f->ev->lock);
    if (is_new && source->is_logical && *why)
        warn_unpublished(f->ev, why);
    else if (is_new)
        log_info("backend", NULL, "the events of PostgreSQL come from %s%s%s",
                 source->is_logical ? "its logical stream" : "the outbox", *why ? ": " : "", *why ? LOG_Q(why) : "");
}

int follow_find_lack(struct follower *f, struct arena *a, const char **ret_lack, const char **ret_note, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    const char *table = NULL;
    int r = postgres_logical_lack(f->link, f->ev->abbr, &wait, a, ret_lack, &table, e);

    *ret_note = "";
    if (r < 0 || !table)
        return r;
    table = arena_printf(a,
                         "the publication %1$s_events lacks the whole rows of %2$s: ALTER TABLE %2$s REPLICA IDENTITY"
                         " FULL; ALTER PUBLICATION \"%1$s_events\" ADD TABLE %2$s",
                         f->ev->abbr, table);
    if (f->ev->config.mode == POSTGRES_EVENTS_AUTO && !*ret_lack)
        *ret_lack = table;
    *ret_note = table;
    return 0;
}

static int begin_logical(struct follower *f, struct arena *a, const char **ret_lack, struct err *e)
{
    const char *note = "";
    struct err why = { 0 };
    int r = follow_find_lack(f, a, ret_lack, &note, e);

    if (r < 0 || *ret_lack)
        return r;
    r = follow_logical.begin(f, &why);
    if (r < 0) {
        follow_logical.end(f);
        *ret_lack = arena_strdup(a, why.text);
        return 0;
    }
    set_source(f, &follow_logical, note);
    return 0;
}

static int begin_outbox(struct follower *f, const char *why, struct err *e)
{
    int r = follow_outbox.begin(f, e);

    if (r == 0)
        set_source(f, &follow_outbox, why);
    return r;
}

/* A setting that asks for what the server does not give is told aloud, once for each reason. */
static int refuse_lack(struct postgres_events *ev, const char *lack, struct err *e)
{
    if (set_why(ev, lack))
        log_warn("backend", NULL, "backend.events is logical, but PostgreSQL gives no stream: %s", LOG_Q(lack));
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", lack);
}

static int begin_source(struct follower *f, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *lack = NULL;
    int r = f->ev->config.mode == POSTGRES_EVENTS_OUTBOX ? 0 : begin_logical(f, a, &lack, e);

    if (r < 0 || f->source)
        return r;
    if (f->ev->config.mode == POSTGRES_EVENTS_LOGICAL)
        return refuse_lack(f->ev, lack, e);
    return begin_outbox(f, lack ? lack : "", e);
}

/* --- one connection --- */

static int listen_to(struct follower *f, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    const struct pg_statement listen = {
        .sql = arena_printf(a, "LISTEN \"%s\"; LISTEN \"%s\"", f->ev->changes, f->ev->broadcasts), .is_script = true
    };

    return pg_link_run(f->link, &wait, &listen, e);
}

/* Ends with an error, or when the service stops. */
static int follow(struct follower *f, struct err *e)
{
    int64_t wait_ms = 0;
    int r = listen_to(f, e);

    if (r == 0)
        r = begin_source(f, e);
    if (r == 0)
        set_state(f->ev, POSTGRES_EVENTS_LIVE);
    while (r == 0 && !atomic_load(&f->ev->is_stopping)) {
        r = f->source->round(f, &wait_ms, e);
        if (r == 0)
            r = prune(f, e);
        if (r == 0)
            r = wait_for_input(f, wait_ms, e);
    }
    return r;
}

/* Ends early when the service stops. */
static void pause_for(struct postgres_events *ev, int64_t ms)
{
    for (int64_t until_ms = clock_mono_ms() + ms; !atomic_load(&ev->is_stopping) && clock_mono_ms() < until_ms;)
        (void)!poll(NULL, 0, PAUSE_STEP_MS);
}

/* *ret_was_live: the connection was made. */
static int follow_once(struct postgres_events *ev, bool has_gap, bool *ret_was_live, struct err *e)
{
    struct follower f = { .ev = ev, .has_gap = has_gap, .next_prune_ms = clock_mono_ms() + PRUNE_SOON_MS };
    const struct net_wait wait = follow_wait(ev, FOLLOW_OPERATION_MS);
    int r = ev->config.connect(ev->config.arg, false, &wait, &f.link, e);

    *ret_was_live = r == 0;
    if (r < 0)
        return r;
    f.outbox = postgres_outbox_open(f.link, ev->abbr);
    r = postgres_session_check(f.link, ev->config.connect, ev->config.arg, &wait, e);
    if (r == 0)
        r = follow(&f, e);
    set_state(ev, POSTGRES_EVENTS_CONNECTING);
    if (f.source)
        f.source->end(&f);
    postgres_outbox_close(f.outbox);
    pg_link_close(f.link);
    return r;
}

/* That a pooler cannot give events is told aloud, once. */
static void note_error(struct postgres_events *ev, int r, const struct err *why)
{
    bool is_new = set_why(ev, why->text);

    if (is_new && r == -EOPNOTSUPP)
        log_warn("backend", NULL, "%s", LOG_Q(why->text));
    log_debug("backend", NULL, "cannot follow the changes of PostgreSQL: %s", LOG_Q(why->text));
    receivers_fault(ev->receivers, why->text);
}

static void *events_main(void *arg)
{
    struct postgres_events *ev = arg;
    int64_t pause_ms = PAUSE_MIN_MS;
    bool was_live = false, has_gap = false;

    while (!atomic_load(&ev->is_stopping)) {
        int64_t began_ms = clock_mono_ms();
        struct err e = { 0 };
        int r = follow_once(ev, has_gap, &was_live, &e);

        if (r < 0 && !atomic_load(&ev->is_stopping))
            note_error(ev, r, &e);
        note_failure(ev);
        has_gap = true;
        if (was_live && clock_mono_ms() - began_ms > PAUSE_MAX_MS)
            pause_ms = PAUSE_MIN_MS;
        pause_for(ev, pause_ms);
        pause_ms = MIN(2 * pause_ms, (int64_t)PAUSE_MAX_MS);
    }
    return NULL;
}

/* --- open and close --- */

enum postgres_events_mode postgres_events_mode_of(const char *name)
{
    if (strcmp(name, "outbox") == 0)
        return POSTGRES_EVENTS_OUTBOX;
    return strcmp(name, "logical") == 0 ? POSTGRES_EVENTS_LOGICAL : POSTGRES_EVENTS_AUTO;
}

static void free_events(struct postgres_events *ev)
{
    receivers_free(ev->receivers);
    pthread_cond_destroy(&ev->changed);
    pthread_mutex_destroy(&ev->lock);
    free(ev->position);
    free(ev->reported);
    free(ev->abbr);
    free(ev);
}

int postgres_events_open(const struct postgres_events_config *c, struct postgres_events **ret, struct err *e)
{
    struct postgres_events *ev = xcalloc(1, sizeof(*ev));
    int r;

    ev->config = *c;
    ev->config.abbr = ev->abbr = xstrdup(c->abbr);
    ev->poll_ms = c->poll_ms > 0 ? c->poll_ms : DEFAULT_POLL_MS;
    ev->published_ms = c->published_ms > 0 ? c->published_ms : PUBLISHED_MS;
    snprintf(ev->changes, sizeof(ev->changes), "%s_events", c->abbr);
    snprintf(ev->broadcasts, sizeof(ev->broadcasts), "%s_broadcast", c->abbr);
    ev->receivers = receivers_new();
    pthread_mutex_init(&ev->lock, NULL);
    cond_init(&ev->changed);
    r = thread_start(&ev->thread, "backend-events", events_main, ev);
    if (r < 0) {
        free_events(ev);
        return err_errno(e, -r, "cannot start the thread of the backend's events");
    }
    *ret = ev;
    return 0;
}

void postgres_events_leave(struct postgres_events *ev)
{
    atomic_store(&ev->is_stopping, true);
}

struct postgres_events *postgres_events_close(struct postgres_events *ev)
{
    if (!ev)
        return NULL;
    postgres_events_leave(ev);
    pthread_join(ev->thread, NULL);
    free_events(ev);
    return NULL;
}

/* --- interface --- */

struct place {
    char *position; /* owned */
    uint64_t after;
};

static int take_place(void *arg, const struct pg_row *row, struct err *e)
{
    struct slice text = SLICE_LIT("");
    struct place *place = arg;
    int64_t after = 0;
    int r = pg_row_text(row, 0, LIMIT_EVENT_IMAGE, &text, e);

    if (r == 0)
        r = pg_row_int(row, 1, 0, INT64_MAX, &after, e);
    if (r < 0)
        return r;
    free(place->position);
    *place = (struct place){ xstrdup(text.p), (uint64_t)after };
    return 0;
}

/* The position is NULL when the server is not reachable. */
static struct place present_place(struct postgres_events *ev)
{
    struct place place = { 0 };
    const struct pg_statement st = { .sql = "SELECT pg_current_snapshot()::text,"
                                            " (pg_current_wal_insert_lsn() - '0/0')::bigint",
                                     .n_columns = 2,
                                     .max_rows = 1,
                                     .on_row = take_place,
                                     .arg = &place };

    if (ev->config.run(ev->config.arg, &st, NULL) == 0)
        return place;
    free(place.position);
    return (struct place){ 0 };
}

/* The first subscriber begins here. */
static void set_place(struct postgres_events *ev, struct place *place)
{
    pthread_mutex_lock(&ev->lock);
    ev->after = place->after;
    ev->is_unsure = !place->position;
    pthread_mutex_unlock(&ev->lock);
    follow_set_position(ev, TAKE(place->position), true);
}

int postgres_events_subscribe(struct postgres_events *ev, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg,
                              struct err *e)
{
    struct place place = { 0 };
    int r;

    if (!follow_has_subscriber(ev)) {
        if (!has_failed(ev))
            wait_for_connection(ev);
        place = present_place(ev);
    }
    receivers_begin(ev->receivers);
    if (!receivers_has_subscriber(ev->receivers))
        set_place(ev, &place);
    r = receivers_subscribe(ev->receivers, fn, on_gap, arg, e);
    receivers_end(ev->receivers);
    free(place.position);
    return r;
}

void postgres_events_unsubscribe(struct postgres_events *ev, void *arg)
{
    receivers_unsubscribe(ev->receivers, arg);
}

int postgres_events_listen(struct postgres_events *ev, const char *channel, backend_broadcast_fn *fn, void *arg,
                           struct err *e)
{
    receivers_listen(ev->receivers, channel, fn, arg);
    wait_for_connection(ev);
    return 0;
}

void postgres_events_unlisten(struct postgres_events *ev, void *arg)
{
    receivers_unlisten(ev->receivers, arg);
}

int postgres_events_broadcast(struct postgres_events *ev, const char *channel, const char *event,
                              const char *payload_json, struct err *e)
{
    struct buf text;
    int r;

    buf_init(&text, LIMIT_NOTIFY_BYTES);
    r = postgres_broadcast_write(&text, &(struct postgres_broadcast){ channel, event, payload_json }, e);
    if (r == 0) {
        const char *const params[] = { ev->broadcasts, buf_str(&text) };
        const struct pg_statement st = {
            .sql = "SELECT pg_notify($1, $2)", .params = params, .n_params = 2, .n_columns = 1, .max_rows = 1
        };

        r = ev->config.run(ev->config.arg, &st, e);
    }
    buf_clear(&text);
    return r;
}

void postgres_events_monitor(struct postgres_events *ev, struct arena *a, struct backend_monitor *ret)
{
    receivers_monitor(ev->receivers, a, ret);
}
