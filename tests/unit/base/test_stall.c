#include "base/clock.h"
#include "base/loop.h"
#include "base/stall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <poll.h>
#include <time.h>

enum { TRIES = 5, LONG_MS = 4 * STALL_US / 1000 };     /* a busy machine hides a stall now and then */

static void wait_long(void)
{
    poll(NULL, 0, LONG_MS);
}

static int64_t thread_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void compute_long(void)
{
    int64_t until_ms = thread_ms() + LONG_MS;

    while (thread_ms() < until_ms) {
    }
}

/* The best of several tries. */
static int64_t measure(void (*fn)(void), int64_t (*measured_us)(const struct stall_span *s))
{
    int64_t us = 0;

    for (int i = 0; i < TRIES && us == 0; i++) {
        struct stall_span span = stall_begin();

        fn();
        us = measured_us(&span);
    }
    return us;
}

static void who_waits_holds_its_thread(void **state)
{
    assert_true(measure(wait_long, stall_held_us) >= STALL_US);
    assert_true(measure(wait_long, stall_waited_us) >= STALL_US);
}

static void who_computes_holds_its_thread_but_does_not_wait(void **state)
{
    assert_true(measure(compute_long, stall_held_us) >= STALL_US);
    assert_int_equal(measure(compute_long, stall_waited_us), 0);
}

static void waiting_for_the_store_is_no_stall(void **state)
{
    for (int i = 0; i < TRIES; i++) {
        struct stall_span span = stall_begin();
        int64_t began_us = clock_mono_us();

        wait_long();
        stall_excuse(clock_mono_us() - began_us);
        assert_int_equal(stall_waited_us(&span), 0);
    }
}

static void what_is_short_is_no_stall(void **state)
{
    struct stall_span span = stall_begin();

    assert_int_equal(stall_waited_us(&span), 0);
}

static void a_place_is_named_by_its_function_or_its_label(void **state)
{
    stall_set_label("/sdk/ping");
    assert_string_equal(stall_place(NULL), "/sdk/ping");
    assert_non_null(strstr(stall_place("an address of this program"), "hearth+0x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_holds_its_thread),
        cmocka_unit_test(who_computes_holds_its_thread_but_does_not_wait),
        cmocka_unit_test(waiting_for_the_store_is_no_stall),
        cmocka_unit_test(what_is_short_is_no_stall),
        cmocka_unit_test(a_place_is_named_by_its_function_or_its_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
