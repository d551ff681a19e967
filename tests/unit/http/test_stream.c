#include "server_world.h"

/* Sends a request and takes its exchange, like a worker. */
static struct http_exchange *take_exchange(struct world *w, int fd, const char *request)
{
    struct http_exchange *x;

    say(fd, request);
    world_wait(is_held, w);
    x = atomic_exchange(&w->held, NULL);
    http_exchange_on_gone(x, NULL, NULL);
    return x;
}

static struct http_stream *start_events(struct world *w, int fd)
{
    return sse_start(take_exchange(w, fd, GET("/hold") "\r\n"));
}

static void events_arrive_as_chunks_and_the_connection_goes_on(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);
    const char *text;

    text = hear(fd, "\r\n\r\n");
    assert_contains(text, "content-type: text/event-stream\r\n");
    assert_contains(text, "cache-control: no-store\r\n");
    assert_contains(text, "x-accel-buffering: no\r\n");
    assert_contains(text, "transfer-encoding: chunked\r\n");
    assert_lacks(text, "content-length");
    assert_int_equal(sse_push(s, NULL, NULL, SLICE_LIT("one")), 0);
    assert_string_equal(hear(fd, "\n\n\r\n"), "b\r\ndata: one\n\n\r\n");
    assert_int_equal(sse_push(s, "e", NULL, SLICE_LIT("two")), 0);
    http_stream_end(s);
    say(fd, GET("/ping") "\r\n");
    text = hear(fd, "success");
    assert_contains(text, "event: e\ndata: two\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n");
    world_wait(is_quiet, w);
    close(fd);
}

static void a_stream_of_http10_ends_with_the_connection(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = sse_start(take_exchange(w, fd, "GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    const char *text;

    assert_int_equal(sse_push(s, NULL, NULL, SLICE_LIT("one")), 0);
    http_stream_end(s);
    text = hear_all(fd);
    assert_contains(text, "connection: close\r\n");
    assert_contains(text, "\r\n\r\ndata: one\n\n");
    assert_lacks(text, "chunked");
    close(fd);
}

static void a_stream_asked_for_by_head_is_mute(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = sse_start(take_exchange(w, fd, "HEAD /hold HTTP/1.1\r\nHost: a\r\n\r\n"));

    assert_int_equal(sse_push(s, NULL, NULL, SLICE_LIT("one")), 0);
    http_stream_end(s);
    say(fd, GET("/ping") "\r\n");
    assert_lacks(hear(fd, "success"), "one");
    close(fd);
}

static void an_aborted_stream_ends_without_its_last_chunk(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);

    assert_int_equal(sse_push(s, NULL, NULL, SLICE_LIT("one")), 0);
    hear(fd, "data: one\n\n\r\n");
    http_stream_abort(s);
    assert_string_equal(hear_all(fd), "");
    close(fd);
    world_wait(is_quiet, w);
}

static void comment_often(struct http_server_config *c)
{
    c->comment_every_ms = 20;
}

static void a_silent_event_stream_gets_comments(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);

    hear_times(fd, "3\r\n:\n\n\r\n", 3);
    http_stream_end(s);
    hear(fd, "0\r\n\r\n");
    close(fd);
}

enum { PIECE = 10000, PIECES = 1200 }; /* more than the socket and the buffer can hold together */

static void *push_much(void *arg)
{
    static char piece[PIECE];
    struct http_stream *s = arg;
    intptr_t n = 0;

    memset(piece, '.', sizeof(piece));
    while (n < PIECES && http_stream_push(s, (struct slice){ piece, sizeof(piece) }) == 0)
        n++;
    return (void *)n;
}

struct probe {
    struct http_stream *s;
    int r;
};

static void push_comment(void *arg)
{
    struct probe *probe = arg;

    probe->r = http_stream_push(probe->s, SLICE_LIT(":\n\n"));
}

/* A push on the loop fails exactly while a push on a worker waits. */
static void await_fill(struct world *w, struct http_stream *s)
{
    int64_t end_ms = clock_mono_ms() + WAIT_MS;
    struct probe probe = { .s = s };

    while (probe.r != -EAGAIN) {
        loop_call(w->loop, push_comment, &probe);
        assert_true(clock_mono_ms() < end_ms);
        poll(NULL, 0, 1);
    }
}

static void a_slow_reader_makes_a_worker_wait(void **state)
{
    static char text[1 << 16];
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);
    pthread_t pusher;
    size_t dots = 0;
    void *pushed;

    assert_int_equal(pthread_create(&pusher, NULL, push_much, s), 0);
    await_fill(w, s);
    while (dots < (size_t)PIECES * PIECE) {
        ssize_t n = recv(fd, text, sizeof(text), 0);

        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            dots += text[i] == '.';
    }
    pthread_join(pusher, &pushed);
    assert_int_equal((intptr_t)pushed, PIECES);
    http_stream_end(s);
    close(fd);
}

static void a_leaving_client_frees_the_waiting_worker(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);
    pthread_t pusher;
    void *pushed;

    assert_int_equal(pthread_create(&pusher, NULL, push_much, s), 0);
    await_fill(w, s);
    close(fd);
    pthread_join(pusher, &pushed);
    assert_true((intptr_t)pushed < PIECES);
    assert_true(http_stream_is_gone(s));
    assert_int_equal(http_stream_push(s, SLICE_LIT("late")), -EPIPE);
    http_stream_end(s);
    world_wait(is_quiet, w);
}

struct relay {
    struct world *w;
    struct http_stream *s; /* owned */
    atomic_int n_pushed;
    atomic_int last; /* result of the latest push */
};

/* Like a relayed upstream: pushes until told to stop, resumes when told. */
static void relay_on(struct relay *relay)
{
    static char piece[PIECE];

    memset(piece, '.', sizeof(piece));
    relay->last = 0;
    while (relay->n_pushed < PIECES && relay->last == 0) {
        relay->last = http_stream_push(relay->s, (struct slice){ piece, sizeof(piece) });
        relay->n_pushed += relay->last == 0;
    }
    if (relay->n_pushed == PIECES || relay->last == -EPIPE)
        relay->s = http_stream_end(relay->s);
}

static void on_relay_change(struct http_stream *s, void *arg)
{
    struct relay *relay = arg;

    atomic_fetch_add(&relay->w->n_changes, 1);
    if (relay->s)
        relay_on(relay);
}

static void start_relay(void *arg)
{
    struct relay *relay = arg;

    http_stream_on_change(relay->s, on_relay_change, relay);
    if (relay->s)
        relay_on(relay);
}

static void a_slow_reader_stops_the_relay_until_there_is_room(void **state)
{
    static char text[1 << 16];
    struct world *w = *state;
    int fd = dial(w);
    struct relay relay = { .w = w, .s = start_events(w, fd) };
    size_t dots = 0;

    loop_call(w->loop, start_relay, &relay);
    assert_int_equal(relay.last, -EAGAIN);
    assert_true(relay.n_pushed < PIECES);
    while (dots < (size_t)PIECES * PIECE) {
        ssize_t n = recv(fd, text, sizeof(text), 0);

        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            dots += text[i] == '.';
    }
    assert_true(atomic_load(&w->n_changes) > 0);
    close(fd);
    world_wait(is_quiet, w);
}

static bool is_change_reported(struct world *w)
{
    return atomic_load(&w->n_changes) > 0;
}

static void a_leaving_client_is_reported_to_the_relay(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct relay relay = { .w = w, .s = start_events(w, fd) };

    loop_call(w->loop, start_relay, &relay);
    close(fd);
    world_wait(is_change_reported, w);
    world_wait(is_quiet, w);
    assert_int_equal(relay.last, -EPIPE);
    assert_null(relay.s);
}

static void who_asks_after_the_client_left_is_reported_at_once(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_exchange *x = take_exchange(w, fd, GET("/hold") "\r\n");
    struct relay relay = { .w = w };

    http_exchange_on_gone(x, count_gone, w);
    close(fd);
    world_wait(is_gone_reported, w);
    relay.s = sse_start(x);
    assert_int_equal(atomic_load(&w->n_changes), 0);
    loop_call(w->loop, start_relay, &relay);
    assert_int_equal(atomic_load(&w->n_changes), 1);
    assert_null(relay.s);
    world_wait(is_quiet, w);
}

static void a_stopping_server_ends_streams_at_once(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);

    loop_call(w->loop, stop_server, w);
    assert_true(http_stream_is_gone(s));
    assert_int_equal(sse_push(s, NULL, NULL, SLICE_LIT("late")), -EPIPE);
    http_stream_end(s);
    close(fd);
}

static void a_push_above_the_limit_is_refused(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_stream *s = start_events(w, fd);
    char *bytes = calloc(1, LIMIT_STREAM_PUSH + 1);

    assert_int_equal(http_stream_push(s, (struct slice){ bytes, LIMIT_STREAM_PUSH + 1 }), -E2BIG);
    assert_int_equal(http_stream_push(s, (struct slice){ bytes, LIMIT_STREAM_PUSH }), 0);
    assert_int_equal(http_stream_push(s, (struct slice){ bytes, 0 }), 0);
    free(bytes);
    http_stream_end(s);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(events_arrive_as_chunks_and_the_connection_goes_on),
        SERVED(a_stream_of_http10_ends_with_the_connection),
        SERVED(a_stream_asked_for_by_head_is_mute),
        SERVED(an_aborted_stream_ends_without_its_last_chunk),
        SERVED(a_slow_reader_makes_a_worker_wait),
        SERVED(a_leaving_client_frees_the_waiting_worker),
        SERVED(a_slow_reader_stops_the_relay_until_there_is_room),
        SERVED(a_leaving_client_is_reported_to_the_relay),
        SERVED(who_asks_after_the_client_left_is_reported_at_once),
        SERVED(a_stopping_server_ends_streams_at_once),
        SERVED(a_push_above_the_limit_is_refused),
        SERVED_WITH(a_silent_event_stream_gets_comments, comment_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
