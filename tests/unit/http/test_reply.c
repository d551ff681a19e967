#include "base/limits.h"
#include "http/local.h"
#include "http/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void fill(struct http_exchange *x, size_t n)
{
    char *to = buf_reserve(&x->response.body, n);

    assert_non_null(to);
    memset(to, 'x', n);
    x->response.body.n += n;
}

static void assert_head(const struct http_reply *reply, const char *part, bool is_there)
{
    if ((strstr(buf_str(&reply->head), part) != NULL) != is_there)
        fail_msg("\"%s\" should%s be in: %s", part, is_there ? "" : " not", buf_str(&reply->head));
}

static void statuses_without_a_body_have_none(void **state)
{
    static const int statuses[] = { 204, 304 };

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
        struct http_reply_way way = { .keep_alive = true };
        struct http_reply reply;

        http_reply_init(&reply);
        x->response.status = statuses[i];
        fill(x, 5);
        http_reply_write(&reply, x, &way);
        assert_head(&reply, "content-length", false);
        assert_head(&reply, "content-type", false);
        assert_int_equal(reply.body.n, 0);
        http_reply_clear(&reply);
        http_local_free(x);
    }
}

static void only_large_json_without_encoding_is_compressed(void **state)
{
    static const struct {
        size_t bytes;
        const char *type, *encoding;
        bool may_compress, is_gzip;
    } cases[] = {
        { 4097, "application/json", NULL, true, true },  { 4097, "application/json; charset=utf-8", NULL, true, true },
        { 4096, "application/json", NULL, true, false }, { 4097, "application/json", NULL, false, false },
        { 4097, "audio/mpeg", NULL, true, false },       { 4097, "application/json", "br", true, false },
    };
    struct http_header wants = { "accept-encoding", "gzip" };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
        struct http_reply_way way = { .may_compress = cases[i].may_compress };
        struct http_reply reply;

        http_reply_init(&reply);
        x->request.headers[0] = wants;
        x->response.content_type = cases[i].type;
        if (cases[i].encoding)
            http_response_header(x, "content-encoding", cases[i].encoding);
        fill(x, cases[i].bytes);
        http_reply_write(&reply, x, &way);
        assert_head(&reply, "content-encoding: gzip\r\n", cases[i].is_gzip);
        assert_int_equal(reply.body.n < cases[i].bytes, cases[i].is_gzip);
        http_reply_clear(&reply);
        http_local_free(x);
    }
}

static void an_answer_above_the_limit_becomes_an_error(void **state)
{
    struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
    struct http_reply_way way = { .keep_alive = true };
    struct http_reply reply;

    http_reply_init(&reply);
    assert_null(buf_reserve(&x->response.body, (size_t)LIMIT_REPLY + 1));
    http_reply_write(&reply, x, &way);
    assert_head(&reply, "HTTP/1.1 500 Internal Server Error\r\n", true);
    assert_non_null(strstr(buf_str(&reply.body), "\"code\":\"REPLY_TOO_LARGE\""));
    http_reply_clear(&reply);
    http_local_free(x);
}

static void a_stream_head_announces_chunks_or_the_close(void **state)
{
    for (int is_http10 = 0; is_http10 < 2; is_http10++) {
        struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
        struct http_reply_way way = { .keep_alive = !is_http10, .is_http10 = is_http10 };
        struct http_reply reply;

        http_reply_init(&reply);
        http_reply_write_stream_head(&reply.head, x, &way);
        assert_head(&reply, "transfer-encoding: chunked\r\n", !is_http10);
        assert_head(&reply, "connection: close\r\n", is_http10);
        assert_head(&reply, "content-length", false);
        http_reply_clear(&reply);
        http_local_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_without_a_body_have_none),
        cmocka_unit_test(only_large_json_without_encoding_is_compressed),
        cmocka_unit_test(an_answer_above_the_limit_becomes_an_error),
        cmocka_unit_test(a_stream_head_announces_chunks_or_the_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
