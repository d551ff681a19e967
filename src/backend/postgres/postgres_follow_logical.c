#include "backend/postgres/postgres_follow.h"

static int open_stream(struct follower *f, struct err *e)
{
    const struct postgres_outbox_sink sink = { follow_deliver, follow_note_gap, f };
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    int r = f->ev->config.connect(f->ev->config.arg, true, &wait, &f->stream_link, e);

    return r < 0 ? r : postgres_logical_open(f->stream_link, f->link, f->ev->abbr, &sink, &wait, &f->stream, e);
}

/* The slot knows nothing of what was committed before: a subscriber that is there has missed it. */
static int begin(struct follower *f, struct err *e)
{
    int r = open_stream(f, e);

    if (r < 0)
        return r;
    receivers_begin(f->ev->receivers);
    f->has_gap = f->has_gap || receivers_has_subscriber(f->ev->receivers);
    follow_deliver_gap(f);
    receivers_end(f->ev->receivers);
    f->next_published_ms = clock_mono_ms() + f->ev->published_ms;
    return 0;
}

static uint64_t place_of(struct postgres_events *ev)
{
    uint64_t after;

    pthread_mutex_lock(&ev->lock);
    after = ev->after;
    pthread_mutex_unlock(&ev->lock);
    return after;
}

/* Nobody is sent the changes of a table that left the publication. Where there is a choice, the outbox has them;
 * otherwise the sweep finds them, now and when the table is back. */
static int check_published(struct follower *f, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *lack = NULL, *note = "";
    int r;

    if (clock_mono_ms() < f->next_published_ms)
        return 0;
    r = follow_find_lack(f, a, &lack, &note, e);
    if (r == 0 && *note && f->ev->config.mode == POSTGRES_EVENTS_AUTO)
        r = err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", note);
    if (r == 0)
        f->has_gap = follow_note_unpublished(f, note) || f->has_gap;
    f->next_published_ms = clock_mono_ms() + f->ev->published_ms;
    return r;
}

static int follow_round(struct follower *f, int64_t *ret_wait_ms, struct err *e)
{
    const struct net_wait wait = follow_wait(f->ev, FOLLOW_OPERATION_MS);
    int r = check_published(f, e);

    if (r < 0)
        return r;
    receivers_begin(f->ev->receivers);
    r = postgres_logical_take(f->stream, place_of(f->ev), &wait, e);
    f->has_gap = follow_take_unsure(f->ev) || f->has_gap;
    follow_deliver_gap(f);
    receivers_end(f->ev->receivers);
    pg_link_settle(f->link);
    *ret_wait_ms = r > 0 ? 0 : MIN(FOLLOW_DEEP_MS, f->ev->published_ms);
    return MIN(r, 0);
}

/* A position in the outbox is of no use after a time without it. */
static void end(struct follower *f)
{
    f->stream = postgres_logical_close(f->stream);
    f->stream_link = pg_link_close(f->stream_link);
    follow_set_position(f->ev, NULL, false);
}

const struct follow_source follow_logical = { .is_logical = true, .begin = begin, .round = follow_round, .end = end };
