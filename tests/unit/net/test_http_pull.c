#include "net/http_pull.h"

#include "base/thread.h"
#include "upstream.h"

enum { LARGE_BYTES = 3 << 20 };

/* /large sends LARGE_BYTES, /wait nothing after its head, everything else its path. */
static void serve(void *arg, struct http_exchange *x)
{
    http_response_header(x, "x-told", "yes");
    if (strcmp(x->request.path, "/wait") == 0) {
        struct http_stream **kept = arg;

        *kept = http_stream_start(x);
        return;
    }
    if (strcmp(x->request.path, "/large") == 0) {
        memset(buf_reserve(&x->response.body, LARGE_BYTES), 'x', LARGE_BYTES);
        x->response.body.n = LARGE_BYTES;
    } else {
        buf_add_str(&x->response.body, x->request.path);
    }
    http_exchange_send(x);
}

static void end_stream(void *arg)
{
    struct http_stream **kept = arg;

    if (*kept)
        *kept = http_stream_end(*kept);
}

static int open_url(struct http_pull *p, const char *url, const struct net_wait *wait, struct err *e)
{
    return http_pull_open(p, &(struct http_call_request){ .method = "GET", .url = url }, wait, e);
}

static void head_and_body_are_read_one_after_the_other(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct http_pull *p = http_pull_new();
    struct slice bytes;

    rig_open(&rig, serve, NULL);
    assert_int_equal(open_url(p, rig_url(&rig, "/a"), &wait, NULL), 0);
    assert_int_equal(http_pull_head(p)->status, 200);
    assert_string_equal(http_answer_header(http_pull_head(p), "x-told"), "yes");
    assert_int_equal(http_pull_read(p, &wait, &bytes, NULL), 0);
    assert_true(slice_eq_str(bytes, "/a"));
    assert_int_equal(http_pull_read(p, &wait, &bytes, NULL), 0);
    assert_int_equal(bytes.n, 0);
    assert_int_equal(http_pull_read(p, &wait, &bytes, NULL), 0);
    assert_int_equal(bytes.n, 0);
    http_pull_free(p);
}

static void a_large_body_comes_in_pieces_and_whole(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct http_pull *p = http_pull_new();
    size_t n = 0, most = 0;
    struct slice bytes;

    rig_open(&rig, serve, NULL);
    assert_int_equal(open_url(p, rig_url(&rig, "/large"), &wait, NULL), 0);
    do {
        assert_int_equal(http_pull_read(p, &wait, &bytes, NULL), 0);
        n += bytes.n;
        most = MAX(most, bytes.n);
        for (size_t i = 0; i < bytes.n; i++)
            assert_int_equal(bytes.p[i], 'x');
    } while (bytes.n > 0);
    assert_int_equal(n, LARGE_BYTES);
    assert_true(most <= KIB(96));
    http_pull_free(p);
}

static void a_body_above_its_limit_is_refused(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);

    rig_open(&rig, serve, NULL);
    for (size_t limit = LARGE_BYTES - 1; limit <= LARGE_BYTES; limit++) {
        struct http_pull *p = http_pull_new(), *q = http_pull_new();
        int wanted = limit < LARGE_BYTES ? -EMSGSIZE : 0;
        struct http_call_request request = { .method = "GET", .url = rig_url(&rig, "/large"), .max_reply = limit };
        struct buf out, other;

        buf_init(&out, limit);
        assert_int_equal(open_url(p, request.url, &wait, NULL), 0);
        assert_int_equal(http_pull_read_all(p, &wait, &out, NULL), wanted);
        buf_init(&other, MIB(16));
        assert_int_equal(http_pull_open(q, &request, &wait, NULL), 0);
        assert_int_equal(http_pull_read_all(q, &wait, &other, NULL), wanted);
        buf_clear(&out);
        buf_clear(&other);
        http_pull_free(p);
        http_pull_free(q);
    }
}

static void *cancel_it(void *arg)
{
    http_pull_cancel(arg);
    return NULL;
}

static void a_wait_ends_by_cancel_flag_and_deadline(void **state)
{
    struct http_stream *kept = NULL;
    AUTO(rig_close) struct rig rig = { 0 };
    atomic_bool is_gone = true;
    const struct {
        struct net_wait wait;
        bool is_cancelled;
        int r;
    } cases[] = {
        { net_wait_of(100, NULL, NULL), false, -ETIMEDOUT },
        { net_wait_of(WAIT_MS, &is_gone, NULL), false, -ECANCELED },
        { net_wait_of(WAIT_MS, NULL, NULL), true, -ECANCELED },
    };

    rig_open(&rig, serve, &kept);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct net_wait patient = net_wait_of(WAIT_MS, NULL, NULL);
        struct http_pull *p = http_pull_new();
        struct slice bytes;
        pthread_t thread;

        assert_int_equal(open_url(p, rig_url(&rig, "/wait"), &patient, NULL), 0);
        if (cases[i].is_cancelled)
            assert_int_equal(thread_start(&thread, "cancel", cancel_it, p), 0);
        assert_int_equal(http_pull_read(p, &cases[i].wait, &bytes, NULL), cases[i].r);
        if (cases[i].is_cancelled)
            pthread_join(thread, NULL);
        http_pull_free(p);
        loop_call(rig.loop, end_stream, &kept);
    }
}

static void what_goes_wrong_is_told_after_the_bytes_before_it(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_pull *p = http_pull_new();
    struct raw_peer peer;
    struct slice bytes;
    struct err e = { 0 };

    raw_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", RAW_CLOSE);
    assert_int_equal(open_url(p, arena_printf(a, "http://127.0.0.1:%u/", peer.port), &wait, NULL), 0);
    assert_int_equal(http_pull_read(p, &wait, &bytes, &e), 0);
    assert_true(slice_eq_str(bytes, "half"));
    assert_int_equal(http_pull_read(p, &wait, &bytes, &e), -ECONNRESET);
    assert_string_equal(e.code, "UPSTREAM_CLOSED");
    http_pull_free(p);
    raw_close(&peer);
}

static void no_answer_is_an_error_of_the_opening(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL), brief = net_wait_of(100, NULL, NULL);
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_pull *p = http_pull_new(), *q = http_pull_new(), *bad = http_pull_new();
    struct raw_peer peer;

    assert_int_equal(open_url(p, arena_printf(a, "http://127.0.0.1:%u/", dead_port()), &wait, NULL), -ECONNREFUSED);
    assert_int_equal(open_url(bad, "ftp://x/", &wait, NULL), -EINVAL);
    raw_open(&peer, "", RAW_HANG);
    assert_int_equal(open_url(q, arena_printf(a, "http://127.0.0.1:%u/", peer.port), &brief, NULL), -ETIMEDOUT);
    http_pull_free(p);
    http_pull_free(q);
    http_pull_free(bad);
    raw_close(&peer);
}

/* A connection that is kept sends no second look-up: the server sees one connection. */
static void a_read_answer_leaves_its_connection_to_the_next(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    AUTO(arena_freep) struct arena *a = arena_new();
    struct raw_peer peer;

    http_call_close_idle(0);
    raw_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", RAW_HANG);
    for (int i = 0; i < 2; i++) {
        struct http_pull *p = http_pull_new();
        const struct net_wait brief = net_wait_of(i == 0 ? WAIT_MS : 100, NULL, NULL);

        /* the raw peer answers once a connection: the second request on it waits in vain */
        assert_int_equal(open_url(p, arena_printf(a, "http://127.0.0.1:%u/", peer.port), i == 0 ? &wait : &brief, NULL),
                         i == 0 ? 0 : -ETIMEDOUT);
        if (i == 0) {
            struct buf out;

            buf_init(&out, 100);
            assert_int_equal(http_pull_read_all(p, &wait, &out, NULL), 0);
            assert_string_equal(buf_str(&out), "ok");
            buf_clear(&out);
        }
        http_pull_free(p);
    }
    raw_close(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_and_body_are_read_one_after_the_other),
        cmocka_unit_test(a_large_body_comes_in_pieces_and_whole),
        cmocka_unit_test(a_body_above_its_limit_is_refused),
        cmocka_unit_test(a_wait_ends_by_cancel_flag_and_deadline),
        cmocka_unit_test(what_goes_wrong_is_told_after_the_bytes_before_it),
        cmocka_unit_test(no_answer_is_an_error_of_the_opening),
        cmocka_unit_test(a_read_answer_leaves_its_connection_to_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
