#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void times_are_shown_as_iso_8601_in_utc(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { 1, "1970-01-01T00:00:00.001Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { -1000, "1969-12-31T23:59:59.000Z" },
        { 1795167125682, "2026-11-20T09:32:05.682Z" },
        { 951782400000, "2000-02-29T00:00:00.000Z" },
        { 253402300799999, "9999-12-31T23:59:59.999Z" },
        { 253402300800000, "9999-12-31T23:59:59.999Z" },
        { -62167219200000, "0000-01-01T00:00:00.000Z" },
        { -62167219200001, "0000-01-01T00:00:00.000Z" },
        { INT64_MAX, "9999-12-31T23:59:59.999Z" },
        { INT64_MIN, "0000-01-01T00:00:00.000Z" },
    };
    char text[TIME_TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        clock_format(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void what_was_shown_reads_back_the_same(void **state)
{
    char text[TIME_TEXT_SIZE];
    int64_t back;

    for (int64_t ms = -62167219200000; ms <= 253402300799999; ms += 86400000LL * 97 + 12345677) {
        clock_format(ms, text);
        assert_int_equal(clock_parse(slice_of(text), &back), 0);
        assert_int_equal(back, ms);
    }
}

static void the_forms_of_iso_8601_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        { "1970-01-01", 0 },
        { "1970-01-02", 86400000 },
        { "1970-01-01T00:00", 0 },
        { "1970-01-01T00:01:02", 62000 },
        { "1970-01-01 00:01:02", 62000 },
        { "1970-01-01t00:00:01z", 1000 },
        { "1970-01-01T00:00:00.5", 500 },
        { "1970-01-01T00:00:00.05Z", 50 },
        { "1970-01-01T00:00:00.123456789Z", 123 },
        { "1970-01-01T00:00:00.000999999999999999Z", 0 },
        { "1970-01-01T02:00:00+02:00", 0 },
        { "1969-12-31T18:30:00-05:30", 0 },
        { "1970-01-01T00:00Z", 0 },
        { "2024-02-29", 1709164800000 },
        { "2026-11-20T09:32:05.682Z", 1795167125682 },
    };
    int64_t ms;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ms = -1;
        if (clock_parse(slice_of(cases[i].text), &ms) != 0 || ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].text, (long long)ms);
    }
}

static void everything_else_is_refused_and_leaves_the_result_alone(void **state)
{
    static const char *const cases[] = {
        "",
        "2026",
        "2026-11",
        "2026-1-01",
        "26-11-20",
        "2026-00-10",
        "2026-13-01",
        "2026-11-00",
        "2026-11-31",
        "2023-02-29",
        "1900-02-29",
        "2026-11-20T",
        "2026-11-20T09",
        "2026-11-20T24:00",
        "2026-11-20T09:60",
        "2026-11-20T09:32:60",
        "2026-11-20T09:32:",
        "2026-11-20T09:32:05.",
        "2026-11-20T09:32:05.Z",
        "2026-11-20T09:32:05,5Z",
        "2026-11-20T09:32:05ZZ",
        "2026-11-20T09:32:05Z ",
        " 2026-11-20",
        "2026-11-20X09:32:05",
        "2026-11-20T09:32:05+",
        "2026-11-20T09:32:05+02",
        "2026-11-20T09:32:05+24:00",
        "2026-11-20T09:32:05+02:60",
        "2026-11-20T09:32:05+0200",
        "2026-11-20Z",
        "-2026-11-20",
        "+2026-11-20",
        "yesterday",
        "1795167125682",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (clock_parse(slice_of(cases[i]), &ms) != -EINVAL)
            fail_msg("%s", cases[i]);
    }
    assert_int_equal(clock_parse((struct slice){ 0 }, &ms), -EINVAL);
    assert_int_equal(clock_parse((struct slice){ "2026-11-20\0", 11 }, &ms), -EINVAL);
    assert_int_equal(ms, 42);
}

static void the_clocks_run(void **state)
{
    int64_t before_us = clock_mono_us(), before_ms = clock_mono_ms(), wall, now;
    char text[TIME_TEXT_SIZE];

    assert_true(clock_mono_us() >= before_us);
    assert_true(before_ms >= before_us / 1000);
    clock_now_text(text);
    assert_int_equal(clock_parse(slice_of(text), &now), 0);
    wall = clock_wall_ms();
    assert_true(wall >= now && wall - now < 60000);
    assert_true(wall > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_shown_as_iso_8601_in_utc),
        cmocka_unit_test(what_was_shown_reads_back_the_same),
        cmocka_unit_test(the_forms_of_iso_8601_are_read),
        cmocka_unit_test(everything_else_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(the_clocks_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
