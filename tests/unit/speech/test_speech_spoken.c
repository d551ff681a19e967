#include "speech/spoken.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct {
    const char *markdown, *wanted;
} cases[] = {
    { "Plain text.", "Plain text.\n" },
    { "two\nlines", "two lines\n" },
    { "a\n\nb", "a\nb\n" },
    { "# Title #\ntext", "Title\ntext\n" },
    { "Title\n=====\ntext", "Title\ntext\n" },
    { "**bold** and *soft* and __both__ and ~~gone~~", "bold and soft and both and gone\n" },
    { "2 * 3 is 6, 2*3 too, snake_case_name stays", "2 * 3 is 6, 2*3 too, snake_case_name stays\n" },
    { "- one\n- two\n* [x] three", "one\ntwo\nthree\n" },
    { "1. one\n2. two", "1. one\n2. two\n" },
    { "> quoted\n> text", "quoted text\n" },
    { "see [the page](https://x.org/a_b) now", "see the page now\n" },
    { "![a cat](cat.png) sits", "a cat sits\n" },
    { "[ref][1] and [2] and [^3]", "ref and [2] and\n" },
    { "<https://x.org> and <b>fat</b> a<br>b, 1 < 2 > 0", "https://x.org and fat a b, 1 < 2 > 0\n" },
    { "use `printf` here", "use printf here\n" },
    { "before\n```python\nx = 1\n\n# no\n```\nafter", "before\nCode block.\nafter\n" },
    { "~~~\nopen", "Code block.\n" },
    { "````\n```\n````\nafter", "Code block.\nafter\n" },
    { "| a | b |\n|---|---|\n| 1 | 2 |", "a, b\n1, 2\n" },
    { "a\n\n---\n\nb", "a\nb\n" },
    { "\\*not soft\\* C:\\temp", "*not soft* C:\\temp\n" },
    { "no [link", "no [link\n" },
    { "", "" },
    { "***", "" },
};

static void markdown_is_read_as_a_person_would(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct slice text = speech_spoken(a, slice_of(cases[i].markdown), "en");

        assert_string_equal(arena_slicedup(a, text), cases[i].wanted);
    }
}

static void code_is_announced_in_the_language_of_the_text(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_true(slice_eq_str(speech_spoken(a, SLICE_LIT("```\nx\n```"), "de-AT"), "Codeblock.\n"));
    assert_true(slice_eq_str(speech_spoken(a, SLICE_LIT("```\nx\n```"), "xx"), "Code block.\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markdown_is_read_as_a_person_would),
        cmocka_unit_test(code_is_announced_in_the_language_of_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
