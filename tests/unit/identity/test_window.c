#include "identity/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define DAY ((int64_t)WINDOW_DAY_MS)
#define NOON (20000 * DAY + DAY / 2)

static struct window_now at(int64_t mono_ms)
{
    return (struct window_now){ .mono_ms = mono_ms, .wall_ms = NOON + mono_ms };
}

static void add_at(struct window *w, int64_t mono_ms, int64_t n)
{
    window_move(w, at(mono_ms));
    window_add(w, WINDOW_REQUESTS, n);
}

static int64_t wait_at(struct window *w, int64_t mono_ms, int64_t limit)
{
    window_move(w, at(mono_ms));
    return window_minute_wait(w, WINDOW_REQUESTS, at(mono_ms), limit);
}

static void a_minute_waits_exactly_until_there_is_room(void **state)
{
    static const struct {
        const char *what;
        int64_t added_ms[4], now_ms, limit, wait_ms;
    } table[] = {
        { "nothing counted", { -1 }, 5000, 1, 0 },
        { "below the limit", { 1000, -1 }, 5000, 2, 0 },
        { "at the limit", { 1000, 2000, -1 }, 5000, 2, 57000 },
        { "at the limit, within one second", { 1500, 1900, -1 }, 1999, 2, 60001 },
        { "above the limit: the two oldest must pass", { 1000, 2000, 9000, -1 }, 10000, 2, 53000 },
        { "a millisecond before the turn", { 1000, 2000, -1 }, 61999, 2, 1 },
        { "at the turn", { 1000, 2000, -1 }, 62000, 2, 0 },
        { "60 seconds later it still counts when it came late in its second", { 1999, -1 }, 61998, 1, 2 },
        { "long after", { 1000, 2000, -1 }, 9000000, 1, 0 },
        { "the first second of a clock", { 0, -1 }, 0, 1, 61000 },
        { "at a large age", { 1000000000000, -1 }, 1000000000999, 1, 60001 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct window w = { 0 };
        int64_t wait_ms;

        for (size_t k = 0; table[i].added_ms[k] >= 0 && k < 4; k++)
            add_at(&w, table[i].added_ms[k], 1);
        wait_ms = wait_at(&w, table[i].now_ms, table[i].limit);
        if (wait_ms != table[i].wait_ms)
            fail_msg("%s: waits %lld ms, not %lld", table[i].what, (long long)wait_ms, (long long)table[i].wait_ms);
    }
}

static void what_is_taken_back_counts_no_more_and_nothing_falls_below_zero(void **state)
{
    struct window w = { 0 };

    add_at(&w, 1000, 2);
    add_at(&w, 5000, 1);
    window_take_back(&w, WINDOW_REQUESTS, 2);
    assert_int_equal(w.minute[WINDOW_REQUESTS], 1);
    assert_int_equal(w.day[WINDOW_REQUESTS], 1);
    assert_int_equal(wait_at(&w, 6000, 1), 56000); /* the newest was subtracted first */
    (void)wait_at(&w, 70000, 1);
    window_take_back(&w, WINDOW_REQUESTS, 1);
    window_take_back(&w, WINDOW_REQUESTS, 1);
    assert_int_equal(w.minute[WINDOW_REQUESTS], 0);
    assert_int_equal(w.day[WINDOW_REQUESTS], 0);
    add_at(&w, 71000, 1);
    assert_int_equal(wait_at(&w, 71000, 1), 61000);
}

static void after_the_wait_there_is_room_and_not_a_millisecond_earlier(void **state)
{
    for (int64_t now_ms = 120000; now_ms < 200000; now_ms += 777) {
        struct window w = { 0 };
        int64_t wait_ms;

        for (int64_t added_ms = 60000; added_ms < now_ms; added_ms += 1234)
            add_at(&w, added_ms, 1 + added_ms % 3);
        wait_ms = wait_at(&w, now_ms, 20);
        assert_true(wait_ms > 0);
        assert_int_equal(wait_at(&w, now_ms + wait_ms - 1, 20), 1);
        assert_int_equal(wait_at(&w, now_ms + wait_ms, 20), 0);
    }
}

static void no_sixty_seconds_hold_more_than_the_limit(void **state)
{
    struct window w = { 0 };
    int64_t taken_ms[4096];
    size_t n = 0;

    for (int64_t now_ms = 0; now_ms < 400000; now_ms += 137) {
        if (wait_at(&w, now_ms, 25) > 0)
            continue;
        add_at(&w, now_ms, 1);
        taken_ms[n++] = now_ms;
    }
    assert_true(n >= 25 * 6);
    for (size_t i = 25; i < n; i++)
        assert_true(taken_ms[i] - taken_ms[i - 25] >= 60000);
}

static void what_was_added_leaves_the_sum_once(void **state)
{
    struct window w = { 0 };

    for (int64_t second = 0; second < 1000; second++)
        add_at(&w, second * 1000, second);
    assert_int_equal(w.minute[WINDOW_REQUESTS], (939 + 999) * 61 / 2);
    window_move(&w, at(1060000));
    assert_int_equal(w.minute[WINDOW_REQUESTS], 0);
}

static void a_minute_that_goes_back_forgets_nothing(void **state)
{
    struct window w = { 0 };

    add_at(&w, 100000, 2);
    assert_int_equal(wait_at(&w, 90000, 2), 71000);
    add_at(&w, 90000, 1);
    assert_int_equal(w.minute[WINDOW_REQUESTS], 3);
    assert_int_equal(wait_at(&w, 161000, 3), 0);
}

static void a_day_ends_at_midnight_of_utc(void **state)
{
    static const struct {
        const char *what;
        int64_t added, now, limit, wait;
    } table[] = {
        { "below", 20000 * DAY, 20000 * DAY + 5, 2, 0 },
        { "at the first millisecond", 20000 * DAY, 20000 * DAY, 1, DAY },
        { "a millisecond before midnight", 20000 * DAY, 20001 * DAY - 1, 1, 1 },
        { "midnight", 20000 * DAY, 20001 * DAY, 1, 0 },
        { "some days later", 20000 * DAY, 20005 * DAY, 1, 0 },
        { "the clock goes back over midnight: the later day goes on", 20001 * DAY, 20001 * DAY - 3000, 1, DAY + 3000 },
        { "the clock goes back by two days: that day begins at nothing", 20002 * DAY, 20000 * DAY, 1, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct window_now added = { 0, table[i].added }, now = { 0, table[i].now };
        struct window w = { 0 };

        window_move(&w, added);
        window_add(&w, WINDOW_TOKENS, 1);
        window_move(&w, now);
        if (window_day_wait(&w, WINDOW_TOKENS, now, table[i].limit) != table[i].wait)
            fail_msg("%s: waits %lld ms", table[i].what,
                     (long long)window_day_wait(&w, WINDOW_TOKENS, now, table[i].limit));
    }
}

static void units_and_windows_do_not_mix(void **state)
{
    struct window w = { 0 };

    window_move(&w, at(1000));
    window_add(&w, WINDOW_REQUESTS, 3);
    window_add(&w, WINDOW_TOKENS, 500);
    assert_int_equal(w.minute[WINDOW_REQUESTS], 3);
    assert_int_equal(w.day[WINDOW_TOKENS], 500);
    window_move(&w, at(120000));
    assert_int_equal(w.minute[WINDOW_TOKENS], 0);
    assert_int_equal(w.day[WINDOW_TOKENS], 500);
    assert_int_equal(w.day[WINDOW_REQUESTS], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_waits_exactly_until_there_is_room),
        cmocka_unit_test(what_is_taken_back_counts_no_more_and_nothing_falls_below_zero),
        cmocka_unit_test(after_the_wait_there_is_room_and_not_a_millisecond_earlier),
        cmocka_unit_test(no_sixty_seconds_hold_more_than_the_limit),
        cmocka_unit_test(what_was_added_leaves_the_sum_once),
        cmocka_unit_test(a_minute_that_goes_back_forgets_nothing),
        cmocka_unit_test(a_day_ends_at_midnight_of_utc),
        cmocka_unit_test(units_and_windows_do_not_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
