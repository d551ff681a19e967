#include "speech/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct {
    const char *text, *usual, *wanted;
} cases[] = {
    { "Good morning, Zoë.", "en", "en" },
    { "", "en", "en" },
    { "1 + 2 = 3 \xe2\x9c\x93 \xf0\x9f\x98\x80", "en", "en" },
    { "Доброе утро", "en", "ru" },
    { "Добрий ранок", "uk", "uk" },
    { "Добро јутро", "sr-Cyrl", "sr-Cyrl" },
    { "Καλημέρα", "de-AT", "el" },
    { "בוקר טוב", "en", "he" },
    { "صباح الخير", "en", "ar" },
    { "صبح بخیر", "fa", "fa" },
    { "सुप्रभात", "en", "hi" },
    { "早上好", "en", "zh" },
    { "早上好", "ZH_tw", "ZH_tw" },
    { "早上好", "ja", "ja" },
    { "日本語の文章", "en", "ja" },
    { "日本語の文章", "zh", "ja" },
    { "안녕하세요", "en", "ko" },
    { "Good morning", "ru", "ru" },
    { "abcде", "en", "en" },
    { "abдеж", "en", "ru" },
    { "abде", "en", "en" },
    { "\xe1\x9e\x80\xe1\x9e\x81", "en", "en" }, /* Khmer, which nobody here speaks */
    { "Доброе утро", "", "ru" },
    { "Доброе утро", "r", "ru" },
    { "Доброе утро", "u", "ru" },
};

static void more_than_half_of_the_letters_decide(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(speech_language_of(slice_of(cases[i].text), cases[i].usual), cases[i].wanted);
}

/* The first and last code point of some ranges, and their neighbours. */
static void ranges_end_where_the_script_ends(void **state)
{
    assert_string_equal(speech_language_of(SLICE_LIT("\xd4\xaf"), "en"), "ru");         /* U+052F */
    assert_string_equal(speech_language_of(SLICE_LIT("\xd4\xb0"), "en"), "en");         /* U+0530 */
    assert_string_equal(speech_language_of(SLICE_LIT("\xed\x9e\xa3"), "en"), "ko");     /* U+D7A3 */
    assert_string_equal(speech_language_of(SLICE_LIT("\xed\x9e\xa4"), "en"), "en");     /* U+D7A4 */
    assert_string_equal(speech_language_of(SLICE_LIT("\xf0\xa0\x80\x80"), "en"), "en"); /* U+20000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_half_of_the_letters_decide),
        cmocka_unit_test(ranges_end_where_the_script_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
