/* Admission of turns: so many run, so many wait and are told their place, the next is refused. */
#include "agents/turn_pool.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/pool.h"

#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <cmocka.h>
#include <string.h>

static atomic_int n_running, n_ended;
static atomic_bool may_end;

struct turn {
    atomic_size_t place; /* 0: not told */
    atomic_bool has_begun, was_told_late;
};

static bool can_end(void *arg)
{
    return atomic_load(&may_end);
}

static bool all_run(void *arg)
{
    return atomic_load(&n_running) == LIMIT_TURNS;
}

static bool all_ended(void *arg)
{
    return atomic_load(&n_ended) == *(int *)arg;
}

static void run(void *arg)
{
    struct turn *t = arg;

    atomic_store(&t->has_begun, true);
    atomic_fetch_add(&n_running, 1);
    (void)!wait_until(can_end, NULL);
    atomic_fetch_add(&n_ended, 1);
}

static void on_place(void *arg, size_t place)
{
    struct turn *t = arg;

    if (atomic_load(&t->has_begun))
        atomic_store(&t->was_told_late, true);
    atomic_store(&t->place, place);
}

static int submit(struct turn_pool *p, struct turn *t, struct err *e)
{
    return turn_pool_submit(p, &(struct turn_job){ .run = run, .on_place = on_place, .arg = t }, e);
}

static void turns_beyond_the_limit_wait_and_know_their_place(void **state)
{
    static struct turn turns[LIMIT_TURNS + LIMIT_TURNS_WAITING + 1];
    const int n = LIMIT_TURNS + LIMIT_TURNS_WAITING;
    struct turn_pool *p = NULL;
    struct err e = { 0 };

    assert_int_equal(turn_pool_start(&(struct turn_pool_config){ .on_thread_end = NULL }, &p, &e), 0);
    for (int i = 0; i < LIMIT_TURNS; i++)
        assert_int_equal(submit(p, &turns[i], &e), 0);
    assert_true(wait_until(all_run, NULL));
    for (int i = LIMIT_TURNS; i < n; i++)
        assert_int_equal(submit(p, &turns[i], &e), 0);
    assert_int_equal(submit(p, &turns[n], &e), -EAGAIN);
    assert_string_equal(e.code, "TOO_MANY_TURNS");
    assert_int_equal(turn_pool_running(p), LIMIT_TURNS);
    assert_int_equal(turn_pool_waiting(p), LIMIT_TURNS_WAITING);
    assert_int_equal(atomic_load(&turns[0].place), 0);
    assert_int_equal(atomic_load(&turns[LIMIT_TURNS].place), 1);
    assert_int_equal(atomic_load(&turns[n - 1].place), LIMIT_TURNS_WAITING);
    atomic_store(&may_end, true);
    assert_true(wait_until(all_ended, &(int){ n }));
    assert_int_equal(turn_pool_waiting(p), 0);
    for (int i = 0; i < n; i++)
        assert_false(atomic_load(&turns[i].was_told_late));
    assert_null(turn_pool_stop(p));
}

/* ---- calls of tools beside their turns ---- */

static atomic_int n_calls, n_calls_most, n_calls_ended;
static atomic_bool calls_may_end;

static bool all_calls_run(void *arg)
{
    return atomic_load(&n_calls) == LIMIT_CALL_THREADS;
}

static bool calls_can_end(void *arg)
{
    return atomic_load(&calls_may_end);
}

static bool calls_have_ended(void *arg)
{
    return atomic_load(&n_calls_ended) == *(int *)arg;
}

static void run_call(void *arg)
{
    int n = atomic_fetch_add(&n_calls, 1) + 1, most = atomic_load(&n_calls_most);

    while (n > most && !atomic_compare_exchange_weak(&n_calls_most, &most, n))
        ;
    (void)!wait_until(calls_can_end, NULL);
    atomic_fetch_sub(&n_calls, 1);
    atomic_fetch_add(&n_calls_ended, 1);
}

static void calls_beyond_their_threads_wait_for_one(void **state)
{
    const int n = 2 * LIMIT_CALL_THREADS;
    struct turn_pool *p = NULL;
    struct err e = { 0 };

    assert_int_equal(turn_pool_start(&(struct turn_pool_config){ .on_thread_end = NULL }, &p, &e), 0);
    for (int i = 0; i < LIMIT_CALL_THREADS; i++)
        assert_int_equal(pool_submit(turn_pool_calls(p), run_call, NULL), 0);
    assert_true(wait_until(all_calls_run, NULL));
    for (int i = LIMIT_CALL_THREADS; i < n; i++)
        assert_int_equal(pool_submit(turn_pool_calls(p), run_call, NULL), 0);
    atomic_store(&calls_may_end, true);
    assert_true(wait_until(calls_have_ended, &(int){ n }));
    assert_int_equal(atomic_load(&n_calls_most), LIMIT_CALL_THREADS);
    turn_pool_stop(p);
}

static void a_pool_that_stops_runs_what_waits(void **state)
{
    static struct turn turns[LIMIT_TURNS + 3];
    const int n_before = atomic_load(&n_ended);
    struct turn_pool *p = NULL;
    struct err e = { 0 };

    atomic_store(&may_end, true);
    assert_int_equal(turn_pool_start(&(struct turn_pool_config){ .on_thread_end = NULL }, &p, &e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
        assert_int_equal(submit(p, &turns[i], &e), 0);
    turn_pool_stop(p);
    assert_int_equal(atomic_load(&n_ended) - n_before, ARRAY_SIZE(turns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_beyond_the_limit_wait_and_know_their_place),
        cmocka_unit_test(calls_beyond_their_threads_wait_for_one),
        cmocka_unit_test(a_pool_that_stops_runs_what_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
