#include "net/sse_reader.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Every event as "event|id|data;". */
static int note(void *arg, const struct sse_event *ev)
{
    struct buf *out = arg;

    buf_add_slice(out, ev->event);
    buf_add_char(out, '|');
    buf_add_slice(out, ev->id);
    buf_add_char(out, '|');
    buf_add_slice(out, ev->data);
    buf_add_char(out, ';');
    return 0;
}

static void feed_in_pieces(const char *text, size_t piece, struct buf *out)
{
    struct sse_reader reader;
    size_t n = strlen(text);

    buf_init(out, 4096);
    sse_reader_init(&reader, note, out);
    for (size_t at = 0; at < n; at += piece)
        assert_int_equal(sse_reader_feed(&reader, (struct slice){ text + at, MIN(piece, n - at) }, NULL), 0);
    sse_reader_clear(&reader);
}

static void events_are_read_however_the_bytes_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "data: a\n\n", "message||a;" },
        { "data:a\r\n\r\ndata: b\r\rdata:  c\n\n", "message||a;message||b;message|| c;" },
        { "event: x\nid: 7\ndata: a\ndata: b\ndata\ndata: c\n\ndata: d\n\n", "x|7|a\nb\n\nc;message|7|d;" },
        { ": comment\n:\n\nevent: lost\n\ndata: kept\n\n", "message||kept;" },
        { "\xef\xbb\xbf"
          "data: mark\n\n",
          "message||mark;" },
        { "\n\xef\xbb\xbf"
          "data: not a field\n\ndata: x\n\n",
          "message||x;" },
        { "\xef\xbb"
          "data: half a mark\n\ndata: x\n\n",
          "message||x;" },
        { "data\n\n", "message||;" },
        { "retry: 10\nunknown: x\ndata: a:b: c\n\n", "message||a:b: c;" },
        { "data: not ended", "" },
        { "\n\n\ndata: a\n\n\n\n", "message||a;" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
            struct buf out;

            feed_in_pieces(cases[i].text, piece, &out);
            assert_string_equal(buf_str(&out), cases[i].wanted);
            buf_clear(&out);
        }
}

static int stop_at_second(void *arg, const struct sse_event *ev)
{
    int *n = arg;

    return ++*n == 2 ? -ECANCELED : 0;
}

static void a_callback_that_says_no_stops_the_reading(void **state)
{
    struct sse_reader reader;
    int n = 0;

    sse_reader_init(&reader, stop_at_second, &n);
    assert_int_equal(sse_reader_feed(&reader, SLICE_LIT("data: 1\n\ndata: 2\n\ndata: 3\n\n"), NULL), -ECANCELED);
    assert_int_equal(n, 2);
    sse_reader_clear(&reader);
}

static int feed_data(size_t n_bytes, size_t n_lines)
{
    char *line = xcalloc(1, n_bytes + 1);
    struct sse_reader reader;
    struct buf out;
    struct err e = { 0 };
    int r = 0;

    memset(line, 'x', n_bytes);
    buf_init(&out, 2 * LIMIT_SSE_EVENT);
    sse_reader_init(&reader, note, &out);
    for (size_t i = 0; i < n_lines && r == 0; i++) {
        r = sse_reader_feed(&reader, SLICE_LIT("data:"), &e);
        if (r == 0)
            r = sse_reader_feed(&reader, (struct slice){ line, n_bytes }, &e);
        if (r == 0)
            r = sse_reader_feed(&reader, SLICE_LIT("\n"), &e);
    }
    if (r == 0)
        r = sse_reader_feed(&reader, SLICE_LIT("\n"), &e);
    if (r == 0)
        assert_int_equal(out.n, strlen("message||;") + n_lines * n_bytes + n_lines - 1);
    else
        assert_string_equal(e.code, "UPSTREAM_TOO_LARGE");
    sse_reader_clear(&reader);
    buf_clear(&out);
    free(line);
    return r;
}

static void an_event_is_never_cut(void **state)
{
    assert_int_equal(feed_data(LIMIT_SSE_EVENT - 5, 1), 0);
    assert_int_equal(feed_data(LIMIT_SSE_EVENT - 4, 1), -EMSGSIZE);
    assert_int_equal(feed_data(LIMIT_SSE_EVENT / 2, 1), 0);
    assert_int_equal(feed_data(LIMIT_SSE_EVENT / 2, 2), -EMSGSIZE);
}

static void the_pause_before_a_retry_is_a_number_of_digits(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        { "data: x\n\n", -1 },
        { "retry: 500\n\n", 500 },
        { "retry: 500\nretry: 1x\n\n", 500 },
        { "retry: -1\nretry:\n\n", -1 },
        { "retry: 99999999999999999999\n", 24 * 3600 * 1000 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sse_reader reader;
        struct buf out;

        buf_init(&out, 100);
        sse_reader_init(&reader, note, &out);
        assert_int_equal(sse_reader_feed(&reader, slice_of(cases[i].text), NULL), 0);
        assert_int_equal(reader.retry_ms, cases[i].ms);
        sse_reader_clear(&reader);
        buf_clear(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_however_the_bytes_are_split),
        cmocka_unit_test(a_callback_that_says_no_stops_the_reading),
        cmocka_unit_test(an_event_is_never_cut),
        cmocka_unit_test(the_pause_before_a_retry_is_a_number_of_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
