/* What waits in the realtime part at its limits, over a backend whose reads the test holds up. */
#include "face/realtime_private.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct held_backend {
    struct backend b;
    backend_event_fn *on_event;
    void *arg;
    sem_t is_reading, may_read;
};

static int subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    struct held_backend *held = (struct held_backend *)b;

    held->on_event = fn;
    held->arg = arg;
    return 0;
}

static void unsubscribe(struct backend *b, void *arg)
{
}

static int get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e)
{
    struct held_backend *held = (struct held_backend *)b;

    sem_post(&held->is_reading);
    sem_wait(&held->may_read);
    return -ENOENT;
}

static const struct backend_ops ops = { .subscribe = subscribe, .unsubscribe = unsubscribe, .get = get };

struct world {
    struct held_backend held;
    struct realtime *rt;
};

static void tell(struct world *w, bool is_lease_only, const char *raw_data)
{
    const struct backend_row row = { .id = "6f9619ff-8b86-4d01-b42d-00c04fc964ff", .raw_data = raw_data };
    const struct backend_event event = {
        .op = BACKEND_UPDATE, .table = "orders", .new_row = &row, .is_lease_only = is_lease_only
    };

    w->held.on_event(w->held.arg, &event);
}

/* Only the thread of the rows runs, and waits in its first read: what comes stays counted. */
static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));

    w->held.b = (struct backend){ .ops = &ops, .abbr = "svc" };
    sem_init(&w->held.is_reading, 0, 0);
    sem_init(&w->held.may_read, 0, 0);
    w->rt = xcalloc(1, sizeof(*w->rt));
    w->rt->config.backend = &w->held.b;
    w->rt->delivered = metric_counter("test_delivered_total", "", "");
    w->rt->dropped = metric_counter("test_dropped_total", "", "");
    rt_queue_init(&w->rt->hub);
    rt_queue_init(&w->rt->rows);
    atomic_store(&w->rt->n_watching, 1);
    if (rt_rows_start(w->rt, NULL) < 0)
        return -1;
    tell(w, true, "{}");
    sem_wait(&w->held.is_reading);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    sem_post(&w->held.may_read);
    rt_rows_stop(w->rt);
    rt_queue_clear(&w->rt->hub);
    rt_queue_clear(&w->rt->rows);
    free(w->rt->columns);
    free(w->rt);
    free(w);
    return 0;
}

static void changes_beyond_their_number_are_a_gap(void **state)
{
    struct world *w = *state;

    while (atomic_load(&w->rt->n_changes) < LIMIT_REALTIME_CHANGES)
        tell(w, false, "{}");
    assert_false(atomic_load(&w->rt->has_gap));
    assert_int_equal(w->rt->rows.n, LIMIT_REALTIME_CHANGES - 1);
    tell(w, false, "{}");
    assert_true(atomic_load(&w->rt->has_gap));
    assert_int_equal(atomic_load(&w->rt->n_changes), LIMIT_REALTIME_CHANGES);
    assert_int_equal(w->rt->rows.n, LIMIT_REALTIME_CHANGES); /* the gap, told once */
    tell(w, false, "{}");
    assert_int_equal(w->rt->rows.n, LIMIT_REALTIME_CHANGES);
}

static void changes_beyond_their_bytes_are_a_gap(void **state)
{
    struct world *w = *state;
    char *raw = xcalloc(1, MIB(1) + 3);
    size_t before = 0;

    memset(raw, '1', MIB(1));
    while (!atomic_load(&w->rt->has_gap)) {
        before = atomic_load(&w->rt->n_change_bytes);
        tell(w, false, raw);
    }
    assert_true(before >= LIMIT_REALTIME_CHANGE_BYTES);
    assert_true(before < LIMIT_REALTIME_CHANGE_BYTES + MIB(2));
    assert_true(atomic_load(&w->rt->n_changes) < LIMIT_REALTIME_CHANGES);
    free(raw);
}

static void a_gap_is_told_again_after_room(void **state)
{
    struct world *w = *state;

    while (!atomic_load(&w->rt->has_gap))
        tell(w, false, "{}");
    atomic_fetch_sub(&w->rt->n_changes, 1);
    tell(w, false, "{}");
    assert_false(atomic_load(&w->rt->has_gap));
    tell(w, false, "{}");
    assert_true(atomic_load(&w->rt->has_gap));
    assert_int_equal(w->rt->rows.n, LIMIT_REALTIME_CHANGES + 2);
}

static void broadcasts_beyond_their_number_are_refused(void **state)
{
    const struct realtime_broadcast b = { SLICE_LIT("room"), SLICE_LIT("e"), SLICE_LIT("{}"), false, false };
    struct world *w = *state;
    struct err e = { 0 };

    for (size_t i = 0; i < LIMIT_REALTIME_BROADCASTS; i++)
        assert_int_equal(realtime_broadcast(w->rt, &b, NULL), 0);
    assert_int_equal(realtime_broadcast(w->rt, &b, &e), -EBUSY);
    assert_string_equal(e.code, "TOO_MANY_BROADCASTS");
    assert_int_equal(w->rt->hub.n, LIMIT_REALTIME_BROADCASTS);
    atomic_fetch_sub(&w->rt->n_broadcasts, 1); /* one was delivered */
    assert_int_equal(realtime_broadcast(w->rt, &b, NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(changes_beyond_their_number_are_a_gap),
        TEST(changes_beyond_their_bytes_are_a_gap),
        TEST(a_gap_is_told_again_after_room),
        TEST(broadcasts_beyond_their_number_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
