#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct utf8_case {
    const char *what;
    struct slice bytes;
    bool is_valid;
    size_t n_characters;
};

static const struct utf8_case cases[] = {
    { "nothing", { "", 0 }, true, 0 },
    { "a NUL is a character", { "\0", 1 }, true, 1 },
    { "ASCII longer than one word", { "hello, hello, hello", 19 }, true, 19 },
    { "ASCII then two bytes behind a word", { "12345678\xC3\xA9", 10 }, true, 9 },
    { "last one-byte character", { "\x7F", 1 }, true, 1 },
    { "first two-byte character", { "\xC2\x80", 2 }, true, 1 },
    { "overlong two bytes", { "\xC1\xBF", 2 }, false, 0 },
    { "last two-byte character", { "\xDF\xBF", 2 }, true, 1 },
    { "first three-byte character", { "\xE0\xA0\x80", 3 }, true, 1 },
    { "overlong three bytes", { "\xE0\x9F\xBF", 3 }, false, 0 },
    { "last before the surrogates", { "\xED\x9F\xBF", 3 }, true, 1 },
    { "first surrogate", { "\xED\xA0\x80", 3 }, false, 0 },
    { "last surrogate", { "\xED\xBF\xBF", 3 }, false, 0 },
    { "first after the surrogates", { "\xEE\x80\x80", 3 }, true, 1 },
    { "last three-byte character", { "\xEF\xBF\xBF", 3 }, true, 1 },
    { "first four-byte character", { "\xF0\x90\x80\x80", 4 }, true, 1 },
    { "overlong four bytes", { "\xF0\x8F\xBF\xBF", 4 }, false, 0 },
    { "the last character of all", { "\xF4\x8F\xBF\xBF", 4 }, true, 1 },
    { "beyond U+10FFFF", { "\xF4\x90\x80\x80", 4 }, false, 0 },
    { "a first byte that never is one", { "\xF5\x80\x80\x80", 4 }, false, 0 },
    { "0xFF", { "\xFF", 1 }, false, 0 },
    { "a lone continuation", { "\x80", 1 }, false, 0 },
    { "two bytes cut", { "\xC3", 1 }, false, 0 },
    { "three bytes cut", { "\xE2\x82", 2 }, false, 0 },
    { "four bytes cut", { "\xF0\x9F\x98", 3 }, false, 0 },
    { "third byte is no continuation", { "\xE2\x82\x41", 3 }, false, 0 },
    { "fourth byte is no continuation", { "\xF0\x9F\x98\xC0", 4 }, false, 0 },
    { "mixed lengths", { "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", 11 }, true, 5 },
    { "bad byte after a long valid part", { "0123456789abcdef\xFE", 17 }, false, 0 },
};

static void text_is_valid_exactly_when_rfc_3629_says_so(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (utf8_is_valid(cases[i].bytes) != cases[i].is_valid)
            fail_msg("%s", cases[i].what);
}

static void length_counts_characters_not_bytes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (cases[i].is_valid && utf8_length(cases[i].bytes) != cases[i].n_characters)
            fail_msg("%s: %zu", cases[i].what, utf8_length(cases[i].bytes));
}

static void a_character_reports_its_bytes_and_anything_else_zero(void **state)
{
    assert_int_equal(utf8_char_bytes(SLICE_LIT("")), 0);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("ab")), 1);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("\xC3\xA9xyz")), 2);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("\xE2\x82\xAC")), 3);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("\xF0\x9F\x98\x80")), 4);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("\x80")), 0);
    assert_int_equal(utf8_char_bytes(SLICE_LIT("\xE2\x82")), 0);
}

static void a_character_has_the_code_point_that_its_bytes_stand_for(void **state)
{
    static const struct {
        struct slice bytes;
        uint32_t code_point;
    } edges[] = {
        { { "\0", 1 }, 0 },
        { { "\x7F", 1 }, 0x7F },
        { { "\xC2\x80", 2 }, 0x80 },
        { { "\xDF\xBF", 2 }, 0x7FF },
        { { "\xE0\xA0\x80", 3 }, 0x800 },
        { { "\xEF\xBF\xBF", 3 }, 0xFFFF },
        { { "\xF0\x90\x80\x80", 4 }, 0x10000 },
        { { "\xF4\x8F\xBF\xBF", 4 }, 0x10FFFF },
    };

    for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
        assert_int_equal(utf8_code_point(edges[i].bytes.p, utf8_char_bytes(edges[i].bytes)), edges[i].code_point);
}

static void a_head_ends_with_a_whole_character(void **state)
{
    const struct slice text = SLICE_LIT("a\xC3\xA9\xF0\x9F\x98\x80");
    static const size_t n_by_max[] = { 0, 1, 1, 3, 3, 3, 3, 7, 7 };

    for (size_t max = 0; max < ARRAY_SIZE(n_by_max); max++)
        assert_int_equal(utf8_head(text, max).n, n_by_max[max]);
    assert_int_equal(utf8_head(SLICE_LIT(""), 4).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_valid_exactly_when_rfc_3629_says_so),
        cmocka_unit_test(length_counts_characters_not_bytes),
        cmocka_unit_test(a_character_reports_its_bytes_and_anything_else_zero),
        cmocka_unit_test(a_character_has_the_code_point_that_its_bytes_stand_for),
        cmocka_unit_test(a_head_ends_with_a_whole_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
