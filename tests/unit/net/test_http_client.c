#include "net/http_client.h"

#include "net/sse_reader.h"
#include "record.h"

enum { N_EVENTS = 200, PAUSE_BYTES = 2 << 20 };

/* Every test runs over both transports: libcurl serves what is not a literal loopback address or "localhost". */
static const char *host = "127.0.0.1";

static char *url_of(struct rig *rig, uint16_t port, const char *path)
{
    return arena_printf(rig->a, "http://%s:%u%s", host, port, path);
}

static struct http_stream *unfinished;

static void end_unfinished(void *arg)
{
    http_stream_end(unfinished);
}

/* The upstream: /unfinished ends by end_unfinished() only, /events sends N_EVENTS events, /large PAUSE_BYTES bytes,
 * /echo its body, /said a header and its body. */
static void serve(void *arg, struct http_exchange *x)
{
    if (strcmp(x->request.path, "/unfinished") == 0) {
        unfinished = sse_start(x);
        return;
    }
    if (strcmp(x->request.path, "/events") == 0) {
        struct http_stream *s = sse_start(x);

        for (int i = 0; i < N_EVENTS; i++) {
            char text[16];
            int n = snprintf(text, sizeof(text), "%d", i);

            assert_int_equal(sse_push(s, NULL, NULL, (struct slice){ text, (size_t)n }), 0);
        }
        http_stream_end(s);
        return;
    }
    if (strcmp(x->request.path, "/large") == 0) {
        memset(buf_reserve(&x->response.body, PAUSE_BYTES), 'x', PAUSE_BYTES);
        x->response.body.n = PAUSE_BYTES;
    } else {
        const char *said = http_header(&x->request, "x-said");

        if (strcmp(x->request.path, "/said") == 0)
            buf_printf(&x->response.body, "%s|", said ? said : "nothing");
        buf_add_slice(&x->response.body, x->request.body);
    }
    http_exchange_send(x);
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
    struct record record;
    int n = 0;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, rig.port, "/events") });
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    assert_int_equal(record.status, 200);
    assert_string_equal(record.type, "text/event-stream");
    sse_reader_init(&reader, count, &n);
    assert_int_equal(sse_reader_feed(&reader, buf_slice(&record.bytes), NULL), 0);
    assert_int_equal(n, N_EVENTS);
    sse_reader_clear(&reader);
    record_close(&record, &rig);
}

static void the_body_of_the_ask_is_sent_from_a_copy(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;
    size_t n = MIB(3);
    char *body = xcalloc(1, n);

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    memset(body, 'b', n);
    start(&record,
          &(struct http_call_request){ .method = "POST", .url = url_of(&rig, rig.port, "/echo"), .body = { body, n } });
    memset(body, 0, n);
    free(body);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    assert_int_equal(record.bytes.n, n);
    assert_int_equal(record.bytes.p[n - 1], 'b');
    record_close(&record, &rig);
}

static void nothing(void *arg)
{
}

/* The loop runs many rounds and no byte arrives. */
static bool stays_quiet(struct rig *rig, struct record *record)
{
    size_t before = atomic_load(&record->n_bytes);

    for (int i = 0; i < 100; i++)
        loop_call(rig->loop, nothing, NULL);
    return atomic_load(&record->n_bytes) == before;
}

static void a_paused_fetch_stops_reading_and_goes_on_where_it_was(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    record.pause_at = 10000;
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, rig.port, "/large") });
    assert_true(wait_until(has_paused, &record));
    assert_true(stays_quiet(&rig, &record));
    assert_true(atomic_load(&record.n_bytes) < 10000 + KIB(16));
    assert_false(atomic_load(&record.is_ended));
    loop_call(rig.loop, resume, &record);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    assert_int_equal(record.bytes.n, PAUSE_BYTES);
    record_close(&record, &rig);
}

/* It is not resumed: on a loop that stands still the upstream, which is on the same loop, would be silent then. */
static void a_pause_is_no_silence_of_the_upstream(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;
    int64_t paused_ms;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    record.pause_at = 1;
    start(&record,
          &(struct http_call_request){ .method = "GET", .url = url_of(&rig, rig.port, "/large"), .idle_ms = IDLE_MS });
    assert_true(wait_until(has_paused, &record));
    paused_ms = clock_mono_ms();
    assert_true(wait_until(has_the_limit_passed, &paused_ms));
    assert_true(stays_quiet(&rig, &record));
    http_fetch_cancel(record.fetch);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ECANCELED);
    record_close(&record, &rig);
}

static void a_cancelled_fetch_closes_its_connection(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct raw_peer peer;
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    raw_open(&peer, "HTTP/1.1 200 OK\r\n\r\nsome", RAW_HANG);
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, peer.port, "/") });
    assert_true(wait_until(has_bytes, &record));
    http_fetch_cancel(record.fetch);
    http_fetch_cancel(record.fetch);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ECANCELED);
    raw_close(&peer);
    assert_true(atomic_load(&peer.has_left));
    record_close(&record, &rig);
}

static void a_paused_fetch_can_be_cancelled(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    record.pause_at = 1;
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, rig.port, "/large") });
    assert_true(wait_until(has_paused, &record));
    http_fetch_cancel(record.fetch);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ECANCELED);
    record_close(&record, &rig);
}

static void an_answer_that_is_not_wanted_is_stopped_by_its_reader(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    record.stop_with = -EBADMSG;
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, rig.port, "/large") });
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -EBADMSG);
    assert_string_equal(record.code, "");
    assert_true(record.bytes.n < PAUSE_BYTES);
    record_close(&record, &rig);
}

static void a_client_that_is_freed_ends_what_runs(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct raw_peer peer;
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    raw_open(&peer, "", RAW_HANG);
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, peer.port, "/") });
    record_close(&record, &rig);
    assert_true(atomic_load(&record.is_ended));
    assert_int_equal(record.r, -ECANCELED);
    raw_close(&peer);
}

static void what_goes_wrong_is_reported_at_the_end(void **state)
{
    static const struct {
        const char *says;
        enum raw_end end;
        int r;
        const char *code;
        size_t n;
    } cases[] = {
        { "", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 0 },
        { "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 4 },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", RAW_RESET, -ECONNRESET,
          "UPSTREAM_CLOSED", 4 },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", 0 },
        { "nonsense\r\n", RAW_CLOSE, -EBADMSG, "UPSTREAM_INVALID", 0 },
        { "", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT", 0 },
        { "HTTP/1.1 200 OK\r\n\r\nhalf", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT", 4 },
    };
    AUTO(rig_close) struct rig rig = { 0 };

    rig_open(&rig, serve, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_call_request request = { .method = "GET" };
        struct raw_peer peer;
        struct record record;

        if (cases[i].end == RAW_HANG) /* the others may be late */
            *(*cases[i].says ? &request.idle_ms : &request.first_byte_ms) = 100;
        record_open(&record, &rig);
        raw_open(&peer, cases[i].says, cases[i].end);
        request.url = url_of(&rig, peer.port, "/");
        start(&record, &request);
        assert_true(wait_until(has_ended, &record));
        assert_int_equal(record.r, cases[i].r);
        assert_string_equal(record.code, cases[i].code);
        assert_int_equal(record.bytes.n, cases[i].n);
        record_close(&record, &rig);
        raw_close(&peer);
    }
}

/* Until the head arrives, only limits that are far away apply. */
static void the_idle_limit_begins_with_the_head(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_call_request request = {
        .method = "GET", .connect_ms = 600000, .first_byte_ms = 600000, .idle_ms = 100, .total_ms = 600000
    };
    struct raw_peer peer;
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    raw_open(&peer, "HTTP/1.1 200 OK\r\n\r\nhalf", RAW_HANG);
    request.url = url_of(&rig, peer.port, "/");
    start(&record, &request);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ETIMEDOUT);
    assert_non_null(strstr(record.text, "sent nothing more for 0.1 seconds"));
    record_close(&record, &rig);
    raw_close(&peer);
}

static void nobody_listening_is_reported_at_the_end_too(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    start(&record, &(struct http_call_request){ .method = "GET", .url = url_of(&rig, dead_port(), "/") });
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ECONNREFUSED);
    assert_string_equal(record.code, "CONNECT_FAILED");
    record_close(&record, &rig);
}

static void what_is_no_address_is_refused_at_once(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct record record;
    struct err e = { 0 };

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    assert_int_equal(http_fetch_start(record.client, &(struct http_call_request){ .method = "GET", .url = "ftp://x/" },
                                      &events, &record, &record.fetch, &e),
                     -EINVAL);
    assert_string_equal(e.code, "BAD_URL");
    assert_null(record.fetch);
    record_close(&record, &rig);
    assert_false(atomic_load(&record.is_ended));
}

/* The loop's connections are shared: a connection made for the administrator is still open when an app's request comes.
 */
static void a_guarded_fetch_is_not_lent_an_open_connection(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct guard *guard = guard_new(&(struct guard_config){ 0 });
    struct record record;
    struct http_call_request request = { .method = "GET" };

    rig_open(&rig, serve, NULL);
    guard_add_own_port(guard, rig.port);
    record_open(&record, &rig);
    request.url = url_of(&rig, rig.port, "/echo");
    start(&record, &request);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    http_fetch_unref(record.fetch);
    atomic_store(&record.is_ended, false);
    request.guard = guard;
    start(&record, &request);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -EPERM);
    assert_string_equal(record.code, "ADDRESS_REFUSED");
    record_close(&record, &rig);
    guard_free(guard);
}

struct starting {
    struct record *record;
    const struct http_call_request *request;
};

static void start_on_loop(void *arg)
{
    const struct starting *starting = arg;

    start(starting->record, starting->request);
}

/* On the loop, a request takes over the handle of an earlier request to its address. */
static void a_request_carries_nothing_of_the_one_before_it(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    const struct http_call_header key = { "x-said", "the first one's key" };
    const struct {
        const char *body, *answer;
        size_t n_headers;
    } requests[] = { { "a long first body", "the first one's key|a long first body", 1 },
                     { "short", "nothing|short", 0 },
                     { "a third body", "nothing|a third body", 0 },
                     { "4", "the first one's key|4", 1 } };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        const struct http_call_request request = { .method = "POST",
                                                   .url = url_of(&rig, rig.port, "/said"),
                                                   .headers = &key,
                                                   .n_headers = requests[i].n_headers,
                                                   .body = slice_of(requests[i].body) };

        buf_reset(&record.bytes);
        atomic_store(&record.is_ended, false);
        loop_call(rig.loop, start_on_loop, &(struct starting){ &record, &request });
        assert_true(wait_until(has_ended, &record));
        assert_int_equal(record.r, 0);
        assert_string_equal(buf_str(&record.bytes), requests[i].answer);
        record.fetch = http_fetch_unref(record.fetch);
    }
    record_close(&record, &rig);
}

static void an_open_connection_whose_answer_does_not_end_is_no_failure_to_connect(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_call_request request = { .method = "GET" };
    struct record record;

    rig_open(&rig, serve, NULL);
    record_open(&record, &rig);
    request.url = url_of(&rig, rig.port, "/echo");
    start(&record, &request);
    assert_true(wait_until(has_ended, &record));
    record.fetch = http_fetch_unref(record.fetch);
    atomic_store(&record.is_ended, false);
    request.url = url_of(&rig, rig.port, "/unfinished");
    request.total_ms = 200;
    start(&record, &request);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ETIMEDOUT);
    assert_string_equal(record.code, "UPSTREAM_TIMEOUT");
    loop_call(rig.loop, end_unfinished, NULL);
    record_close(&record, &rig);
}

static int use_plain(void **state)
{
    host = "127.0.0.1";
    return 0;
}

static int use_libcurl(void **state)
{
    host = "name.localhost";
    return 0;
}

#define OVER_BOTH(test) cmocka_unit_test_setup(test, use_plain), cmocka_unit_test_setup(test, use_libcurl)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(a_stream_arrives_whole_and_in_order),
        OVER_BOTH(the_body_of_the_ask_is_sent_from_a_copy),
        OVER_BOTH(a_paused_fetch_stops_reading_and_goes_on_where_it_was),
        OVER_BOTH(a_pause_is_no_silence_of_the_upstream),
        OVER_BOTH(a_cancelled_fetch_closes_its_connection),
        OVER_BOTH(a_paused_fetch_can_be_cancelled),
        OVER_BOTH(an_answer_that_is_not_wanted_is_stopped_by_its_reader),
        OVER_BOTH(a_client_that_is_freed_ends_what_runs),
        OVER_BOTH(what_goes_wrong_is_reported_at_the_end),
        OVER_BOTH(the_idle_limit_begins_with_the_head),
        OVER_BOTH(nobody_listening_is_reported_at_the_end_too),
        OVER_BOTH(what_is_no_address_is_refused_at_once),
        OVER_BOTH(a_guarded_fetch_is_not_lent_an_open_connection),
        OVER_BOTH(a_request_carries_nothing_of_the_one_before_it),
        OVER_BOTH(an_open_connection_whose_answer_does_not_end_is_no_failure_to_connect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
