#include "base/limits.h"
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#define HOST "Host: a\r\n"

struct read_head {
    enum http_refusal why;
    size_t head_bytes;
    struct http_request request;
    struct http_framing framing;
};

/* Scans and parses like the connection; the text comes in pieces of the given size. */
static struct read_head read_head(struct arena *a, struct slice text, size_t piece)
{
    struct read_head got = { 0 };
    struct http_head_scan scan = { 0 };

    for (size_t n = MIN(piece, text.n); !got.why && got.head_bytes == 0; n = MIN(n + piece, text.n)) {
        char *copy = malloc(n); /* of the exact size, so that the sanitizer sees a read too far */

        memcpy(copy, text.p, n);
        got.why = http_head_scan(&scan, (struct slice){ copy, n }, &got.head_bytes);
        free(copy);
        if (n == text.n)
            break;
    }
    if (!got.why && got.head_bytes > 0)
        got.why = http_head_parse(a, arena_slicedup(a, (struct slice){ text.p, got.head_bytes }), &scan, &got.request,
                                  &got.framing);
    return got;
}

static void assert_refusal(struct slice text, enum http_refusal why)
{
    for (size_t piece = 1 + text.n / 1000; piece <= text.n; piece = piece * 7 + 1) {
        struct arena *a = arena_new();
        struct read_head got = read_head(a, text, piece);

        if (got.why != why)
            fail_msg("wanted refusal %d, got %d in pieces of %zu for: %.*s", why, got.why, piece, (int)MIN(text.n, 200),
                     text.p);
        arena_free(a);
    }
}

static const struct {
    struct slice text;
    enum http_refusal why;
} heads[] = {
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_NONE },
    /* request line */
    { SLICE_LIT(" GET / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET  / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET /  HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET / HTTP/1.1 \r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET /a b HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET\t/\tHTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET /\r\n\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET\r\n\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET / http/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET / HTTP/1,1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET / HTTP/11.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("G@T / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("\x16\x03\x01\x02"), REFUSE_REQUEST_LINE }, /* TLS */
    { SLICE_LIT("\r\n\r\n"), REFUSE_REQUEST_LINE },
    { SLICE_LIT("GET / HTTP/1.2\r\n" HOST "\r\n"), REFUSE_VERSION },
    { SLICE_LIT("GET / HTTP/2.0\r\n" HOST "\r\n"), REFUSE_VERSION },
    { SLICE_LIT("PRI * HTTP/2.0\r\n\r\n"), REFUSE_VERSION },
    { SLICE_LIT("TRACE / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_METHOD },
    { SLICE_LIT("CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n"), REFUSE_METHOD },
    { SLICE_LIT("get / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_METHOD },
    /* line ends */
    { SLICE_LIT("GET / HTTP/1.1\n" HOST "\r\n"), REFUSE_LINE_END },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: a\n\r\n"), REFUSE_LINE_END },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "\n"), REFUSE_LINE_END },
    { SLICE_LIT("\nGET / HTTP/1.1\r\n" HOST "\r\n"), REFUSE_LINE_END },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), REFUSE_HEADER_VALUE },
    { SLICE_LIT("GET / HTTP/1.1\rHost: a\r\n\r\n"), REFUSE_REQUEST_LINE },
    /* target */
    { SLICE_LIT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET a HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET /#x HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET /\x01 HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET /?\x7f HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET https://a/ HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET http:/// HTTP/1.1\r\n" HOST "\r\n"), REFUSE_TARGET },
    { SLICE_LIT("GET http://b/ HTTP/1.1\r\n" HOST "\r\n"), REFUSE_HOST_DIFFERS },
    { SLICE_LIT("GET http://A/x HTTP/1.1\r\n" HOST "\r\n"), REFUSE_NONE },
    /* headers */
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "nothing\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X(y): a\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "\xc3\xa9: a\r\n\r\n"), REFUSE_HEADER_NAME },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n"), REFUSE_HEADER_FOLDED },
    { SLICE_LIT("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), REFUSE_HEADER_FOLDED },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), REFUSE_HEADER_VALUE },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X: a\x1b[0m\r\n\r\n"), REFUSE_HEADER_VALUE },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n"), REFUSE_HEADER_VALUE },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST "X: a\tb \xc3\xa9\r\n\r\n"), REFUSE_NONE },
    /* Host */
    { SLICE_LIT("GET / HTTP/1.1\r\n\r\n"), REFUSE_HOST_MISSING },
    { SLICE_LIT("GET / HTTP/1.0\r\n\r\n"), REFUSE_NONE },
    { SLICE_LIT("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), REFUSE_HOST_TWICE },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), REFUSE_HOST },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), REFUSE_HOST },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), REFUSE_HOST },
    { SLICE_LIT("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), REFUSE_NONE },
    /* length and coding */
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: -3\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x3\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3,3\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3 3\r\n\r\n"), REFUSE_LENGTH },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"), REFUSE_LENGTH_TWICE },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\ncontent-length: 3\r\n\r\n"), REFUSE_LENGTH_TWICE },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
      REFUSE_LENGTH_AND_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
      REFUSE_LENGTH_AND_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), REFUSE_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n"), REFUSE_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"), REFUSE_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"), REFUSE_CODING },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
      REFUSE_CODING_TWICE },
    { SLICE_LIT("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"), REFUSE_CODING_VERSION },
    { SLICE_LIT("POST / HTTP/1.1\r\n" HOST "Expect: tea\r\n\r\n"), REFUSE_EXPECTATION },
};

static void what_is_not_exact_is_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        assert_refusal(heads[i].text, heads[i].why);
}

static void paths_are_decoded_once_and_keep_no_way_up(void **state)
{
    static const struct {
        const char *target, *path, *query; /* path NULL: refused */
    } cases[] = {
        { "/", "/", "" },
        { "/a?b=%2e%2e&c", "/a", "b=%2e%2e&c" },
        { "/a??", "/a", "?" },
        { "/a%20b/%C3%A9", "/a b/\xc3\xa9", "" },
        { "/\xc3\xa9", "/\xc3\xa9", "" },
        { "/%2541", "/%41", "" },
        { "/a/...", "/a/...", "" },
        { "/..a/.b", "/..a/.b", "" },
        { "//a//", "//a//", "" },
        { "/a;x=1", "/a;x=1", "" },
        { "http://a", "/", "" },
        { "HTTP://a/x?y", "/x", "y" },
        { "/..", NULL, "" },
        { "/a/../b", NULL, "" },
        { "/./a", NULL, "" },
        { "/a/.", NULL, "" },
        { "/%2e%2e/a", NULL, "" },
        { "/%2E./a", NULL, "" },
        { "/a/..;/b", NULL, "" },
        { "/a/.;x=1", NULL, "" },
        { "/a\\b", NULL, "" },
        { "/a%5cb", NULL, "" },
        { "/a/%2e%2e%2fb", NULL, "" },
        { "/a/..%2Fb", NULL, "" },
        { "/%00", NULL, "" },
        { "/%0a", NULL, "" },
        { "/%7f", NULL, "" },
        { "/%", NULL, "" },
        { "/%4", NULL, "" },
        { "/%zz", NULL, "" },
        { "/%ff", NULL, "" },
        { "/\xff", NULL, "" },
        { "/%c0%ae%c0%ae/", NULL, "" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena *a = arena_new();
        char *text = arena_printf(a, "GET %s HTTP/1.1\r\n" HOST "\r\n", cases[i].target);
        struct read_head got = read_head(a, slice_of(text), SIZE_MAX);

        if (got.why != (cases[i].path ? REFUSE_NONE : REFUSE_PATH))
            fail_msg("got refusal %d for %s", got.why, cases[i].target);
        if (cases[i].path) {
            assert_string_equal(got.request.path, cases[i].path);
            assert_string_equal(got.request.query, cases[i].query);
        }
        arena_free(a);
    }
}

static void an_escaped_slash_is_reported_with_its_place(void **state)
{
    static const struct {
        const char *target, *path;
        size_t at;
    } cases[] = {
        { "/a/b", "/a/b", 0 },       { "/a%2fb", "/a/b", 2 }, { "/%C3%A9/a%2Fb%2fc", "/\xc3\xa9/a/b/c", 5 },
        { "/a%252Fb", "/a%2Fb", 0 }, { "/%2F", "//", 1 },     { "/a?b=%2F", "/a", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct read_head got =
            read_head(a, slice_of(arena_printf(a, "GET %s HTTP/1.1\r\n" HOST "\r\n", cases[i].target)), SIZE_MAX);

        assert_int_equal(got.why, REFUSE_NONE);
        assert_string_equal(got.request.path, cases[i].path);
        assert_int_equal(got.request.escaped_slash_at, cases[i].at);
    }
}

/* A head with a target, n further header lines and a filler that makes the head exactly this long (0: no filler). */
static struct slice make_head(struct arena *a, size_t target_bytes, size_t n_headers, size_t head_bytes)
{
    struct buf out;
    struct slice made;

    buf_init(&out, MIB(1));
    buf_add_str(&out, "GET /");
    for (size_t i = 1; i < target_bytes; i++)
        buf_add_char(&out, 'a');
    buf_add_str(&out, " HTTP/1.1\r\n" HOST);
    for (size_t i = 1; i < n_headers; i++)
        buf_add_str(&out, "x: y\r\n");
    if (head_bytes > 0)
        buf_add_str(&out, "x: ");
    while (out.n + 4 < head_bytes)
        buf_add_char(&out, 'z');
    buf_add_str(&out, head_bytes > 0 ? "\r\n\r\n" : "\r\n");
    made = (struct slice){ arena_slicedup(a, buf_slice(&out)), out.n };
    buf_clear(&out);
    return made;
}

static void limits_hold_at_their_edges(void **state)
{
    struct arena *a = arena_new();

    assert_refusal(make_head(a, LIMIT_TARGET_BYTES, 1, 0), REFUSE_NONE);
    assert_refusal(make_head(a, LIMIT_TARGET_BYTES + 1, 1, 0), REFUSE_TARGET_LENGTH);
    assert_refusal(make_head(a, 2 * LIMIT_TARGET_BYTES, 1, 0), REFUSE_TARGET_LENGTH);
    assert_refusal(make_head(a, 1, LIMIT_HEADERS, 0), REFUSE_NONE);
    assert_refusal(make_head(a, 1, LIMIT_HEADERS + 1, 0), REFUSE_HEADER_COUNT);
    assert_refusal(make_head(a, 1, 1, LIMIT_HEADER_BYTES), REFUSE_NONE);
    assert_refusal(make_head(a, 1, 1, LIMIT_HEADER_BYTES + 1), REFUSE_HEADER_BYTES);
    assert_refusal(make_head(a, 1, 1, 2 * LIMIT_HEADER_BYTES), REFUSE_HEADER_BYTES);
    arena_free(a);
}

static struct read_head read_whole(struct arena *a, const char *text)
{
    struct read_head got = read_head(a, slice_of(text), SIZE_MAX);

    assert_int_equal(got.why, REFUSE_NONE);
    assert_int_equal(got.head_bytes, strlen(text));
    return got;
}

static void headers_are_lower_case_trimmed_and_in_order(void **state)
{
    struct arena *a = arena_new();
    struct read_head got =
        read_whole(a, "PATCH /x HTTP/1.1\r\nHOST: a\r\nX-One: \t 1 \t\r\nX-Two:2\r\nx-ONE: 3\r\nEmpty:\r\n\r\n");
    static const struct http_header wanted[] = {
        { "host", "a" }, { "x-one", "1" }, { "x-two", "2" }, { "x-one", "3" }, { "empty", "" }
    };

    assert_int_equal(got.request.method, HTTP_PATCH);
    assert_int_equal(got.request.n_headers, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        assert_string_equal(got.request.headers[i].name, wanted[i].name);
        assert_string_equal(got.request.headers[i].value, wanted[i].value);
    }
    assert_string_equal(http_header(&got.request, "x-one"), "1");
    assert_null(http_header(&got.request, "x-three"));
    arena_free(a);
}

static void keep_alive_follows_version_and_connection(void **state)
{
    static const struct {
        const char *version, *connection;
        bool keep_alive;
    } cases[] = {
        { "1.1", "", true },
        { "1.1", "Connection: close\r\n", false },
        { "1.1", "Connection: foo , CLOSE\r\n", false },
        { "1.1", "Connection: closed\r\n", true },
        { "1.0", "", false },
        { "1.0", "Connection: Keep-Alive\r\n", true },
        { "1.0", "Connection: keep-alive, close\r\n", false },
        { "1.1", "Connection: keep-alive\r\nConnection: close\r\n", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena *a = arena_new();
        struct read_head got =
            read_whole(a, arena_printf(a, "GET / HTTP/%s\r\n" HOST "%s\r\n", cases[i].version, cases[i].connection));

        assert_int_equal(got.framing.keep_alive, cases[i].keep_alive);
        arena_free(a);
    }
}

static void a_length_no_machine_has_is_kept_as_the_largest(void **state)
{
    struct arena *a = arena_new();
    struct read_head got = read_whole(a, "PUT / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\n");

    assert_true(got.framing.content_length == SIZE_MAX);
    got = read_whole(a, "PUT / HTTP/1.1\r\n" HOST "Content-Length: 007\r\nExpect: 100-Continue\r\n\r\n");
    assert_int_equal(got.framing.content_length, 7);
    assert_true(got.framing.expects_continue);
    arena_free(a);
}

static void every_refusal_has_status_code_and_sentence(void **state)
{
    for (enum http_refusal why = REFUSE_NONE + 1; why < REFUSALS; why++) {
        const struct http_refusal_row *row = http_refusal_row(why);

        assert_true(row->status >= 400 && row->status < 600);
        assert_non_null(row->code);
        assert_int_equal(row->text[strlen(row->text) - 1], '.');
        assert_string_not_equal(http_status_text(row->status), "Unknown");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_exact_is_refused),
        cmocka_unit_test(paths_are_decoded_once_and_keep_no_way_up),
        cmocka_unit_test(an_escaped_slash_is_reported_with_its_place),
        cmocka_unit_test(limits_hold_at_their_edges),
        cmocka_unit_test(headers_are_lower_case_trimmed_and_in_order),
        cmocka_unit_test(keep_alive_follows_version_and_connection),
        cmocka_unit_test(a_length_no_machine_has_is_kept_as_the_largest),
        cmocka_unit_test(every_refusal_has_status_code_and_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
