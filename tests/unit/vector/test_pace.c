/* Work in the background rests while queries are under way, and ends nevertheless. */
#include "base/clock.h"
#include "vector/engine/pace.h"
#include "../wait.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { WORK_MS = 20 };

/* Works for WORK_MS of processor time; the time that took. */
static int64_t work(struct pace *p)
{
    int64_t started_us = clock_mono_us(), until_ms = clock_work_ms() + WORK_MS;

    while (clock_work_ms() < until_ms)
        assert_true(pace_goes_on(p));
    return clock_mono_us() - started_us;
}

static void work_beside_a_query_has_its_share_of_the_time_at_most(void **state)
{
    struct pace p = { 0 };

    pace_enter(&p);
    assert_true(work(&p) >= (PACE_SHARE - 1) * WORK_MS * 1000);
    pace_leave(&p);
}

static void a_query_that_has_just_ended_counts(void **state)
{
    struct pace p = { 0 };

    for (int i = 0; i < 3; i++) {
        int64_t due_us;

        pace_enter(&p);
        pace_leave(&p);
        due_us = clock_mono_us() + PACE_LINGER_US / 2;
        p.due_us = due_us;
        p.charged_us = INT64_MIN / 2; /* a turn is over */
        assert_true(pace_goes_on(&p));
        assert_true(clock_mono_us() >= due_us);
    }
}

static void work_without_queries_never_rests(void **state)
{
    struct pace p = { .due_us = INT64_MAX / 2 }; /* a rest would not end */

    work(&p);
    assert_int_equal(p.charged_us, 0);
    assert_true(pace_goes_on(NULL));
}

/* --- the end --- */

static void *stop(void *arg)
{
    struct pace *p = arg;

    atomic_store(&p->is_stopping, true);
    return NULL;
}

static void *leave(void *arg)
{
    pace_leave(arg);
    return NULL;
}

/* A rest that nothing else would end. */
static bool rest_until(void *(*fn)(void *arg))
{
    struct pace p = { .due_us = INT64_MAX / 2, .charged_us = INT64_MIN / 2 };
    pthread_t thread;
    bool goes_on;

    pace_enter(&p);
    assert_int_equal(pthread_create(&thread, NULL, fn, &p), 0);
    goes_on = pace_goes_on(&p);
    pthread_join(thread, NULL);
    return goes_on;
}

static void a_rest_ends_when_queries_do(void **state)
{
    assert_true(rest_until(leave));
}

static void a_rest_ends_when_the_store_closes(void **state)
{
    assert_false(rest_until(stop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_beside_a_query_has_its_share_of_the_time_at_most),
        cmocka_unit_test(a_query_that_has_just_ended_counts),
        cmocka_unit_test(work_without_queries_never_rests),
        cmocka_unit_test(a_rest_ends_when_queries_do),
        cmocka_unit_test(a_rest_ends_when_the_store_closes),
    };

    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
