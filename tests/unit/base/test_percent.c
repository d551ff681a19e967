#include "base/percent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static int new_arena(void **state)
{
    *state = arena_new();
    return 0;
}

static int free_arena(void **state)
{
    *state = arena_free(*state);
    return 0;
}

struct decode_case {
    struct slice in;
    bool plus_is_space;
    const char *out; /* NULL: refused */
    const char *says;
};

static const struct decode_case decodes[] = {
    { SLICE_LIT(""), false, "", NULL },
    { SLICE_LIT("plain-1.2_3~4"), false, "plain-1.2_3~4", NULL },
    { SLICE_LIT("a%20b"), false, "a b", NULL },
    { SLICE_LIT("a+b"), false, "a+b", NULL },
    { SLICE_LIT("a+b%2B"), true, "a b+", NULL },
    { SLICE_LIT("%e2%82%AC"), false, "\xE2\x82\xAC", NULL },
    { SLICE_LIT("\xC3\xA9"), false, "\xC3\xA9", NULL },
    { SLICE_LIT("%2541"), false, "%41", NULL },
    { SLICE_LIT("%01%7f"), false, "\x01\x7F", NULL },
    { SLICE_LIT("%2e%2E%2F"), false, "../", NULL },
    { SLICE_LIT("%"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("a%4"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("%4g"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("%g4"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("%%41"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("% 41"), false, NULL, "two hexadecimal digits" },
    { SLICE_LIT("a%00b"), false, NULL, "NUL" },
    { SLICE_LIT("a\0b"), false, NULL, "NUL" },
    { SLICE_LIT("%ff"), false, NULL, "UTF-8" },
    { SLICE_LIT("%c0%af"), false, NULL, "UTF-8" },
    { SLICE_LIT("%ed%a0%80"), false, NULL, "UTF-8" },
    { SLICE_LIT("%e2%82"), false, NULL, "UTF-8" },
};

static void text_is_decoded_once_or_refused_with_the_reason(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(decodes); i++) {
        const struct decode_case *c = &decodes[i];
        struct err e = { 0 };
        char *out = NULL;
        int r = percent_decode(*state, c->in, c->plus_is_space, &out, &e);

        if (c->out) {
            assert_int_equal(r, 0);
            assert_string_equal(out, c->out);
        } else {
            assert_int_equal(r, -EINVAL);
            assert_null(out);
            assert_string_equal(e.code, "VALIDATION_ERROR");
            if (!strstr(e.text, c->says))
                fail_msg("%.*s: %s", (int)c->in.n, c->in.p, e.text);
        }
    }
}

static void encoding_leaves_only_unreserved_characters(void **state)
{
    struct buf out;

    buf_init(&out, 1024);
    percent_encode(&out, SLICE_LIT("az-AZ.09_~"));
    percent_encode(&out, SLICE_LIT(" /?&=+%\0\xC3\xA9"));
    assert_string_equal(buf_str(&out), "az-AZ.09_~%20%2F%3F%26%3D%2B%25%00%C3%A9");
    buf_clear(&out);
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
    struct buf out;
    char all[128], *back;

    for (int i = 1; i < 128; i++)
        all[i - 1] = (char)i;
    all[127] = '\0';
    buf_init(&out, 1024);
    percent_encode(&out, slice_of(all));
    for (int plus_is_space = 0; plus_is_space < 2; plus_is_space++) {
        assert_int_equal(percent_decode(*state, buf_slice(&out), plus_is_space, &back, NULL), 0);
        assert_string_equal(back, all);
    }
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_is_decoded_once_or_refused_with_the_reason, new_arena, free_arena),
        cmocka_unit_test(encoding_leaves_only_unreserved_characters),
        cmocka_unit_test_setup_teardown(what_is_encoded_decodes_to_the_same, new_arena, free_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
