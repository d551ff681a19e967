/* Threads that take a part of a query's work while there are fewer queries than processors. */
#include "base/limits.h"
#include "vector/engine/helpers.h"
#include "../wait.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <cmocka.h>

/* Work whose helpers stay until they may leave. */
struct work {
    atomic_size_t n_helpers, n_callers, n_wanted; /* n_wanted: helpers that the caller waits for */
    atomic_bool may_leave, is_stuck;
    int results[LIMIT_VECTOR_HELPERS + 1]; /* not atomic: helpers_run() makes them visible */
};

static bool has_helpers(void *arg)
{
    struct work *w = arg;

    return atomic_load(&w->n_helpers) >= atomic_load(&w->n_wanted);
}

static bool may_leave(void *arg)
{
    return atomic_load(&((struct work *)arg)->may_leave);
}

static void await(struct work *w, bool (*is_so)(void *arg))
{
    if (!wait_until(is_so, w))
        atomic_store(&w->is_stuck, true);
}

static void work(void *arg, bool is_helper)
{
    struct work *w = arg;

    if (is_helper) {
        size_t i = atomic_fetch_add(&w->n_helpers, 1);

        await(w, may_leave);
        w->results[i]++;
        return;
    }
    atomic_fetch_add(&w->n_callers, 1);
    await(w, has_helpers);
    atomic_store(&w->may_leave, true);
}

static void all_helpers_take_part_and_are_waited_for(void **state)
{
    struct helpers *h = helpers_start(LIMIT_VECTOR_HELPERS + 10);
    struct work w = { .n_wanted = LIMIT_VECTOR_HELPERS };

    helpers_enter(h);
    for (int turn = 1; turn <= 20; turn++) {
        atomic_store(&w.may_leave, false);
        atomic_store(&w.n_helpers, 0);
        helpers_run(h, work, &w);
        assert_int_equal(atomic_load(&w.n_helpers), LIMIT_VECTOR_HELPERS);
        assert_int_equal(atomic_load(&w.n_callers), turn);
        for (size_t i = 0; i < LIMIT_VECTOR_HELPERS; i++)
            assert_int_equal(w.results[i], turn);
    }
    assert_false(atomic_load(&w.is_stuck));
    helpers_leave(h);
    helpers_stop(h);
}

static void as_many_help_as_there_are_processors_without_a_query(void **state)
{
    struct helpers *h = helpers_start(4);
    struct work w = { .n_wanted = 1 };

    for (int i = 0; i < 3; i++)
        helpers_enter(h);
    assert_true(helpers_are_free(h));
    helpers_run(h, work, &w);
    assert_int_equal(atomic_load(&w.n_helpers), 1);
    helpers_enter(h);
    assert_false(helpers_are_free(h));
    atomic_store(&w.n_wanted, 0);
    atomic_store(&w.n_helpers, 0);
    atomic_store(&w.n_callers, 0);
    helpers_run(h, work, &w);
    assert_int_equal(atomic_load(&w.n_helpers), 0);
    assert_int_equal(atomic_load(&w.n_callers), 1);
    for (int i = 0; i < 4; i++)
        helpers_leave(h);
    helpers_stop(h);
}

static bool are_free(void *arg)
{
    return helpers_are_free(arg);
}

/* Queries that overlap again and again do not wake helpers in between. */
static void helpers_stay_away_for_a_while_after_many_queries(void **state)
{
    struct helpers *h = helpers_start(2);
    int64_t crowded_ms;

    helpers_enter(h);
    assert_true(helpers_are_free(h));
    crowded_ms = clock_mono_ms();
    helpers_enter(h);
    helpers_leave(h);
    assert_true(!helpers_are_free(h) || clock_mono_ms() > crowded_ms + 1);
    assert_true(wait_until(are_free, h));
    assert_true(clock_mono_ms() > crowded_ms + 1);
    helpers_leave(h);
    helpers_stop(h);
}

/* --- a helper that is busy --- */

struct other {
    struct helpers *h;
    struct work w;
};

/* Its caller is through at once; its helper stays. */
static void hold_helper(void *arg, bool is_helper)
{
    struct work *w = arg;

    if (is_helper) {
        atomic_fetch_add(&w->n_helpers, 1);
        await(w, may_leave);
    } else {
        await(w, has_helpers);
    }
}

static void *run_other(void *arg)
{
    struct other *o = arg;

    helpers_run(o->h, hold_helper, &o->w);
    return NULL;
}

static void a_busy_helper_is_not_waited_for(void **state)
{
    struct other o = { .h = helpers_start(2), .w = { .n_wanted = 1 } };
    struct work w = { 0 };
    pthread_t thread;

    pthread_create(&thread, NULL, run_other, &o);
    assert_true(wait_until(has_helpers, &o.w));
    helpers_run(o.h, work, &w); /* would never return otherwise: the helper leaves only afterwards */
    assert_int_equal(atomic_load(&w.n_helpers), 0);
    assert_int_equal(atomic_load(&w.n_callers), 1);
    atomic_store(&o.w.may_leave, true);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&o.w.is_stuck));
    helpers_stop(o.h);
}

static void without_helpers_the_caller_does_all(void **state)
{
    struct helpers *none[] = { NULL, helpers_start(1) };

    for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
        struct work w = { 0 };

        helpers_enter(none[i]);
        assert_false(helpers_are_free(none[i]));
        helpers_run(none[i], work, &w);
        assert_int_equal(atomic_load(&w.n_callers), 1);
        helpers_leave(none[i]);
        helpers_stop(none[i]);
    }
}

/* --- many callers --- */

enum { N_CALLERS = 4, N_ROUNDS = 300, N_PARTS = 50 };

struct parts {
    atomic_size_t next;
    atomic_size_t n_done;
};

static void take_parts(void *arg, bool is_helper)
{
    struct parts *p = arg;

    while (atomic_fetch_add(&p->next, 1) < N_PARTS)
        atomic_fetch_add(&p->n_done, 1);
}

static void *call_often(void *arg)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        struct parts p = { 0 };

        helpers_enter(arg);
        helpers_run(arg, take_parts, &p);
        helpers_leave(arg);
        if (atomic_load(&p.n_done) != N_PARTS)
            return arg;
    }
    return NULL;
}

static void work_is_complete_whoever_takes_it(void **state)
{
    struct helpers *h = helpers_start(LIMIT_VECTOR_HELPERS + 1);
    pthread_t threads[N_CALLERS];
    void *failed;

    for (int i = 0; i < N_CALLERS; i++)
        pthread_create(&threads[i], NULL, call_often, h);
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    helpers_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_helpers_take_part_and_are_waited_for),
        cmocka_unit_test(as_many_help_as_there_are_processors_without_a_query),
        cmocka_unit_test(helpers_stay_away_for_a_while_after_many_queries),
        cmocka_unit_test(a_busy_helper_is_not_waited_for),
        cmocka_unit_test(without_helpers_the_caller_does_all),
        cmocka_unit_test(work_is_complete_whoever_takes_it),
    };

    return cmocka_run_group_tests_name("helpers", tests, NULL, NULL);
}
