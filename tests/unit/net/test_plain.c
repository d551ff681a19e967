#include "net/http_client.h"

#include "upstream.h"

enum { MANY = LIMIT_UPSTREAM_INTERIM, MOST_STEPS = 8 };

/* ---- a peer that follows a script: one step for each request, or the end of a connection ---- */

#define HANG_UP NULL /* closes the connection; the next step is of another one */

struct peer {
    int listener;
    uint16_t port;
    const char *steps[MOST_STEPS];
    size_t n_steps;
    pthread_t thread;
    atomic_size_t n_accepted, n_requests, n_left; /* n_left: connections that the client closed */
    char heard[8192];                             /* the last request's first bytes */
};

static bool has_whole_request(const char *heard)
{
    const char *end = strstr(heard, "\r\n\r\n"), *length = strstr(heard, "Content-Length: ");

    return end && strlen(end + 4) >= (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
}

static bool hear(struct peer *p, int fd)
{
    size_t n = 0;

    memset(p->heard, 0, sizeof(p->heard));
    while (!has_whole_request(p->heard)) {
        ssize_t more = recv(fd, p->heard + n, sizeof(p->heard) - 1 - n, 0);

        if (more <= 0)
            return false;
        n += (size_t)more;
    }
    atomic_fetch_add(&p->n_requests, 1);
    return true;
}

/* Returns the index of the next connection's first step. */
static size_t serve_connection(struct peer *p, int fd, size_t at)
{
    char rest[64];

    for (; at < p->n_steps && p->steps[at] != HANG_UP; at++) {
        if (!hear(p, fd))
            break;
        (void)!send(fd, p->steps[at], strlen(p->steps[at]), MSG_NOSIGNAL);
    }
    if (at == p->n_steps || p->steps[at] != HANG_UP)
        while (recv(fd, rest, sizeof(rest), 0) > 0) {
        }
    atomic_fetch_add(&p->n_left, at == p->n_steps || p->steps[at] != HANG_UP ? 1 : 0);
    close(fd);
    return at < p->n_steps && p->steps[at] == HANG_UP ? at + 1 : at;
}

static void *run_peer(void *arg)
{
    struct peer *p = arg;
    size_t at = 0;
    int fd;

    while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        atomic_fetch_add(&p->n_accepted, 1);
        at = serve_connection(p, fd, at);
    }
    return NULL;
}

static void peer_open(struct peer *p)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(to);

    while (p->n_steps < MOST_STEPS &&
           (p->steps[p->n_steps] || (p->n_steps + 1 < MOST_STEPS && p->steps[p->n_steps + 1])))
        p->n_steps++;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&to, &n), 0);
    p->port = ntohs(to.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, run_peer, p), 0);
}

static void peer_close(struct peer *p)
{
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
}

/* ---- one client on its loop ---- */

struct bench {
    struct loop *loop;
    pthread_t thread;
    struct http_client *client;
    struct http_fetch *fetch;
    const struct http_call_request *request;
    struct buf bytes;
    size_t n_pieces, pause_at; /* pause_at: after so many bytes; 0: never */
    int status, r;
    char code[40], text[300], header[100];
    bool is_starting, ended_in_start;
    atomic_bool is_running, is_paused, is_ended;
};

static void on_head(void *arg, const struct http_answer *head)
{
    struct bench *b = arg;
    const char *header = http_answer_header(head, "x-note");

    b->status = head->status;
    snprintf(b->header, sizeof(b->header), "%s", header ? header : "");
}

static int on_bytes(void *arg, struct slice bytes)
{
    struct bench *b = arg;

    buf_add_slice(&b->bytes, bytes);
    b->n_pieces++;
    if (!b->pause_at || b->bytes.n < b->pause_at)
        return 0;
    b->pause_at = 0;
    atomic_store(&b->is_paused, true);
    return -EAGAIN;
}

static void on_end(void *arg, int r, const struct err *e)
{
    struct bench *b = arg;

    b->r = r;
    snprintf(b->code, sizeof(b->code), "%s", e->code);
    snprintf(b->text, sizeof(b->text), "%s", e->text);
    b->ended_in_start = b->is_starting;
    atomic_store(&b->is_ended, true);
}

static void note_running(void *arg)
{
    atomic_store(&((struct bench *)arg)->is_running, true);
}

static bool is_running(void *arg)
{
    return atomic_load(&((struct bench *)arg)->is_running);
}

static void *run_loop(void *arg)
{
    (void)!loop_run(((struct bench *)arg)->loop, NULL);
    return NULL;
}

static void bench_open(struct bench *b)
{
    *b = (struct bench){ 0 };
    buf_init(&b->bytes, LIMIT_REPLY);
    assert_int_equal(loop_new(&b->loop, NULL), 0);
    assert_int_equal(http_client_new(b->loop, &b->client, NULL), 0);
    loop_post(b->loop, note_running, b);
    assert_int_equal(pthread_create(&b->thread, NULL, run_loop, b), 0);
    assert_true(wait_until(is_running, b)); /* until then a call would run on this thread */
}

static void free_client(void *arg)
{
    struct bench *b = arg;

    b->client = http_client_free(b->client);
}

static void bench_close(struct bench *b)
{
    loop_call(b->loop, free_client, b);
    loop_stop(b->loop);
    pthread_join(b->thread, NULL);
    http_fetch_unref(b->fetch);
    loop_free(b->loop);
    buf_clear(&b->bytes);
}

static void start_on_loop(void *arg)
{
    static const struct http_fetch_events events = { on_head, on_bytes, on_end };
    struct bench *b = arg;

    b->is_starting = true;
    assert_int_equal(http_fetch_start(b->client, b->request, &events, b, &b->fetch, NULL), 0);
    b->is_starting = false;
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct bench *)arg)->is_ended);
}

static bool has_paused(void *arg)
{
    return atomic_load(&((struct bench *)arg)->is_paused);
}

static void begin(struct bench *b, const struct http_call_request *request)
{
    b->fetch = http_fetch_unref(b->fetch);
    buf_reset(&b->bytes);
    atomic_store(&b->is_ended, false);
    b->request = request;
    loop_call(b->loop, start_on_loop, b);
}

static const struct http_call_header json = { "content-type", "application/json" };

/* A chat: POST with a body. */
static void fetch(struct bench *b, const char *host, uint16_t port)
{
    char url[100];
    const struct http_call_request request = {
        .method = "POST", .url = url, .headers = &json, .n_headers = 1, .body = SLICE_LIT("{\"n\":1}")
    };

    snprintf(url, sizeof(url), "http://%s:%u/v1/chat?x=1#part", host, port);
    begin(b, &request);
    assert_true(wait_until(has_ended, b));
}

#define OK(body, more) "HTTP/1.1 200 OK\r\n" more "content-length: 2\r\n\r\n" body

/* ---- the tests ---- */

static void the_request_is_what_libcurl_would_send(void **state)
{
    struct peer peer = { .steps = { OK("ok", ""), HANG_UP, OK("ok", "") } };
    char by_libcurl[2048], *host;
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    fetch(&b, "a.localhost", peer.port);
    snprintf(by_libcurl, sizeof(by_libcurl), "%s", peer.heard);
    fetch(&b, "localhost", peer.port);
    assert_int_equal(b.r, 0);
    host = strstr(by_libcurl, "a.localhost");
    memmove(host, host + 2, strlen(host + 2) + 1);
    assert_string_equal(peer.heard, by_libcurl);
    bench_close(&b);
    peer_close(&peer);
}

static void a_connection_serves_many_requests(void **state)
{
    struct peer peer = { .steps = { OK("ok", ""),
                                    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=y\r\no\r\n"
                                    "1\r\nk\r\n0\r\nx-trailer: 1\r\n\r\n",
                                    "HTTP/1.1 204 Nothing\r\ncontent-length: 5\r\n\r\n", OK("ok", "") } };
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    for (size_t i = 0; i < peer.n_steps; i++) {
        fetch(&b, "127.0.0.1", peer.port);
        assert_int_equal(b.r, 0);
        assert_string_equal(buf_str(&b.bytes), i == 2 ? "" : "ok");
    }
    assert_int_equal(atomic_load(&peer.n_accepted), 1);
    bench_close(&b);
    peer_close(&peer);
}

static void a_request_is_sent_again_when_its_kept_connection_was_closed(void **state)
{
    struct peer peer = { .steps = { OK("ok", ""), HANG_UP, OK("ok", ""), HANG_UP, OK("ok", "") } };
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    for (int i = 0; i < 3; i++) {
        fetch(&b, "127.0.0.1", peer.port);
        assert_int_equal(b.r, 0);
        assert_string_equal(buf_str(&b.bytes), "ok");
    }
    assert_int_equal(atomic_load(&peer.n_accepted), 3);
    bench_close(&b);
    peer_close(&peer);
}

/* The peer reads the second request and closes: the same on the connection that is opened for it. */
static void a_request_is_sent_again_only_once(void **state)
{
    struct peer peer = { .steps = { OK("ok", ""), "", HANG_UP, "", HANG_UP, OK("ok", "") } };
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    fetch(&b, "127.0.0.1", peer.port);
    fetch(&b, "127.0.0.1", peer.port);
    assert_int_equal(b.r, -ECONNRESET);
    assert_string_equal(b.code, "UPSTREAM_CLOSED");
    assert_int_equal(atomic_load(&peer.n_requests), 3);
    bench_close(&b);
    peer_close(&peer);
}

/* After the first byte of an answer, the provider may have acted on the request. */
static void a_request_whose_answer_began_is_not_sent_again(void **state)
{
    struct peer peer = { .steps = { OK("ok", ""), "H", HANG_UP, OK("ok", "") } };
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    fetch(&b, "127.0.0.1", peer.port);
    fetch(&b, "127.0.0.1", peer.port);
    assert_int_equal(b.r, -ECONNRESET);
    assert_int_equal(atomic_load(&peer.n_requests), 2);
    bench_close(&b);
    peer_close(&peer);
}

static void a_connection_whose_answer_is_not_clean_is_not_kept(void **state)
{
    static const char *const answers[] = {
        OK("ok", "connection: close\r\n"),
        OK("ok", "") "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct peer peer = { .steps = { answers[i], OK("ok", "") } };
        struct bench b;

        peer_open(&peer);
        bench_open(&b);
        for (int request = 0; request < 2; request++) {
            fetch(&b, "127.0.0.1", peer.port);
            assert_int_equal(b.r, 0);
            assert_string_equal(buf_str(&b.bytes), "ok");
        }
        assert_int_equal(atomic_load(&peer.n_accepted), 2);
        bench_close(&b);
        peer_close(&peer);
    }
}

/* Bytes that come while no request runs never become an answer. */
static bool has_left(void *arg)
{
    return atomic_load(&((struct peer *)arg)->n_left) > 0;
}

static void an_idle_connection_that_speaks_is_closed(void **state)
{
    struct peer peer = { .steps = { OK("ok", "") "x" } };
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    fetch(&b, "127.0.0.1", peer.port);
    assert_int_equal(b.r, 0);
    assert_true(wait_until(has_left, &peer));
    bench_close(&b);
    peer_close(&peer);
}

static char *repeated(const char *start, const char *line, size_t n, const char *end)
{
    char *text = xcalloc(1, strlen(start) + n * strlen(line) + strlen(end) + 1), *to = stpcpy(text, start);

    while (n-- > 0)
        to = stpcpy(to, line);
    stpcpy(to, end);
    return text;
}

static void heads_have_limits(void **state)
{
    static char long_line[LIMIT_UPSTREAM_HEAD + 100];
    const struct {
        const char *start, *line;
        size_t n;
        const char *end;
        int r;
        const char *code;
    } cases[] = {
        { "HTTP/1.1 200 OK\r\n", "a: b\r\n", LIMIT_UPSTREAM_HEADERS - 1, "content-length: 2\r\n\r\nok", 0, "" },
        { "HTTP/1.1 200 OK\r\n", "a: b\r\n", LIMIT_UPSTREAM_HEADERS, "content-length: 2\r\n\r\nok", -EMSGSIZE,
          "UPSTREAM_TOO_LARGE" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
          "x-note: 0123456789012345678901234567890123456789012345678901"
          "0123456789012345678901234567890123456789012345678901\r\n",
          (LIMIT_UPSTREAM_HEAD - 20) / 114, "\r\nok", -EMSGSIZE, "UPSTREAM_TOO_LARGE" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-long: ", long_line, 1, "\r\n\r\nok", -EMSGSIZE,
          "UPSTREAM_TOO_LARGE" },
        { "", "HTTP/1.1 100 Continue\r\n\r\n", MANY, OK("ok", ""), 0, "" },
        { "", "HTTP/1.1 100 Continue\r\n\r\n", MANY + 1, OK("ok", ""), -EBADMSG, "UPSTREAM_INVALID" },
    };

    memset(long_line, 'x', sizeof(long_line) - 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *answer = repeated(cases[i].start, cases[i].line, cases[i].n, cases[i].end);
        struct peer peer = { .steps = { answer } };
        struct bench b;

        peer_open(&peer);
        bench_open(&b);
        fetch(&b, "127.0.0.1", peer.port);
        assert_int_equal(b.r, cases[i].r);
        assert_string_equal(b.code, cases[i].code);
        bench_close(&b);
        peer_close(&peer);
        free(answer);
    }
}

static void every_way_to_delimit_an_answer_is_read(void **state)
{
    static const struct {
        const char *answer, *body, *note;
        int r;
    } cases[] = {
        { "HTTP/1.1 103 Early\r\nx-note: early\r\n\r\n" OK("ok", "X-Note:  late \r\n"), "ok", "late", 0 },
        { "HTTP/1.1 200 OK\r\nx-note:\r\n\r\nto the end", "to the end", "", 0 },
        { "HTTP/1.1 200\r\nx-note: a\r\n b\r\n\r\n", "", "a b", 0 },
        { "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx", "", "", -EBADMSG },
        { "HTTP/1.1 99 Low\r\n\r\n", "", "", -EBADMSG },
        { "HTTP/1.1 2000 High\r\n\r\n", "", "", -EBADMSG },
        { "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "", "", -EBADMSG },
        { "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok", "", "", -EBADMSG },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "", "", -ECONNRESET },
        { "HTTP/1.1 200 OK\r\nx-note: a", "", "", -ECONNRESET },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct peer peer = { .steps = { cases[i].answer, HANG_UP, "" } };
        struct bench b;

        peer_open(&peer);
        bench_open(&b);
        fetch(&b, "127.0.0.1", peer.port);
        assert_int_equal(b.r, cases[i].r);
        assert_string_equal(buf_str(&b.bytes), cases[i].body);
        assert_string_equal(b.header, cases[i].note);
        bench_close(&b);
        peer_close(&peer);
    }
}

static void resume(void *arg)
{
    http_fetch_resume(((struct bench *)arg)->fetch);
}

/* The last byte of the body is the last byte that arrives: no event of the socket follows it. */
static void an_answer_that_pauses_at_its_last_byte_ends_after_the_pause(void **state)
{
    static const char *const answers[] = { OK("ok", ""), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                                                         "2\r\nok\r\n0\r\n\r\n" };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct peer peer = { .steps = { answers[i], OK("ok", "") } };
        struct http_call_request request = { .method = "GET", .idle_ms = 20000 };
        char url[60];
        struct bench b;

        peer_open(&peer);
        bench_open(&b);
        b.pause_at = 2;
        snprintf(url, sizeof(url), "http://127.0.0.1:%u", peer.port);
        request.url = url;
        begin(&b, &request);
        assert_true(wait_until(has_paused, &b));
        assert_false(atomic_load(&b.is_ended));
        loop_call(b.loop, resume, &b);
        assert_true(wait_until(has_ended, &b));
        assert_int_equal(b.r, 0);
        assert_string_equal(buf_str(&b.bytes), "ok");
        fetch(&b, "127.0.0.1", peer.port); /* the connection is kept after it */
        assert_int_equal(atomic_load(&peer.n_accepted), 1);
        bench_close(&b);
        peer_close(&peer);
    }
}

static void nothing_is_reported_inside_the_start(void **state)
{
    struct bench b;

    bench_open(&b);
    fetch(&b, "127.0.0.1", dead_port());
    assert_int_equal(b.r, -ECONNREFUSED);
    assert_string_equal(b.code, "CONNECT_FAILED");
    assert_false(b.ended_in_start);
    bench_close(&b);
}

static void the_service_itself_is_refused(void **state)
{
    struct peer peer = { .steps = { OK("ok", "") } };
    struct guard *own = guard_new(&(struct guard_config){ 0 });
    struct bench b;

    peer_open(&peer);
    bench_open(&b);
    guard_add_own_port(own, peer.port);
    guard_set_own(own);
    fetch(&b, "localhost", peer.port);
    assert_int_equal(b.r, -EPERM);
    assert_non_null(strstr(b.text, "is this service itself"));
    assert_false(b.ended_in_start);
    assert_int_equal(atomic_load(&peer.n_accepted), 0);
    guard_set_own(NULL);
    bench_close(&b);
    peer_close(&peer);
    guard_free(own);
}

/* A peer that refuses a request closes before it has read all of it. */
static void an_answer_before_the_end_of_the_request_is_read(void **state)
{
    struct raw_peer peer;
    size_t n = MIB(8);
    char *body = xcalloc(1, n), url[60];
    const struct http_call_request request = {
        .method = "POST", .url = url, .headers = &json, .n_headers = 1, .body = { body, n }
    };
    struct bench b;

    bench_open(&b);
    raw_open(&peer, "HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno", RAW_HANG);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", peer.port);
    begin(&b, &request);
    assert_true(wait_until(has_ended, &b));
    assert_int_equal(b.r, 0);
    assert_int_equal(b.status, 413);
    assert_string_equal(buf_str(&b.bytes), "no");
    bench_close(&b);
    raw_close(&peer);
    free(body);
}

static void a_header_that_breaks_its_line_is_refused(void **state)
{
    static const struct http_call_header bad[] = { { "content-type", "x\r\nx-forged: 1" }, { "a b", "c" } };
    struct err e;
    struct bench b;

    bench_open(&b);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct http_call_request request = {
            .method = "GET", .url = "http://127.0.0.1:1/", .headers = &bad[i], .n_headers = 1
        };

        err_init(&e);
        assert_int_equal(http_fetch_start(b.client, &request, &(struct http_fetch_events){ 0 }, &b, &b.fetch, &e),
                         -EINVAL);
        assert_string_equal(e.code, "BAD_HEADER");
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_what_libcurl_would_send),
        cmocka_unit_test(a_connection_serves_many_requests),
        cmocka_unit_test(a_request_is_sent_again_when_its_kept_connection_was_closed),
        cmocka_unit_test(a_request_is_sent_again_only_once),
        cmocka_unit_test(a_request_whose_answer_began_is_not_sent_again),
        cmocka_unit_test(a_connection_whose_answer_is_not_clean_is_not_kept),
        cmocka_unit_test(an_idle_connection_that_speaks_is_closed),
        cmocka_unit_test(heads_have_limits),
        cmocka_unit_test(every_way_to_delimit_an_answer_is_read),
        cmocka_unit_test(an_answer_that_pauses_at_its_last_byte_ends_after_the_pause),
        cmocka_unit_test(nothing_is_reported_inside_the_start),
        cmocka_unit_test(the_service_itself_is_refused),
        cmocka_unit_test(an_answer_before_the_end_of_the_request_is_read),
        cmocka_unit_test(a_header_that_breaks_its_line_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
