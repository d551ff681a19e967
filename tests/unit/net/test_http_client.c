#include "net/http_client.h"

#include "net/sse_reader.h"
#include "upstream.h"

enum { N_EVENTS = 200, PAUSE_BYTES = 2 << 20 };

/* What a fetch told. Written on the loop, read by the test once is_ended. */
struct told {
    struct http_client *client;
    struct http_fetch *fetch;
    struct buf bytes;
    int status, r;
    char type[64], code[40], text[200];
    size_t pause_at;                    /* pause once this many bytes came; 0: never */
    int stop_with;
    atomic_bool is_paused, is_ended;
    atomic_size_t n_bytes;
};

static void on_head(void *arg, const struct http_answer *head)
{
    struct told *told = arg;
    const char *type = http_answer_header(head, "content-type");

    told->status = head->status;
    snprintf(told->type, sizeof(told->type), "%s", type ? type : "");
}

static int on_bytes(void *arg, struct slice bytes)
{
    struct told *told = arg;

    buf_add_slice(&told->bytes, bytes);
    atomic_fetch_add(&told->n_bytes, bytes.n);
    if (told->stop_with)
        return told->stop_with;
    if (!told->pause_at || told->bytes.n < told->pause_at)
        return 0;
    told->pause_at = 0;
    atomic_store(&told->is_paused, true);
    return -EAGAIN;
}

static void on_end(void *arg, int r, const struct err *e)
{
    struct told *told = arg;

    told->r = r;
    snprintf(told->code, sizeof(told->code), "%s", e->code);
    snprintf(told->text, sizeof(told->text), "%s", e->text);
    atomic_store(&told->is_ended, true);
}

static const struct http_fetch_events events = { on_head, on_bytes, on_end };

/* The upstream: /events says N_EVENTS events, /large PAUSE_BYTES bytes, /echo its body. */
static void serve(void *arg, struct http_exchange *x)
{
    if (strcmp(x->request.path, "/events") == 0) {
        struct http_stream *s = sse_start(x);

        for (int i = 0; i < N_EVENTS; i++) {
            char text[16];
            int n = snprintf(text, sizeof(text), "%d", i);

            assert_int_equal(sse_push(s, NULL, NULL, (struct slice){ text, (size_t)n }), 0);
        }
        http_stream_unref(s);
        return;
    }
    if (strcmp(x->request.path, "/large") == 0) {
        memset(buf_reserve(&x->response.body, PAUSE_BYTES), 'x', PAUSE_BYTES);
        x->response.body.n = PAUSE_BYTES;
    } else {
        buf_add_slice(&x->response.body, x->request.body);
    }
    http_exchange_send(x);
}

struct making { struct loop *loop; struct http_client **ret; };

static void make_client(void *arg)
{
    struct making *making = arg;

    assert_int_equal(http_client_new(making->loop, making->ret, NULL), 0);
}

static void free_client(void *arg)
{
    struct told *told = arg;

    told->client = http_client_free(told->client);
}

static void told_open(struct told *told, struct rig *rig)
{
    *told = (struct told){ 0 };
    buf_init(&told->bytes, LIMIT_REPLY);
    loop_call(rig->loop, make_client, &(struct making){ rig->loop, &told->client });
}

static void told_close(struct told *told, struct rig *rig)
{
    loop_call(rig->loop, free_client, told);
    http_fetch_unref(told->fetch);
    buf_clear(&told->bytes);
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct told *)arg)->is_ended);
}

static bool has_paused(void *arg)
{
    return atomic_load(&((struct told *)arg)->is_paused);
}

static bool has_bytes(void *arg)
{
    return atomic_load(&((struct told *)arg)->n_bytes) > 0;
}

static void start(struct told *told, const struct http_ask *ask)
{
    assert_int_equal(http_fetch_start(told->client, ask, &events, told, &told->fetch, NULL), 0);
}

static int count(void *arg, const struct sse_event *ev)
{
    int *n = arg;

    assert_int_equal(strtol(ev->data.p, NULL, 10), *n);
    ++*n;
    return 0;
}

static void a_stream_arrives_whole_and_in_order(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct sse_reader reader;
    struct told told;
    int n = 0;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    start(&told, &(struct http_ask){ .method = "GET", .url = rig_url(&rig, "/events") });
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, 0);
    assert_int_equal(told.status, 200);
    assert_string_equal(told.type, "text/event-stream");
    sse_reader_init(&reader, count, &n);
    assert_int_equal(sse_reader_feed(&reader, buf_slice(&told.bytes), NULL), 0);
    assert_int_equal(n, N_EVENTS);
    sse_reader_clear(&reader);
    told_close(&told, &rig);
}

static void the_body_of_the_ask_is_sent_from_a_copy(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;
    size_t n = MIB(3);
    char *body = xcalloc(1, n);

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    memset(body, 'b', n);
    start(&told, &(struct http_ask){ .method = "POST", .url = rig_url(&rig, "/echo"), .body = { body, n } });
    memset(body, 0, n);
    free(body);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, 0);
    assert_int_equal(told.bytes.n, n);
    assert_int_equal(told.bytes.p[n - 1], 'b');
    told_close(&told, &rig);
}

static void resume(void *arg)
{
    http_fetch_resume(((struct told *)arg)->fetch);
}

static void nothing(void *arg)
{
}

/* The loop turns many times and no byte comes. */
static bool stays_quiet(struct rig *rig, struct told *told)
{
    size_t before = atomic_load(&told->n_bytes);

    for (int i = 0; i < 100; i++)
        loop_call(rig->loop, nothing, NULL);
    return atomic_load(&told->n_bytes) == before;
}

static void a_paused_fetch_stops_reading_and_goes_on_where_it_was(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    told.pause_at = 10000;
    start(&told, &(struct http_ask){ .method = "GET", .url = rig_url(&rig, "/large"), .idle_ms = 50 });
    assert_true(wait_until(has_paused, &told));
    assert_true(stays_quiet(&rig, &told));
    assert_true(atomic_load(&told.n_bytes) < 10000 + KIB(16));
    assert_false(atomic_load(&told.is_ended));
    loop_call(rig.loop, resume, &told);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, 0);
    assert_int_equal(told.bytes.n, PAUSE_BYTES);
    told_close(&told, &rig);
}

static void a_cancelled_fetch_closes_its_connection(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct raw_peer peer;
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    raw_open(&peer, "HTTP/1.1 200 OK\r\n\r\nsome", RAW_HANG);
    start(&told, &(struct http_ask){ .method = "GET", .url = arena_printf(rig.a, "http://127.0.0.1:%u/", peer.port) });
    assert_true(wait_until(has_bytes, &told));
    http_fetch_cancel(told.fetch);
    http_fetch_cancel(told.fetch);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, -ECANCELED);
    raw_close(&peer);
    assert_true(atomic_load(&peer.has_left));
    told_close(&told, &rig);
}

static void a_paused_fetch_can_be_cancelled(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    told.pause_at = 1;
    start(&told, &(struct http_ask){ .method = "GET", .url = rig_url(&rig, "/large") });
    assert_true(wait_until(has_paused, &told));
    http_fetch_cancel(told.fetch);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, -ECANCELED);
    told_close(&told, &rig);
}

static void an_answer_that_is_not_wanted_is_stopped_by_its_reader(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    told.stop_with = -EBADMSG;
    start(&told, &(struct http_ask){ .method = "GET", .url = rig_url(&rig, "/large") });
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, -EBADMSG);
    assert_string_equal(told.code, "");
    assert_true(told.bytes.n < PAUSE_BYTES);
    told_close(&told, &rig);
}

static void a_client_that_is_freed_ends_what_runs(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct raw_peer peer;
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    raw_open(&peer, "", RAW_HANG);
    start(&told, &(struct http_ask){ .method = "GET", .url = arena_printf(rig.a, "http://127.0.0.1:%u/", peer.port) });
    told_close(&told, &rig);
    assert_true(atomic_load(&told.is_ended));
    assert_int_equal(told.r, -ECANCELED);
    raw_close(&peer);
}

static void what_goes_wrong_is_told_at_the_end(void **state)
{
    static const struct { const char *says; enum raw_end end; int r; const char *code; size_t n; } cases[] = {
        { "", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 0 },
        { "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 4 },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", RAW_RESET, -ECONNRESET, "UPSTREAM_CLOSED", 4 },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 0 },
        { "nonsense\r\n", RAW_CLOSE, -EBADMSG, "UPSTREAM_INVALID", 0 },
        { "", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT", 0 },
        { "HTTP/1.1 200 OK\r\n\r\nhalf", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT", 4 },
    };
    AUTO(rig_close) struct rig rig = { 0 };

    rig_open(&rig, serve, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_ask ask = { .method = "GET" };
        struct raw_peer peer;
        struct told told;

        if (cases[i].end == RAW_HANG)   /* the others may be late */
            *(*cases[i].says ? &ask.idle_ms : &ask.first_byte_ms) = 100;
        told_open(&told, &rig);
        raw_open(&peer, cases[i].says, cases[i].end);
        ask.url = arena_printf(rig.a, "http://127.0.0.1:%u/", peer.port);
        start(&told, &ask);
        assert_true(wait_until(has_ended, &told));
        assert_int_equal(told.r, cases[i].r);
        assert_string_equal(told.code, cases[i].code);
        assert_int_equal(told.bytes.n, cases[i].n);
        told_close(&told, &rig);
        raw_close(&peer);
    }
}

static void nobody_listening_is_told_at_the_end_too(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    start(&told, &(struct http_ask){ .method = "GET", .url = arena_printf(rig.a, "http://127.0.0.1:%u/", dead_port()) });
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, -ECONNREFUSED);
    assert_string_equal(told.code, "CONNECT_FAILED");
    told_close(&told, &rig);
}

static void what_is_no_address_is_refused_at_once(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct told told;
    struct err e = { 0 };

    rig_open(&rig, serve, NULL);
    told_open(&told, &rig);
    assert_int_equal(http_fetch_start(told.client, &(struct http_ask){ .method = "GET", .url = "ftp://x/" }, &events, &told, &told.fetch, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_URL");
    assert_null(told.fetch);
    told_close(&told, &rig);
    assert_false(atomic_load(&told.is_ended));
}

/* The loop's connections are shared: one made for the administrator is still open when an app's ask comes. */
static void a_guarded_fetch_is_not_lent_an_open_connection(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct guard *guard = guard_new(&(struct guard_config){ 0 });
    struct told told;
    struct http_ask ask = { .method = "GET" };

    rig_open(&rig, serve, NULL);
    guard_add_own_port(guard, rig.port);
    told_open(&told, &rig);
    ask.url = rig_url(&rig, "/echo");
    start(&told, &ask);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, 0);
    http_fetch_unref(told.fetch);
    atomic_store(&told.is_ended, false);
    ask.guard = guard;
    start(&told, &ask);
    assert_true(wait_until(has_ended, &told));
    assert_int_equal(told.r, -EPERM);
    assert_string_equal(told.code, "ADDRESS_REFUSED");
    told_close(&told, &rig);
    guard_free(guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_arrives_whole_and_in_order),
        cmocka_unit_test(the_body_of_the_ask_is_sent_from_a_copy),
        cmocka_unit_test(a_paused_fetch_stops_reading_and_goes_on_where_it_was),
        cmocka_unit_test(a_cancelled_fetch_closes_its_connection),
        cmocka_unit_test(a_paused_fetch_can_be_cancelled),
        cmocka_unit_test(an_answer_that_is_not_wanted_is_stopped_by_its_reader),
        cmocka_unit_test(a_client_that_is_freed_ends_what_runs),
        cmocka_unit_test(what_goes_wrong_is_told_at_the_end),
        cmocka_unit_test(nobody_listening_is_told_at_the_end_too),
        cmocka_unit_test(what_is_no_address_is_refused_at_once),
        cmocka_unit_test(a_guarded_fetch_is_not_lent_an_open_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
