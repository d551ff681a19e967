#include "base/clock.h"
#include "base/loop.h"
#include "base/stall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 5, LONG_MS = 4 * STALL_US / 1000, CROWD_MS = 15 }; /* a busy machine sometimes hides a stall */

static void wait_long(int n)
{
    poll(NULL, 0, n * LONG_MS);
}

static int64_t thread_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void compute_ms(int64_t ms)
{
    int64_t until_ms = thread_ms() + ms;

    while (thread_ms() < until_ms) {
    }
}

static void compute_long(int n)
{
    compute_ms((int64_t)n * LONG_MS * STALL_SLOWNESS);
}

static void *compute_in_crowd(void *arg)
{
    struct stall_span span = stall_begin();

    compute_ms(CROWD_MS);
    *(struct stall *)arg = stall_held(&span);
    return NULL;
}

/* The first of several longer and longer tries that is a stall. */
static struct stall measure(void (*fn)(int n), struct stall (*measured)(const struct stall_span *s))
{
    struct stall stall = { 0 };

    for (int i = 0; i < TRIES && stall.held_us == 0; i++) {
        struct stall_span span = stall_begin();

        fn(1 << i);
        stall = measured(&span);
    }
    return stall;
}

static void who_waits_holds_its_thread(void **state)
{
    struct stall held = measure(wait_long, stall_held), waited = measure(wait_long, stall_waited);

    assert_true(held.held_us >= STALL_US && held.waited_us > held.ran_us);
    assert_true(waited.held_us >= STALL_US);
}

static void who_computes_holds_its_thread_but_does_not_wait(void **state)
{
    struct stall held = measure(compute_long, stall_held);
    struct stall_span span = stall_begin();

    assert_true(held.held_us >= STALL_US && held.ran_us > held.waited_us);
    compute_ms(LONG_MS);
    assert_int_equal(stall_waited(&span).held_us, 0);
}

static void a_sanitizers_share_of_computing_does_not_count(void **state)
{
    struct stall_span span = stall_begin();
    struct stall stall;

    compute_ms((STALL_SLOWNESS - 1) * STALL_US / 1000);
    stall = stall_held(&span);
    assert_true(stall.held_us == 0 || stall.waited_us > STALL_US / STALL_SLOWNESS);
}

/* More threads than processors compute: each is ready for most of the time. */
static void being_ready_without_a_processor_is_no_stall(void **state)
{
    enum { THREADS = 32 };
    pthread_t threads[THREADS];
    struct stall stalls[THREADS];
    int64_t ready_us = 0;

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compute_in_crowd, &stalls[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(stalls[i].held_us, 0);
        ready_us = MAX(ready_us, stalls[i].ready_us);
    }
    if (sysconf(_SC_NPROCESSORS_ONLN) < THREADS / 8)
        assert_true(ready_us > STALL_US);
}

static void waiting_for_the_store_is_no_stall(void **state)
{
    for (int i = 0; i < TRIES; i++) {
        struct stall_span span = stall_begin();
        int64_t began_us = clock_mono_us();

        wait_long(1);
        stall_excuse(clock_mono_us() - began_us);
        assert_int_equal(stall_waited(&span).held_us, 0);
    }
}

static void what_is_short_is_no_stall(void **state)
{
    struct stall_span span = stall_begin();

    assert_int_equal(stall_waited(&span).held_us, 0);
}

static void a_place_is_named_by_its_function_or_its_label(void **state)
{
    stall_set_label("/sdk/ping");
    assert_string_equal(stall_place(NULL), "/sdk/ping");
    stall_set_label("a label that is longer than a place of the log may be: "
                    "0123456789012345678901234567890123456789");
    assert_int_equal(strlen(stall_place(NULL)), 79);
    stall_begin(); /* the next span has a place of its own */
    assert_string_equal(stall_place(NULL), "an unknown place");
    assert_non_null(strstr(stall_place("an address of this program"), "hearth+0x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_holds_its_thread),
        cmocka_unit_test(who_computes_holds_its_thread_but_does_not_wait),
        cmocka_unit_test(a_sanitizers_share_of_computing_does_not_count),
        cmocka_unit_test(being_ready_without_a_processor_is_no_stall),
        cmocka_unit_test(waiting_for_the_store_is_no_stall),
        cmocka_unit_test(what_is_short_is_no_stall),
        cmocka_unit_test(a_place_is_named_by_its_function_or_its_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
