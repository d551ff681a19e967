/* The thread that follows the changes and delivers to the receivers. */
#include "backend/postgres/postgres_events.h"
#include "backend/postgres/postgres_broadcast.h"
#include "backend/postgres/postgres_outbox.h"
#include "backend/receivers.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/thread.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_POLL_MS = 50,
    DEEP_POLL_MS = 1000, /* while a notification comes for every change */
    AWAKE_MS = 10,       /* how long a reader looks on after the last change */
    AWAKE_POLL_MS = 2,
    OPERATION_MS = 20000,
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 5000,
    PAUSE_STEP_MS = 10,
    PRUNE_EVERY_MS = 10000,
    PRUNE_SOON_MS = 100,
    CHANNEL_CHARS = 100
};

struct postgres_events {
    struct postgres_events_config config;
    char *abbr; /* owned */
    int poll_ms;
    char changes[CHANNEL_CHARS], broadcasts[CHANNEL_CHARS]; /* channels of notifications */
    pthread_t thread;
    atomic_bool is_stopping;
    struct receivers *receivers; /* owned */
    struct postgres_outbox_key
        *reported; /* owned, the thread's own: changes after the position that were reported already */
    size_t n_reported;

    pthread_mutex_t lock; /* guards the members below */
    char *position;       /* owned; NULL: not known, the next look begins with a gap */
    unsigned generation;  /* of the position: raised by the first subscriber */
    struct postgres_events_status status;
    uint64_t n_failures;    /* attempts to connect, and connections that broke */
    pthread_cond_t changed; /* state or n_failures */
};

/* What the thread knows of one connection. */
struct follower {
    struct postgres_events *ev;
    struct pg_link *link;
    struct postgres_outbox *outbox;
    bool has_gap;       /* to report after the next look */
    bool is_notified;   /* a writer has sent a notification */
    bool is_resting;    /* writers send one */
    bool is_unnotified; /* writers never send one */
    bool must_settle;   /* the next look decides until_xid */
    uint64_t until_xid; /* transactions before it may end without a notification */
    uint64_t oldest;    /* of the last look */
    size_t n_delivered; /* changes of the range that is being delivered */
    int64_t last_change_ms, next_prune_ms;
};

/* --- position and status --- */

static char *take_position(struct postgres_events *ev, unsigned *ret_generation)
{
    char *position;

    pthread_mutex_lock(&ev->lock);
    position = ev->position ? xstrdup(ev->position) : NULL;
    *ret_generation = ev->generation;
    pthread_mutex_unlock(&ev->lock);
    return position;
}

/* Takes the text over. */
static void set_position(struct postgres_events *ev, char *position, bool is_new_reader)
{
    pthread_mutex_lock(&ev->lock);
    free(ev->position);
    ev->position = position;
    ev->generation += is_new_reader;
    pthread_mutex_unlock(&ev->lock);
}

static bool is_generation(struct postgres_events *ev, unsigned generation)
{
    bool is_so;

    pthread_mutex_lock(&ev->lock);
    is_so = ev->generation == generation;
    pthread_mutex_unlock(&ev->lock);
    return is_so;
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
    int64_t until_us = clock_mono_us() + (int64_t)OPERATION_MS * 1000;
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

struct postgres_events_status postgres_events_status(struct postgres_events *ev)
{
    struct postgres_events_status status;

    pthread_mutex_lock(&ev->lock);
    status = ev->status;
    pthread_mutex_unlock(&ev->lock);
    return status;
}

static struct net_wait wait_of(struct postgres_events *ev, int64_t ms)
{
    return net_wait_of(ms, NULL, &ev->is_stopping);
}

static bool has_subscriber(struct postgres_events *ev)
{
    bool is_so;

    receivers_begin(ev->receivers);
    is_so = receivers_has_subscriber(ev->receivers);
    receivers_end(ev->receivers);
    return is_so;
}

/* --- delivery, between receivers_begin() and receivers_end() --- */

/* Numbers rise in the order of the reports; those of the outbox do not. */
static void deliver_event(void *arg, const struct backend_event *event)
{
    struct follower *f = arg;
    struct backend_event numbered = *event;

    f->n_delivered++;
    pthread_mutex_lock(&f->ev->lock);
    numbered.sequence = ++f->ev->status.n_events;
    pthread_mutex_unlock(&f->ev->lock);
    receivers_event(f->ev->receivers, &numbered);
}

static void note_gap(void *arg)
{
    struct follower *f = arg;

    f->n_delivered++;
    f->has_gap = true;
}

static void deliver_gap(struct follower *f)
{
    if (!f->has_gap)
        return;
    f->has_gap = false;
    pthread_mutex_lock(&f->ev->lock);
    f->ev->status.n_gaps++;
    pthread_mutex_unlock(&f->ev->lock);
    receivers_gap(f->ev->receivers);
}

/* The connection broke within a range: what was reported is not found again by the next look from the same position. */
static void keep_reported(struct postgres_events *ev, const struct postgres_outbox_key *keys, size_t n)
{
    if (n == 0)
        return;
    ev->reported = xrealloc(ev->reported, (ev->n_reported + n) * sizeof(*keys));
    memcpy(ev->reported + ev->n_reported, keys, n * sizeof(*keys));
    ev->n_reported += n;
}

static int compare_keys(const void *a, const void *b)
{
    const struct postgres_outbox_key *x = a, *y = b;

    return x->seq != y->seq ? (x->seq > y->seq) - (x->seq < y->seq) : (x->xid > y->xid) - (x->xid < y->xid);
}

static void drop_reported(struct postgres_events *ev, struct postgres_outbox_range *range)
{
    size_t n = 0;

    if (ev->n_reported == 0)
        return;
    qsort(ev->reported, ev->n_reported, sizeof(*ev->reported), compare_keys);
    for (size_t i = 0; i < range->n; i++)
        if (!bsearch(&range->keys[i], ev->reported, ev->n_reported, sizeof(*ev->reported), compare_keys))
            range->keys[n++] = range->keys[i];
    range->n = n;
}

static int fetch_range(struct follower *f, const struct postgres_outbox_range *range, struct err *e)
{
    const struct postgres_outbox_sink sink = { deliver_event, note_gap, f };
    int r = 0;

    f->n_delivered = 0;
    for (size_t at = 0, n; r == 0 && at < range->n; at += n) {
        const struct net_wait wait = wait_of(f->ev, OPERATION_MS);

        n = MIN(range->n - at, (size_t)POSTGRES_OUTBOX_PAGE);
        r = postgres_outbox_fetch(f->outbox, &wait, range->keys + at, n, &sink, e);
    }
    return r;
}

static int deliver_range(struct follower *f, struct postgres_outbox_range *range, struct err *e)
{
    int r;

    drop_reported(f->ev, range);
    r = fetch_range(f, range, e);
    f->has_gap = f->has_gap || range->is_lost;
    if (r < 0) {
        keep_reported(f->ev, range->keys, MIN(f->n_delivered, range->n));
        return r;
    }
    set_position(f->ev, TAKE(range->position), false);
    f->ev->n_reported = 0;
    deliver_gap(f);
    return 0;
}

/* --- looking --- */

static int look(struct follower *f, size_t *ret_n, struct err *e)
{
    struct postgres_events *ev = f->ev;
    const struct net_wait wait = wait_of(ev, OPERATION_MS);
    struct postgres_outbox_range range = { 0 };
    unsigned generation;
    char *position = take_position(ev, &generation);
    int r = postgres_outbox_look(f->outbox, &wait, position, &range, e);

    if (r == 0) {
        receivers_begin(ev->receivers);
        f->oldest = range.oldest;
        if (f->must_settle)
            f->until_xid = range.newest;
        f->must_settle = false;
        f->has_gap = f->has_gap || !position;
        *ret_n = range.n;
        if (is_generation(ev, generation))
            r = deliver_range(f, &range, e);
        receivers_end(ev->receivers);
    }
    postgres_outbox_range_clear(&range);
    free(position);
    return r;
}

/* Rests when nothing has changed for a moment. */
static int rest(struct follower *f, struct err *e)
{
    const struct net_wait wait = wait_of(f->ev, OPERATION_MS);

    if (f->is_resting || clock_mono_ms() < f->last_change_ms + AWAKE_MS)
        return 0;
    f->must_settle = true;
    return postgres_outbox_rest(f->outbox, &wait, &f->is_resting, e);
}

static int wake(struct follower *f, struct err *e)
{
    const struct net_wait wait = wait_of(f->ev, OPERATION_MS);

    f->is_notified = false;
    if (!f->is_resting)
        return 0;
    f->is_resting = false;
    return postgres_outbox_wake(f->outbox, &wait, e);
}

static int follow_changes(struct follower *f, struct err *e)
{
    bool was_resting = f->is_resting;
    size_t n = 0;
    int r = look(f, &n, e);

    if (r == 0 && (n > 0 || f->is_notified)) {
        f->last_change_ms = clock_mono_ms();
        return wake(f, e);
    }
    if (r == 0)
        r = rest(f, e);
    return r == 0 && f->is_resting && !was_resting ? look(f, &n, e) : r;
}

static int prune(struct follower *f, struct err *e)
{
    const struct net_wait wait = wait_of(f->ev, OPERATION_MS);
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

static int wait_for_notice(struct follower *f, bool is_following, struct err *e)
{
    bool is_open = f->is_unnotified || f->oldest < f->until_xid;
    int64_t ms = !is_following    ? f->ev->poll_ms
                 : !f->is_resting ? AWAKE_POLL_MS
                 : is_open        ? f->ev->poll_ms
                                  : DEEP_POLL_MS;
    const struct net_wait wait = wait_of(f->ev, ms);
    int r;

    pg_link_settle(f->link);
    r = pg_link_listen(f->link, &wait, take_notice, f, e);
    return MIN(r, 0);
}

/* --- one connection --- */

static int take_setting(void *arg, const struct pg_row *row, struct err *e)
{
    struct follower *f = arg;
    int64_t n = 0;
    int r = pg_row_int(row, 0, 0, INT64_MAX, &n, e);

    f->is_unnotified = n > 0; /* the wake function of the outbox sends none then */
    return r;
}

static int begin(struct follower *f, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = wait_of(f->ev, OPERATION_MS);
    const struct pg_statement listen = {
        .sql = arena_printf(a, "LISTEN \"%s\"; LISTEN \"%s\"", f->ev->changes, f->ev->broadcasts), .is_script = true
    };
    const struct pg_statement setting = { .sql = "SELECT current_setting('max_prepared_transactions')",
                                          .n_columns = 1,
                                          .max_rows = 1,
                                          .on_row = take_setting,
                                          .arg = f };
    int r = pg_link_run(f->link, &wait, &listen, e);

    return r < 0 ? r : pg_link_run(f->link, &wait, &setting, e);
}

/* Ends with an error, or when the service stops. */
static int follow(struct follower *f, struct err *e)
{
    bool is_following;
    int r = begin(f, e);

    if (r == 0)
        set_state(f->ev, POSTGRES_EVENTS_LIVE);
    while (r == 0 && !atomic_load(&f->ev->is_stopping)) {
        is_following = has_subscriber(f->ev);
        if (is_following)
            r = follow_changes(f, e);
        if (r == 0)
            r = prune(f, e);
        if (r == 0)
            r = wait_for_notice(f, is_following, e);
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
    const struct net_wait wait = wait_of(ev, OPERATION_MS);
    int r = ev->config.connect(ev->config.arg, false, &wait, &f.link, e);

    *ret_was_live = r == 0;
    if (r < 0)
        return r;
    f.outbox = postgres_outbox_open(f.link, ev->abbr);
    r = follow(&f, e);
    set_state(ev, POSTGRES_EVENTS_CONNECTING);
    postgres_outbox_close(f.outbox);
    pg_link_close(f.link);
    return r;
}

static void *events_main(void *arg)
{
    struct postgres_events *ev = arg;
    int64_t pause_ms = PAUSE_MIN_MS;
    bool was_live = false, has_gap = false;

    while (!atomic_load(&ev->is_stopping)) {
        int64_t began_ms = clock_mono_ms();
        struct err e = { 0 };

        if (follow_once(ev, has_gap, &was_live, &e) < 0)
            log_debug("backend", NULL, "cannot follow the changes of PostgreSQL: %s", LOG_Q(e.text));
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

static int take_snapshot(void *arg, const struct pg_row *row, struct err *e)
{
    struct slice text = SLICE_LIT("");
    char **ret = arg;
    int r = pg_row_text(row, 0, LIMIT_EVENT_IMAGE, &text, e);

    if (r == 0) {
        free(*ret);
        *ret = xstrdup(text.p);
    }
    return r;
}

/* NULL when the server is not reachable. */
static char *present_position(struct postgres_events *ev)
{
    char *position = NULL;
    const struct pg_statement st = { .sql = "SELECT pg_current_snapshot()::text",
                                     .n_columns = 1,
                                     .max_rows = 1,
                                     .on_row = take_snapshot,
                                     .arg = &position };

    if (ev->config.run(ev->config.arg, &st, NULL) == 0)
        return position;
    free(position);
    return NULL;
}

int postgres_events_subscribe(struct postgres_events *ev, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg,
                              struct err *e)
{
    char *position = has_subscriber(ev) ? NULL : present_position(ev);
    int r;

    receivers_begin(ev->receivers);
    if (!receivers_has_subscriber(ev->receivers))
        set_position(ev, TAKE(position), true);
    r = receivers_subscribe(ev->receivers, fn, on_gap, arg, e);
    receivers_end(ev->receivers);
    free(position);
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
