#include "base/visible.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *shown(struct arena *a, struct slice text, enum visible_form form)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    visible_add(&out, text, form);
    return buf_to_arena(&out, a);
}

static const struct {
    const char *text, *line, *json;
} what_cases[] = {
    { "", "", "" },
    { "plain ~ text", "plain ~ text", "plain ~ text" },
    { "Gr\xc3\xbc\xc3\x9f dich \xe2\x80\x94 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x94\xa5",
      "Gr\xc3\xbc\xc3\x9f dich \xe2\x80\x94 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x94\xa5", NULL },
    { "a\x1b]0;owned\x07"
      "b",
      "a\\u001b]0;owned\\u0007b", NULL },
    { "a\x7f"
      "b",
      "a\\u007fb", NULL },
    { "a\xc2\x9b"
      "31mb",
      "a\\u009b31mb", NULL }, /* CSI as one C1 character */
    { "a\xc2\x80"
      "b\xc2\xa0"
      "c",
      "a\\u0080b\xc2\xa0"
      "c",
      NULL }, /* the last of C1 is 9f */
    { "a\xe2\x80\xae"
      "gpj.exe",
      "a\\u202egpj.exe", NULL },
    { "\xe2\x81\xa6"
      "a\xe2\x81\xa9",
      "\\u2066a\\u2069", NULL },
    { "a\xe2\x80\xa8"
      "b\xe2\x80\xa9",
      "a\\u2028b\\u2029", NULL },
    { "a\xd8\x9c"
      "b\xe2\x80\x8e\xe2\x80\x8f",
      "a\\u061cb\\u200e\\u200f", NULL },
    { "pay\xe2\x80\x8bpal\xc2\xad\xef\xbb\xbf", "pay\\u200bpal\\u00ad\\ufeff", NULL },
    { "a\xe2\x80\x8d"
      "b\xe2\x80\x8c",
      "a\\u200db\\u200c", NULL }, /* joiners have no effect between ASCII characters */
    { "\xe2\x80\x8d\xd9\x85", "\\u200d\xd9\x85", NULL },
    { "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", NULL }, /* Persian */
    { "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
      NULL }, /* an emoji of two characters */
    { "\xd9\x85\xe2\x80\x8d\xe2\x80\x8d\xd9\x85", "\xd9\x85\\u200d\\u200d\xd9\x85", NULL },
    { "\xe3\x85\xa4\xe1\x85\x9f\xe1\xa0\x8e", "\\u3164\\u115f\\u180e", NULL },
    { "a\xf3\xa0\x81\x81", "a\\U000e0041", "a\\udb40\\udc41" },
    { "a\xff"
      "b\xc3",
      "a\\xffb\\xc3", "a\\ufffdb\\ufffd" },
    { "\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd" },
    { "a\rb", "a\\rb", "a\\u000db" },
    { "a\n\tb", "a\\n\\tb", "a\n\tb" },
};

static void what_steers_or_hides_is_escaped_and_all_else_stays(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(what_cases); i++) {
        assert_string_equal(shown(a, slice_of(what_cases[i].text), VISIBLE_LINE), what_cases[i].line);
        assert_string_equal(shown(a, slice_of(what_cases[i].text), VISIBLE_JSON),
                            what_cases[i].json ? what_cases[i].json : what_cases[i].line);
    }
    assert_string_equal(shown(a, SLICE_LIT("a\n\tb\rc"), VISIBLE_LINES), "a\n\tb\\rc");
    assert_string_equal(shown(a, (struct slice){ "a\0b", 3 }, VISIBLE_LINES), "a\\u0000b");
}

/* Every code point, one at a time. */
static void no_character_that_steers_is_left(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (uint32_t c = 0x80; c < 0x10000; c++) {
        const char text[] = { (char)(c < 0x800 ? 0xc0 | c >> 6 : 0xe0 | c >> 12),
                              (char)(0x80 | (c < 0x800 ? c & 0x3f : c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)) };
        struct slice s = { text, c < 0x800 ? 2 : 3 };
        bool must = c < 0xa0 || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 ||
                    c == 0x2029 || c == 0x200e || c == 0x200f;

        if (must && utf8_is_valid(s) && shown(a, s, VISIBLE_LINES)[0] != '\\')
            fail_msg("U+%04X is left as it is", c);
    }
}

static void any_bytes_become_text_that_stays_the_same(void **state)
{
    unsigned char bytes[64];

    for (size_t i = 0; i < 20000; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *once;

        random_bytes(bytes, sizeof(bytes));
        for (size_t k = 0; i % 2 && k < sizeof(bytes); k += 4)
            memcpy(bytes + k, "\xe2\x80", 2);
        once = shown(a, (struct slice){ (char *)bytes, sizeof(bytes) }, VISIBLE_LINE);
        assert_true(utf8_is_valid(slice_of(once)));
        assert_string_equal(shown(a, slice_of(once), VISIBLE_LINE), once);
        for (const char *c = once; *c; c++)
            assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    }
}

static void json_keeps_its_meaning(void **state)
{
    static const char text[] = "a\xe2\x80\xae\xc2\x9b\xf3\xa0\x81\x81\x7f\"\\\n";
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value;
    struct buf json;

    buf_init(&json, 1000);
    json_quote(&json, slice_of(text));
    assert_int_equal(json_parse(a, slice_of(shown(a, buf_slice(&json), VISIBLE_JSON)), &value, NULL), 0);
    assert_string_equal(json_cstr(value), text);
    buf_clear(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steers_or_hides_is_escaped_and_all_else_stays),
        cmocka_unit_test(no_character_that_steers_is_left),
        cmocka_unit_test(any_bytes_become_text_that_stays_the_same),
        cmocka_unit_test(json_keeps_its_meaning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
