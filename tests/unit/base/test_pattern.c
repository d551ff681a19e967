#include "base/limits.h"
#include "base/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static int search(const char *source, struct slice text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char why[PATTERN_WHY_SIZE];
    size_t n_steps = 0;
    const struct pattern *p = pattern_new(a, slice_of(source), why);

    if (!p)
        fail_msg("%s %s", source, why);
    return pattern_search(p, text, &n_steps, LIMIT_SCHEMA_STEPS);
}

/* Of ECMA-262, and not of Perl or PCRE2. tests/peers/json_schema.test.mjs compares thousands with JavaScript's. */
static void patterns_mean_what_they_mean_in_ecma_262(void **state)
{
    static const struct {
        const char *source, *text;
        bool is_match;
    } cases[] = {
        { "", "", true },
        { "b", "abc", true },
        { "^a$", "a\n", false },
        { "a.c", "a\nc", false },
        { "a.c", "a\rc", false },
        { "a.c",
          "a\xe2\x80\xa8"
          "c",
          false },
        { "^.$", "\xf0\x9f\x98\x80", true },
        { "^\\ud83d\\ude00$", "\xf0\x9f\x98\x80", true },
        { "^\\u{1f600}$", "\xf0\x9f\x98\x80", true },
        { "^\\s$", "\xef\xbb\xbf", true },
        { "^\\S$", "\xc2\xa0", false },
        { "^[\\S]$", "\xc2\xa0", false },
        { "^[^\\S]$", "\xc2\xa0", true },
        { "^\\d$", "\xd9\xa3", false },
        { "^\\w$", "\xc3\xa9", false },
        { "^\\v$", "\n", false },
        { "^\\v$", "\v", true },
        { "^[]$", "a", false },
        { "^[^]$", "\n", true },
        { "^[[:alpha:]]$", "a]", true },
        { "^[\\w-.]$", "-", true },
        { "^a{,2}$", "a{,2}", true },
        { "^\\x41\\cJ\\0$", "A", false },
        { "^\\/\\-$", "/-", true },
        { "^(?<n>a)\\k<n>\\1$", "aaa", true },
        { "^\\p{Letter}\\p{gc=Decimal_Number}\\P{Lu}\\p{Script=Greek}$",
          "\xc3\xa9"
          "1a\xce\xb1",
          true },
        { "(?<=a)b", "ab", true },
        { "(?<!a)b", "ab", false },
        { "^[^\\p{L}\\W]$", " ", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (search(cases[i].source, slice_of(cases[i].text)) != cases[i].is_match)
            fail_msg("%s %s", cases[i].source, cases[i].text);
    assert_int_equal(search("^\\0\\cJ$", (struct slice){ "\0\n", 2 }), 1);
}

static void what_ecma_262_does_not_have_is_refused(void **state)
{
    static const struct {
        const char *source, *why;
    } cases[] = {
        { "\\Z", "has the escape \\Z, which ECMA-262 does not have" },
        { "\\a", "has the escape \\a" },
        { "\\Qa\\E", "has the escape \\Q" },
        { "[\\B]", "\\B in a class" },
        { "[\\1]", "has the escape \\1" },
        { "\\01", "has the escape \\0" },
        { "\\", "ends in a backslash" },
        { "\\xg1", "names no character" },
        { "\\u{110000}", "names no character" },
        { "\\u{41", "names no character" },
        { "\\c1", "\\c without a letter" },
        { "\\pL", "without a property in braces" },
        { "\\p{Nothing}", "cannot be used" },
        { "(?i)a", "has a group (?i" },
        { "(?>a)", "has a group (?>" },
        { "(?R)", "has a group (?R" },
        { "(?", "has a group (?" },
        { "(*ACCEPT)", "nothing before it to repeat" },
        { "a++", "nothing before it to repeat" },
        { "*", "nothing before it to repeat" },
        { "a{2}{3}", "nothing before it to repeat" },
        { "a{65536}", "repeats more than 65535 times" },
        { "a{2,1}", "cannot be used" },
        { "(a", "cannot be used" },
        { "a)", "cannot be used" },
        { "[a", "cannot be used" },
        { "[b-a]", "cannot be used" },
        { "\\2(a)", "cannot be used" },
        { "(?<=a+)b", "cannot be used" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    char why[PATTERN_WHY_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_null(pattern_new(a, slice_of(cases[i].source), why));
        if (!strstr(why, cases[i].why))
            fail_msg("%s: %s", cases[i].source, why);
    }
    assert_null(pattern_new(a, (struct slice){ "a\0b", 3 }, why));
    assert_non_null(strstr(why, "holds a NUL"));
}

static struct slice repeat(struct arena *a, const char *piece, size_t n)
{
    size_t n_piece = strlen(piece);
    char *text = arena_alloc(a, n * n_piece + 1);

    for (size_t i = 0; i < n; i++)
        memcpy(text + i * n_piece, piece, n_piece);
    return (struct slice){ text, n * n_piece };
}

static void patterns_have_limits(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char why[PATTERN_WHY_SIZE], *nested;

    assert_non_null(pattern_new(a, repeat(a, "a", LIMIT_PATTERN_BYTES), why));
    assert_null(pattern_new(a, repeat(a, "a", LIMIT_PATTERN_BYTES + 1), why));
    assert_non_null(strstr(why, "is longer than 4096 bytes"));
    for (size_t n = LIMIT_PATTERN_GROUPS; n <= LIMIT_PATTERN_GROUPS + 1; n++) {
        nested = arena_printf(a, "%s%s", repeat(a, "(", n).p, repeat(a, ")", n).p);
        assert_int_equal(pattern_new(a, slice_of(nested), why) != NULL, n == LIMIT_PATTERN_GROUPS);
    }
    assert_non_null(strstr(why, "too deeply nested"));
    assert_non_null(pattern_new(a, SLICE_LIT("a{65535}"), why));
    assert_null(pattern_new(a, repeat(a, "\\S", LIMIT_PATTERN_BYTES / 2), why));
}

/* Each would take minutes, or for ever. */
static void a_search_ends_within_its_steps(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice text = repeat(a, "a", 100000);
    static const char *const sources[] = { "^(a+)+$!",
                                           "(a*)*b",
                                           "(?:a?){30}a{30}!",
                                           "[ab]+c",
                                           "(.*)\\1c",
                                           "(?=(a+))\\1*c",
                                           "(?:a|aa)+$b",
                                           "[ab]{50000}c|[^a]{9}d",
                                           "(?<=a{200})c|a*a*a*b" };
    char why[PATTERN_WHY_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct pattern *p = pattern_new(a, slice_of(sources[i]), why);
        size_t n_steps = 0;
        int r = pattern_search(p, text, &n_steps, LIMIT_SCHEMA_STEPS);

        assert_true(r == 0 || r == -E2BIG || r == -ENOMEM);
        if (r == -E2BIG)
            assert_true(n_steps > LIMIT_SCHEMA_STEPS);
    }
}

static void a_search_that_needs_too_much_memory_ends(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(search("^(?:(a)|(b)|(c)|(d)|(e)|(f)|(g))*$", repeat(a, "a", 100)), 1);
    assert_int_equal(search("^(?:(a)|(b)|(c)|(d)|(e)|(f)|(g))*$", repeat(a, "a", 60000)), -ENOMEM);
}

static void steps_add_up_over_searches(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char why[PATTERN_WHY_SIZE];
    const struct pattern *p = pattern_new(a, SLICE_LIT("^a+$"), why);
    size_t n_steps = 0, n_once;

    assert_int_equal(pattern_search(p, SLICE_LIT("aaa"), &n_steps, 1000), 1);
    n_once = n_steps;
    assert_in_range(n_once, 1, 20);
    assert_int_equal(pattern_search(p, SLICE_LIT("aaa"), &n_steps, 2 * n_once), 1);
    assert_int_equal(n_steps, 2 * n_once);
    assert_int_equal(pattern_search(p, SLICE_LIT("aaa"), &n_steps, 3 * n_once - 1), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_mean_in_ecma_262),
        cmocka_unit_test(what_ecma_262_does_not_have_is_refused),
        cmocka_unit_test(patterns_have_limits),
        cmocka_unit_test(a_search_ends_within_its_steps),
        cmocka_unit_test(a_search_that_needs_too_much_memory_ends),
        cmocka_unit_test(steps_add_up_over_searches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
