#include "base/limits.h"
#include "http/chunked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

enum { MAX_BODY = 20 };

struct decoded {
    enum http_refusal why;
    bool is_done;
    size_t used;
    char body[MAX_BODY + 1];
};

static struct decoded decode(struct slice text, size_t piece)
{
    struct decoded got = { 0 };
    struct http_chunked state = { 0 };
    struct buf body;

    buf_init(&body, MAX_BODY);
    while (got.used < text.n && !got.why && !http_chunked_is_done(&state)) {
        size_t used = 0;

        got.why =
            http_chunked_feed(&state, (struct slice){ text.p + got.used, MIN(piece, text.n - got.used) }, &body, &used);
        got.used += used;
    }
    got.is_done = http_chunked_is_done(&state);
    snprintf(got.body, sizeof(got.body), "%s", buf_str(&body));
    buf_clear(&body);
    return got;
}

static void bodies_are_decoded_in_pieces_of_any_size(void **state)
{
    static const struct {
        const char *text, *body; /* body NULL: refused */
        enum http_refusal why;
    } cases[] = {
        { "0\r\n\r\n", "", 0 },
        { "3\r\nabc\r\n0\r\n\r\n", "abc", 0 },
        { "00A\r\n0123456789\r\n1;a=b\r\nx\r\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n", "0123456789x", 0 },
        { "1 ; ext=\"q\"\r\na\r\n0\r\n\r\n", "a", 0 },
        { "a\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", 0 },
        { "\r\n", NULL, REFUSE_CHUNK },
        { "g\r\n", NULL, REFUSE_CHUNK },
        { "-1\r\n", NULL, REFUSE_CHUNK },
        { "+1\r\n", NULL, REFUSE_CHUNK },
        { "0x1\r\n", NULL, REFUSE_CHUNK },
        { " 1\r\n", NULL, REFUSE_CHUNK },
        { "1\n", NULL, REFUSE_CHUNK },
        { "1\rx", NULL, REFUSE_CHUNK },
        { "1\r\nab", NULL, REFUSE_CHUNK },
        { "1\r\na\n", NULL, REFUSE_CHUNK },
        { "1\r\na\rx", NULL, REFUSE_CHUNK },
        { "1;a\nb", NULL, REFUSE_CHUNK },
        { "000000001\r\n", NULL, REFUSE_CHUNK },
        { "ffffffff\r\n", NULL, REFUSE_BODY_BYTES },
        { "15\r\n", NULL, REFUSE_BODY_BYTES },
        { "14\r\n01234567890123456789\r\n1\r\n", NULL, REFUSE_BODY_BYTES },
        { "0\r\nx\n", NULL, REFUSE_TRAILER },
        { "0\r\n\x01", NULL, REFUSE_TRAILER },
        { "0\r\n\rx", NULL, REFUSE_TRAILER },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t piece = 1; piece < 30; piece++) {
            struct decoded got = decode(slice_of(cases[i].text), piece);

            if (got.why != cases[i].why)
                fail_msg("wanted refusal %d, got %d for: %s", cases[i].why, got.why, cases[i].text);
            assert_int_equal(got.is_done, cases[i].body != NULL);
            if (cases[i].body)
                assert_string_equal(got.body, cases[i].body);
        }
    }
}

static void what_follows_the_body_is_left_alone(void **state)
{
    struct decoded got = decode(SLICE_LIT("1\r\na\r\n0\r\n\r\nGET /"), 100);

    assert_true(got.is_done);
    assert_int_equal(got.used, 11);
}

static void extensions_and_trailers_are_bounded(void **state)
{
    static const char *const starts[] = { "1;", "0\r\n" };
    static const enum http_refusal wanted[] = { REFUSE_CHUNK, REFUSE_TRAILER };

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        size_t n = strlen(starts[i]) + LIMIT_HEADER_BYTES;
        char *text = malloc(n + 1);

        memset(text, 'x', n + 1);
        memcpy(text, starts[i], strlen(starts[i]));
        assert_int_equal(decode((struct slice){ text, n }, n).why, REFUSE_NONE);
        assert_int_equal(decode((struct slice){ text, n + 1 }, n).why, wanted[i]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_in_pieces_of_any_size),
        cmocka_unit_test(what_follows_the_body_is_left_alone),
        cmocka_unit_test(extensions_and_trailers_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
