#include "base/limits.h"
#include "base/utf8.h"
#include "speech/sentences.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct speech_sentences split_as(struct arena *a, const char *text, const char *language)
{
    struct speech_sentences s = { NULL, 0 };

    assert_int_equal(speech_sentences(a, slice_of(text), language, &s, NULL), 0);
    return s;
}

/* The sentences joined by bars. */
static const char *split(struct arena *a, const char *text, const char *language)
{
    struct speech_sentences s = split_as(a, text, language);
    const char *joined = "";

    for (size_t i = 0; i < s.n; i++)
        joined = arena_printf(a, "%s%s%.*s", joined, i ? "|" : "", (int)s.items[i].n, s.items[i].p);
    return joined;
}

static const struct {
    const char *language, *text, *wanted;
} cases[] = {
    { "en", "One. Two! Three? Four", "One.|Two!|Three?|Four" },
    { "en", "He said \"Go.\" Then he left.", "He said \"Go.\"|Then he left." },
    { "en", "What?! No... Really.", "What?!|No...|Really." },
    { "en", "It costs 3.50 dollars. Pay.", "It costs 3.50 dollars.|Pay." },
    { "en", "Mr. Smith met Dr. Jones. They ate.", "Mr. Smith met Dr. Jones.|They ate." },
    { "en", "J. R. Smith wrote it. So did I. He knew.", "J. R. Smith wrote it.|So did I.|He knew." },
    { "en", "See No. 5 there. I said no. Never.", "See No. 5 there.|I said no.|Never." },
    { "en", "Use e.g. Apples. Good.", "Use e.g. Apples.|Good." },
    { "en", "The U.S.A. is big. e.g. small", "The U.S.A. is big. e.g. small" },
    { "en", "Look at https://example.com/a.b?q=1&r=2.5 now. Done.",
      "Look at https://example.com/a.b?q=1&r=2.5 now.|Done." },
    { "en", "Write me@x.org. Thanks.", "Write me@x.org.|Thanks." },
    { "en", "1. First. 2. Second.", "1. First.|2. Second." },
    { "en", "a line\nanother\r\nthird", "a line|another|third" },
    { "en", "It ended in 2020. Then it began.", "It ended in 2020.|Then it began." },
    { "de", "Am 3. Mai kam er z.B. Frau Dr. Maier entgegen. Gut.",
      "Am 3. Mai kam er z.B. Frau Dr. Maier entgegen.|Gut." },
    { "fr", "M. Dupont est là. Mme. Blanc aussi.", "M. Dupont est là.|Mme. Blanc aussi." },
    { "ja", "今日は。元気ですか？はい！", "今日は。|元気ですか？|はい！" },
    { "zh", "他说：“走。”然后走了。", "他说：“走。”|然后走了。" },
    { "hi", "यह एक है। वह दो है।", "यह एक है।|वह दो है।" },
    { "ar", "كيف حالك؟ أنا بخير.", "كيف حالك؟|أنا بخير." },
    { "en", "...", "" },
    { "en", "", "" },
    { "en", " \n \n ", "" },
    { "en", "😀!!! Hi.", "Hi." },
};

static void texts_are_split_where_a_person_pauses(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();

        assert_string_equal(split(a, cases[i].text, cases[i].language), cases[i].wanted);
    }
}

static void no_piece_is_longer_than_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char text[20001];
    struct speech_sentences s;
    size_t n = 0;

    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = i % 40 == 38 ? ',' : i % 10 == 9 ? ' ' : (char)('a' + i % 26);
    text[sizeof(text) - 1] = '\0';
    s = split_as(a, text, "en");
    for (size_t i = 0; i < s.n; i++) {
        assert_true(utf8_length(s.items[i]) <= LIMIT_SPEECH_SENTENCE);
        assert_true(i + 1 == s.n || s.items[i].p[s.items[i].n - 1] == ','); /* at a clause */
        n += s.items[i].n;
    }
    assert_true(n > sizeof(text) * 9 / 10);
}

static void the_limit_is_exact_in_characters(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char text[3 * (LIMIT_SPEECH_SENTENCE + 1) + 1] = "";

    for (size_t i = 0; i < LIMIT_SPEECH_SENTENCE; i++)
        memcpy(text + 3 * i, "語", 4);
    assert_int_equal(split_as(a, text, "ja").n, 1);
    memcpy(text + 3 * LIMIT_SPEECH_SENTENCE, "語", 4);
    assert_int_equal(split_as(a, text, "ja").n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_split_where_a_person_pauses),
        cmocka_unit_test(no_piece_is_longer_than_the_limit),
        cmocka_unit_test(the_limit_is_exact_in_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
