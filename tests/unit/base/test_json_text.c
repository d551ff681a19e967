#include "base/json_text.h"

#include "base/arena.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* NULL: the text is no JSON. The copy is as large as the text, so that ASan sees a byte beyond. */
static const char *compact(struct arena *a, struct slice text)
{
    char *to = xcalloc(text.n, 1);
    size_t n = json_text_compact(text, to);
    char *out = n > 0 ? arena_strndup(a, to, n) : NULL;

    free(to);
    return out;
}

static void a_value_comes_back_without_the_blanks_between_its_parts(void **state)
{
    static const struct {
        const char *text, *compact;
    } cases[] = {
        { "{}", "{}" },
        { " [ ] ", "[]" },
        { "\t{ \"a b\" : [ 1 ,\r\n -2.50e+1 ] , \"\" : { } }\n", "{\"a b\":[1,-2.50e+1],\"\":{}}" },
        { "[true,false , null]", "[true,false,null]" },
        { "\" \\\" \\\\ \\/\\b\\f\\n\\r\\t\\u00aF \\ud800\"", "\" \\\" \\\\ \\/\\b\\f\\n\\r\\t\\u00aF \\ud800\"" },
        { "\"\xC3\xA9 \x7F\"", "\"\xC3\xA9 \x7F\"" },
        { "0", "0" },
        { " -0.0E-0 ", "-0.0E-0" },
        { "1e99999", "1e99999" },
        { "123456789012345678901234567890", "123456789012345678901234567890" },
        { "[[],{},\"\",0]", "[[],{},\"\",0]" },
        { "{\"a\":1,\"a\":1}", "{\"a\":1,\"a\":1}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *is = compact(a, slice_of(cases[i].text));

        if (!is || strcmp(is, cases[i].compact) != 0)
            fail_msg("%s is %s", cases[i].text, is ? is : "refused");
    }
}

static const char *const broken[] = {
    "",
    " ",
    "{,}",
    "[,]",
    "[1,]",
    "{\"a\":1,}",
    "[1 2]",
    "[1,,2]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\" 1}",
    "{1:2}",
    "{a:1}",
    "{null:1}",
    "{[]:1}",
    "{\"a\"::1}",
    "{:1}",
    "{\"a\",1}",
    "[\"a\":1]",
    "[:]",
    "]",
    "}",
    ",",
    ":",
    "[}",
    "{]",
    "[1}",
    "[[1]",
    "[1]]",
    "{\"a\":1",
    "{\"a\":",
    "[",
    "{",
    "{} {}",
    "{},{}",
    "1 2",
    "\"a\" 1",
    "1,",
    "{}:1",
    "tru",
    "truefalse",
    "True",
    "nul",
    "nulll",
    "undefined",
    "NaN",
    "-Infinity",
    "-",
    "+1",
    ".5",
    "1.",
    "01",
    "-01",
    "1e",
    "1e+",
    "1.e1",
    "0x1",
    "1_0",
    "\"",
    "\"a",
    "\"\\\"",
    "\"\\",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\U0041\"",
    "\"\n\"",
    "\"\x1f\"",
    "'a'",
    "//\n1",
    "/**/1",
    "\xEF\xBB\xBF"
    "1",
    "\v1",
    "[\f1]",
    "\"a\"\"b\"",
    "[1\"a\"]",
    "{\"a\"\"b\":1}",
    "[1[2]]",
    "{\"a\":1{}}",
    "[]{}",
};

static void what_the_grammar_does_not_allow_is_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *is = compact(a, slice_of(broken[i]));

        if (is)
            fail_msg("%s was taken for %s", broken[i], is);
    }
    assert_int_equal(json_text_compact(SLICE_LIT("\"a\0b\""), (char[5]){ 0 }), 0);
    assert_int_equal(json_text_compact(SLICE_LIT("1\0"), (char[2]){ 0 }), 0);
    assert_int_equal(json_text_compact((struct slice){ NULL, 0 }, (char[1]){ 0 }), 0);
}

static const char rich[] = "{\"a\\u00e9\":[1.5e-3,{\"b\":{\"c\":[[],\"x\\\\\"]}},true],\"\":[null,{}]}";

static void no_beginning_of_an_object_is_json(void **state)
{
    for (size_t n = 0; n < sizeof(rich) - 1; n++) {
        AUTO(arena_freep) struct arena *a = arena_new();

        assert_null(compact(a, (struct slice){ rich, n }));
    }
}

/* Each byte of a text is replaced by each of the bytes that have a meaning. */
static void a_changed_text_is_json_exactly_when_the_parser_takes_it(void **state)
{
    static const char meaning[] = "{}[],:\"\\01-+.eutfn \n\x01/b";

    for (size_t i = 0; i < (sizeof(rich) - 1) * (sizeof(meaning) - 1); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        char text[sizeof(rich)];
        struct json_value v;
        bool is_json;

        memcpy(text, rich, sizeof(rich));
        text[i / (sizeof(meaning) - 1)] = meaning[i % (sizeof(meaning) - 1)];
        is_json = json_parse(a, slice_of(text), &v, NULL) == 0;
        if ((compact(a, slice_of(text)) != NULL) != is_json)
            fail_msg("%s is %s", text, is_json ? "JSON" : "no JSON");
    }
}

static void any_depth_is_taken(void **state)
{
    enum { DEPTH = 200000 };
    AUTO(arena_freep) struct arena *a = arena_new();
    char *text = arena_alloc(a, 2 * DEPTH + 1);

    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    text[2 * (size_t)DEPTH] = '\0';
    assert_string_equal(compact(a, slice_of(text)), text);
    text[DEPTH - 1] = '{'; /* closed by a bracket */
    assert_null(compact(a, slice_of(text)));
    memset(text, '[', 2 * (size_t)DEPTH);
    assert_null(compact(a, slice_of(text)));
}

static void a_number_ends_where_its_grammar_does(void **state)
{
    assert_int_equal(json_text_number_bytes(SLICE_LIT("-12.50e+3,")), 9);
    assert_int_equal(json_text_number_bytes(SLICE_LIT("012")), 1);
    assert_int_equal(json_text_number_bytes(SLICE_LIT("1.")), 1);
    assert_int_equal(json_text_number_bytes(SLICE_LIT("1e-")), 1);
    assert_int_equal(json_text_number_bytes(SLICE_LIT("-")), 0);
    assert_int_equal(json_text_number_bytes(SLICE_LIT("")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_comes_back_without_the_blanks_between_its_parts),
        cmocka_unit_test(what_the_grammar_does_not_allow_is_refused),
        cmocka_unit_test(no_beginning_of_an_object_is_json),
        cmocka_unit_test(a_changed_text_is_json_exactly_when_the_parser_takes_it),
        cmocka_unit_test(any_depth_is_taken),
        cmocka_unit_test(a_number_ends_where_its_grammar_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
