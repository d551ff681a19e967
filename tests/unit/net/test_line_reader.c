#include "net/line_reader.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int note(void *arg, struct slice line)
{
    struct buf *out = arg;

    buf_add_slice(out, line);
    buf_add_char(out, ';');
    return 0;
}

static void lines_are_read_however_the_bytes_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "a\nbc\n", "a;bc;" }, { "a\r\n\r\n\nb", "a;b;" }, { "", "" }, { "\n", "" }, { "only", "only;" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].text) + 1; piece++) {
            size_t n = strlen(cases[i].text);
            struct line_reader reader;
            struct buf out;

            buf_init(&out, 100);
            line_reader_init(&reader, note, &out);
            for (size_t at = 0; at < n; at += piece)
                assert_int_equal(
                    line_reader_feed(&reader, (struct slice){ cases[i].text + at, MIN(piece, n - at) }, NULL), 0);
            assert_int_equal(line_reader_end(&reader), 0);
            assert_string_equal(buf_str(&out), cases[i].wanted);
            line_reader_clear(&reader);
            buf_clear(&out);
        }
}

static int feed(size_t n_bytes, bool is_whole)
{
    struct line_reader reader;
    struct buf text, out;
    struct err e = { 0 };
    int r;

    buf_init(&text, n_bytes + 1);
    buf_init(&out, n_bytes + 1);
    memset(buf_reserve(&text, n_bytes), 'x', n_bytes);
    text.n += n_bytes;
    if (is_whole)
        buf_add_char(&text, '\n');
    line_reader_init(&reader, note, &out);
    r = line_reader_feed(&reader, buf_slice(&text), &e);
    if (r == 0 && is_whole)
        assert_int_equal(out.n, n_bytes + 1);
    if (r < 0)
        assert_string_equal(e.code, "UPSTREAM_TOO_LARGE");
    line_reader_clear(&reader);
    buf_clear(&text);
    buf_clear(&out);
    return r;
}

static void a_line_is_never_cut(void **state)
{
    assert_int_equal(feed(LIMIT_SSE_EVENT, true), 0);
    assert_int_equal(feed(LIMIT_SSE_EVENT, false), 0);
    assert_int_equal(feed(LIMIT_SSE_EVENT + 1, true), -EMSGSIZE);
    assert_int_equal(feed(LIMIT_SSE_EVENT + 1, false), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_however_the_bytes_are_split),
        cmocka_unit_test(a_line_is_never_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
