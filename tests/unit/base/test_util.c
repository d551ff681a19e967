#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void freep_frees_and_forgets(void **state)
{
    char *s = xstrdup("text");

    freep(&s);
    assert_null(s);
    freep(&s);
    assert_null(s);
}

static void take_hands_over_and_leaves_nothing(void **state)
{
    AUTO(freep) char *scoped = xstrdup("text");
    char *taken = TAKE(scoped);

    assert_null(scoped);
    assert_string_equal(taken, "text");
    free(taken);
}

static void memory_is_zeroed_and_never_null_even_for_nothing(void **state)
{
    static const char zeros[64];
    AUTO(freep) char *some = xcalloc(8, 8);
    AUTO(freep) char *nothing = xcalloc(0, 0);
    AUTO(freep) char *shrunk = xrealloc(xcalloc(1, 8), 0);

    assert_memory_equal(some, zeros, 64);
    assert_non_null(nothing);
    assert_non_null(shrunk);
}

static void realloc_keeps_what_was_there(void **state)
{
    AUTO(freep) char *s = xrealloc(xstrdup("abc"), 1000);

    assert_string_equal(s, "abc");
}

static void whole_numbers_are_written_without_an_exponent(void **state)
{
    static const struct {
        double d;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { 1, "1" },
        { -10, "-10" },
        { 1e6, "1000000" },
        { 1e12, "1000000000000" },
        { 9007199254740992.0, "9007199254740992" },
        { 0.5, "0.5" },
        { -0.25, "-0.25" },
        { 1e300, "1e+300" },
        { -1e300, "-1e+300" },
    };
    char text[NUMBER_TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(number_text(text, cases[i].d), cases[i].text);
}

static void every_int_is_written(void **state)
{
    const struct {
        int64_t i;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { 9, "9" },
        { 10, "10" },
        { -1, "-1" },
        { INT64_MAX, "9223372036854775807" },
        { INT64_MIN, "-9223372036854775808" },
    };
    char text[INT_TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(int_text(text, cases[i].i), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freep_frees_and_forgets),
        cmocka_unit_test(take_hands_over_and_leaves_nothing),
        cmocka_unit_test(memory_is_zeroed_and_never_null_even_for_nothing),
        cmocka_unit_test(realloc_keeps_what_was_there),
        cmocka_unit_test(whole_numbers_are_written_without_an_exponent),
        cmocka_unit_test(every_int_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
