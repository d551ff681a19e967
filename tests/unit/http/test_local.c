#include "base/hash.h"
#include "http/local.h"
#include "http/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

static void *answer_later(void *arg)
{
    struct http_exchange *x = arg;

    x->response.status = 201;
    buf_printf(&x->response.body, "%s %s?%s %s %.*s", http_method_name(x->request.method), x->request.path,
               x->request.query, http_header(&x->request, "content-type"), (int)x->request.body.n, x->request.body.p);
    http_exchange_send(x);
    return NULL;
}

static void an_answer_of_another_thread_is_waited_for(void **state)
{
    struct http_exchange *x = http_local_new(HTTP_POST, "/api/keys", "a=1", SLICE_LIT("{}"));
    struct slice reply;
    pthread_t thread;
    int status;

    assert_int_equal(x->request.from, HTTP_FROM_PROCESS);
    assert_int_equal(strlen(x->request.id), 36);
    assert_int_equal(pthread_create(&thread, NULL, answer_later, x), 0);
    http_local_wait(x, &status, &reply);
    assert_int_equal(status, 201);
    assert_true(slice_eq_str(reply, "POST /api/keys?a=1 application/json {}"));
    pthread_join(thread, NULL);
    http_local_free(x);
    http_local_free(NULL);
}

static void a_stream_is_collected_whole(void **state)
{
    struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
    struct http_stream *s = http_stream_start(x);
    struct slice reply;
    int status;

    assert_int_equal(http_stream_push(s, SLICE_LIT("one ")), 0);
    assert_int_equal(http_stream_push(s, SLICE_LIT("two")), 0);
    assert_false(http_stream_is_gone(s));
    http_stream_end(s);
    http_local_wait(x, &status, &reply);
    assert_int_equal(status, 200);
    assert_true(slice_eq_str(reply, "one two"));
    http_local_free(x);
}

static void events_are_written_as_the_standard_says(void **state)
{
    static const struct {
        const char *event, *id;
        struct slice data;
        const char *wanted;
    } cases[] = {
        { NULL, NULL, SLICE_LIT("x"), "data: x\n\n" },
        { NULL, NULL, SLICE_LIT(""), "data: \n\n" },
        { "e", "7", SLICE_LIT("x"), "event: e\nid: 7\ndata: x\n\n" },
        { "a\r\nb: c", "1\n2\r", SLICE_LIT("x"), "event: ab: c\nid: 12\ndata: x\n\n" },
        { NULL, NULL, SLICE_LIT("a\nb\rc\r\nd"), "data: a\ndata: b\ndata: c\ndata: d\n\n" },
        { NULL, NULL, SLICE_LIT("a\n\n"), "data: a\ndata: \ndata: \n\n" },
        { NULL, NULL, SLICE_LIT("\r"), "data: \ndata: \n\n" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });
        struct http_stream *s = sse_start(x);
        struct slice reply;
        int status;

        assert_int_equal(sse_push(s, cases[i].event, cases[i].id, cases[i].data), 0);
        http_stream_end(s);
        http_local_wait(x, &status, &reply);
        assert_string_equal(buf_str(&x->response.body), cases[i].wanted);
        assert_string_equal(x->response.content_type, "text/event-stream");
        assert_string_equal(x->response.headers[0].value, "no-store");
        http_local_free(x);
    }
}

static void cookies_are_found_by_their_exact_name(void **state)
{
    static const struct {
        const char *header, *value;
    } cases[] = {
        { "sid=1", "1" },
        { "a=2; sid=3 ; b=4", "3" },
        { "xsid=1; sid2=2", NULL },
        { "SID=1", NULL },
        { "sid=\"q\"", "q" },
        { "sid=", "" },
        { "sid", NULL },
        { "", NULL },
        { "sid=a=b", "a=b" },
        { "sid=1; sid=2", "1" },
        { "sid=\"", "\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena *a = arena_new();
        struct http_header header = { "cookie", cases[i].header };
        struct http_request request = { .headers = &header, .n_headers = 1 };
        const char *value = http_cookie(a, &request, "sid");

        assert_string_equal(value ? value : "none", cases[i].value ? cases[i].value : "none");
        request.n_headers = 0;
        assert_null(http_cookie(a, &request, "sid"));
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_of_another_thread_is_waited_for),
        cmocka_unit_test(a_stream_is_collected_whole),
        cmocka_unit_test(events_are_written_as_the_standard_says),
        cmocka_unit_test(cookies_are_found_by_their_exact_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
