#include "world.h"
#include "http/sse.h"

/* ROUTE_RELAY with an upstream that is a timer on the loop: a worker prepares the stream, then no thread waits for it.
 */

enum { EVENT_BYTES = 8192, N_EVENTS = 2000 };

/* Lives on the loop; the test reads the counters. */
struct upstream {
    struct loop *loop;
    struct http_stream *stream; /* owned */
    struct loop_timer *timer;   /* owned */
    size_t n_pushed, n_wanted;
};

static atomic_size_t n_pauses, n_ended, n_aborted;

static void end_upstream(struct upstream *up, atomic_size_t *how)
{
    atomic_fetch_add(how, 1); /* before the client sees the end */
    loop_timer_free(up->timer);
    http_stream_on_change(up->stream, NULL, NULL);
    http_stream_end(up->stream);
    free(up);
}

static int push_one(struct upstream *up)
{
    static const char filling[EVENT_BYTES] = { [0 ... EVENT_BYTES - 2] = '.' };
    char event[EVENT_BYTES + 32];
    int n = snprintf(event, sizeof(event), "%zu%s", up->n_pushed, filling);

    return sse_push(up->stream, NULL, NULL, (struct slice){ event, (size_t)n });
}

/* An upstream that has more data at every call until all is sent. */
static void on_upstream(void *arg)
{
    struct upstream *up = arg;
    int r = 0;

    while (r == 0 && up->n_pushed < up->n_wanted) {
        r = push_one(up);
        up->n_pushed += r == 0;
    }
    if (r == -EAGAIN)
        atomic_fetch_add(&n_pauses, 1); /* on_change resumes */
    else
        end_upstream(up, r == 0 ? &n_ended : &n_aborted);
}

static void on_change(struct http_stream *s, void *arg)
{
    struct upstream *up = arg;

    if (http_stream_is_gone(s))
        end_upstream(up, &n_aborted);
    else
        loop_timer_set(up->timer, 1);
}

static void start_upstream(void *arg)
{
    struct upstream *up = arg;

    up->timer = loop_timer_new(up->loop, on_upstream, up);
    http_stream_on_change(up->stream, on_change, up);
    loop_timer_set(up->timer, 1);
}

struct relay_query {
    int64_t n;
};

static const struct field relay_query_fields[] = {
    FIELD_INT(struct relay_query, n, "n", .max = N_EVENTS, .def = N_EVENTS), FIELD_END
};

static int relay(struct request *req, struct response *res, struct err *e)
{
    const struct relay_query *query = req->query;
    struct loop *loop = req->api->loop;
    struct upstream *up;

    if (query->n == 0)
        return err_set(e, -EAGAIN, "NOT_READY", "The upstream has nothing to say.");
    up = xcalloc(1, sizeof(*up));
    *up = (struct upstream){ .loop = loop, .n_wanted = (size_t)query->n, .stream = request_take_events(req, res) };
    loop_post(loop, start_upstream, up);
    return 0;
}

static const struct route relay_routes[] = {
    { .method = HTTP_GET,
      .path = "/test/relay",
      .permission = PERM_LLM_CHAT,
      .kind = ROUTE_RELAY,
      ROUTE_QUERY(relay_query_fields, struct relay_query),
      .answer_type = "text/event-stream",
      .handler = relay,
      .summary = "Relays a stream",
      .tag = "Test" },
    ROUTE_END,
};

static const struct route *const tables[] = { relay_routes, NULL };

static void open_relay(struct world *w)
{
    atomic_store(&n_pauses, 0);
    atomic_store(&n_ended, 0);
    atomic_store(&n_aborted, 0);
    world_open(w, tables, NULL, 0);
    world_serve(w, tables);
    decide(&w->f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
}

static int request_relay(struct world *w, int n_events)
{
    int fd = world_connect(w);

    send_text(fd, arena_printf(w->f.a, "GET /test/relay?n=%d HTTP/1.0\r\nhost: localhost\r\nx-app-id: " APP "\r\n\r\n",
                               n_events));
    return fd;
}

static void the_stream_arrives_whole_and_in_order(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct slice all;
    const char *at;
    int fd;

    open_relay(&w);
    fd = request_relay(&w, 50);
    all = receive_all(&w, fd);
    close(fd);
    assert_non_null(strstr(all.p, "content-type: text/event-stream"));
    at = all.p;
    for (int i = 0; i < 50; i++) {
        at = strstr(at, arena_printf(w.f.a, "data: %d.", i));
        assert_non_null(at);
    }
    assert_int_equal(atomic_load(&n_ended), 1);
}

static void errors_before_the_first_byte_are_ordinary_json(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    open_relay(&w);
    reply = request(&w, "GET /test/relay?n=0 HTTP/1.1\r\nhost: localhost\r\nx-app-id: " APP "\r\n", "");
    assert_int_equal(reply.status, 503);
    assert_string_equal(code_of(&reply), "NOT_READY");
    reply = request(&w, "GET /test/relay HTTP/1.1\r\nhost: localhost\r\nx-app-id: " OTHER_APP "\r\n", "");
    assert_int_equal(reply.status, 403);
}

static bool has_paused(void *arg)
{
    return atomic_load(&n_pauses) > 0;
}

static bool is_idle(void *pool)
{
    return pool_busy(pool) == 0;
}

static void a_slow_client_pauses_the_upstream_and_misses_nothing(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    char *bytes = xcalloc(1, KIB(64));
    size_t n_data = 0;
    ssize_t got;
    int fd;

    open_relay(&w);
    fd = request_relay(&w, N_EVENTS);
    assert_true(wait_until(has_paused, NULL));
    assert_true(wait_until(is_idle, w.short_pool)); /* no worker waits for the slow client */
    while ((got = recv(fd, bytes, KIB(64), 0)) > 0)
        n_data += (size_t)got;
    assert_true(n_data > (size_t)N_EVENTS * EVENT_BYTES);
    assert_int_equal(atomic_load(&n_ended), 1);
    close(fd);
    free(bytes);
}

static bool has_aborted(void *arg)
{
    return atomic_load(&n_aborted) > 0;
}

static bool is_quiet(void *arg)
{
    struct world *w = arg;

    return http_server_in_flight(w->server) == 0;
}

static void a_client_that_leaves_ends_the_upstream(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    int fd;

    open_relay(&w);
    fd = request_relay(&w, N_EVENTS);
    assert_true(wait_until(has_paused, NULL));
    close(fd);
    assert_true(wait_until(has_aborted, NULL));
    assert_true(wait_until(is_quiet, &w));
    assert_int_equal(atomic_load(&n_ended), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_arrives_whole_and_in_order),
        cmocka_unit_test(errors_before_the_first_byte_are_ordinary_json),
        cmocka_unit_test(a_slow_client_pauses_the_upstream_and_misses_nothing),
        cmocka_unit_test(a_client_that_leaves_ends_the_upstream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
