#include "backend/postgres/postgres_follow.h"

enum {
    AWAKE_MS = 10, /* how long a reader looks on after the last change */
    AWAKE_POLL_MS = 2,
    SETTLE_MS = 100, /* how long after a change it looks as often for transactions that were open when it rested */
    WANT_EVERY_MS = 10000
};

/* --- position --- */

static char *take_position(struct postgres_events *ev, unsigned *ret_generation)
{
    char *position;

    pthread_mutex_lock(&ev->lock);
    position = ev->position ? xstrdup(ev->position) : NULL;
    *ret_generation = ev->generation;
    pthread_mutex_unlock(&ev->lock);
    return position;
}

static bool is_generation(struct postgres_events *ev, unsigned generation)
{
    bool is_so;

    pthread_mutex_lock(&ev->lock);
    is_so = ev->generation == generation;
    pthread_mutex_unlock(&ev->lock);
    return is_so;
}

/* --- delivery, between receivers_begin() and receivers_end() --- */

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
    const struct postgres_outbox_sink sink = { follow_deliver, follow_note_gap, f };
    int r = 0;

    f->n_delivered = 0;
    for (size_t at = 0, n; r == 0 && at < range->n; at += n) {
        const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);

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
    follow_set_position(f->ev, TAKE(range->position), false);
    f->ev->n_reported = 0;
    follow_deliver_gap(f);
    return 0;
}

/* --- looking --- */

/* Once, when the transactions have ended whose changes nobody may have recorded. */
static bool has_unrecorded(struct follower *f)
{
    bool is_so = f->unrecorded_xid > 0 && f->oldest >= f->unrecorded_xid;

    if (is_so)
        f->unrecorded_xid = 0;
    return is_so;
}

static int look(struct follower *f, size_t *ret_n, struct err *e)
{
    struct postgres_events *ev = f->ev;
    const struct net_wait wait = follow_wait(ev, FOLLOW_OPERATION_MS);
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
        f->has_gap = follow_take_unsure(ev) || f->has_gap || !position || has_unrecorded(f);
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
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);

    if (f->is_resting || clock_mono_ms() < f->last_change_ms + AWAKE_MS)
        return 0;
    f->must_settle = true;
    return postgres_outbox_rest(f->outbox, &wait, &f->is_resting, e);
}

static int wake(struct follower *f, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);

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

static int want(struct follower *f, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);

    if (clock_mono_ms() < f->next_want_ms)
        return 0;
    f->next_want_ms = clock_mono_ms() + WANT_EVERY_MS;
    return postgres_outbox_want(f->outbox, &wait, e);
}

/* --- the source --- */

static int take_setting(void *arg, const struct pg_row *row, struct err *e)
{
    struct follower *f = arg;
    int64_t n = 0;
    int r = pg_row_int(row, 0, 0, INT64_MAX, &n, e);

    f->is_unnotified = n > 0; /* the wake function of the outbox sends none then */
    return r;
}

/* Writers record nothing while nobody reads. A transaction that has changed rows before, and is still open, is lost. */
static int attend(struct follower *f, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    struct postgres_outbox_range now = { 0 };
    uint64_t from = 0;
    int r = postgres_outbox_attend(f->outbox, &wait, &from, e);

    f->next_want_ms = clock_mono_ms() + WANT_EVERY_MS;
    if (r == 0)
        r = postgres_outbox_look(f->outbox, &wait, NULL, &now, e);
    if (r == 0 && now.oldest < from)
        f->unrecorded_xid = from;
    postgres_outbox_range_clear(&now);
    return r;
}

static int begin(struct follower *f, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    const struct pg_statement setting = { .sql = "SELECT current_setting('max_prepared_transactions')",
                                          .n_columns = 1,
                                          .max_rows = 1,
                                          .on_row = take_setting,
                                          .arg = f };
    int r = pg_link_run(f->link, &wait, &setting, e);

    if (r == 0)
        r = attend(f, e);
    f->has_gap = f->has_gap || follow_has_subscriber(f->ev);
    return r;
}

static int64_t wait_ms(const struct follower *f, bool is_following)
{
    bool is_open = f->is_unnotified || f->oldest < f->until_xid || f->unrecorded_xid > 0;

    if (is_following && (!f->is_resting || (is_open && clock_mono_ms() < f->last_change_ms + SETTLE_MS)))
        return AWAKE_POLL_MS;
    return is_following && !is_open ? FOLLOW_DEEP_MS : f->ev->poll_ms;
}

static int follow_round(struct follower *f, int64_t *ret_wait_ms, struct err *e)
{
    bool is_following = follow_has_subscriber(f->ev);
    int r = want(f, e);

    if (r == 0 && is_following)
        r = follow_changes(f, e);
    *ret_wait_ms = wait_ms(f, is_following);
    return r;
}

static void end(struct follower *f)
{
}

const struct follow_source follow_outbox = { .begin = begin, .round = follow_round, .end = end };
