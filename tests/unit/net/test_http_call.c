#include "net/http_client.h"

#include "base/budget.h"
#include "base/metrics.h"

#include "upstream.h"

/* Echoes the request: method, path, header x-echo, body; /large?n sends n bytes, /redirect redirects. */
static void echo(void *arg, struct http_exchange *x)
{
    const struct http_request *q = &x->request;
    const char *header = http_header(q, "x-echo");

    atomic_fetch_add((atomic_int *)arg, 1);
    http_response_header(x, "X-Told", "yes");
    if (strcmp(q->path, "/large") == 0) {
        size_t n = strtoul(q->query, NULL, 10);

        memset(buf_reserve(&x->response.body, n), 'x', n);
        x->response.body.n = n;
    } else if (strcmp(q->path, "/redirect") == 0) {
        x->response.status = 302;
        http_response_header(x, "location", "/elsewhere");
    } else {
        x->response.status = strcmp(q->path, "/refuse") == 0 ? 418 : 200;
        buf_printf(&x->response.body, "%s %s %s ", http_method_name(q->method), q->path, header ? header : "-");
        buf_add_slice(&x->response.body, q->body);
    }
    http_exchange_send(x);
}

static int call(struct arena *a, const char *url, const char *body, struct http_answer *ret, struct err *e)
{
    const struct http_call_header headers[] = { { "x-echo", "said" }, { "content-type", "text/plain" } };
    const struct http_call_request request = {
        .method = body ? "POST" : "GET", .url = url, .headers = headers, .n_headers = 2, .body = slice_of(body)
    };

    return http_call(&request, a, NULL, ret, e);
}

static void the_answer_comes_whole_with_status_and_headers(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_answer answer = { 0 };
    atomic_int n = 0;

    rig_open(&rig, echo, &n);
    assert_int_equal(call(rig.a, rig_url(&rig, "/a"), "the body", &answer, NULL), 0);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body.p, "POST /a said the body");
    assert_string_equal(http_answer_header(&answer, "x-told"), "yes");
    assert_null(http_answer_header(&answer, "x-other"));
    assert_int_equal(call(rig.a, rig_url(&rig, "/refuse"), NULL, &answer, NULL), 0);
    assert_int_equal(answer.status, 418);
    assert_string_equal(answer.body.p, "GET /refuse said ");
}

static void listen_everywhere(void *arg)
{
    struct rig *rig = arg;

    assert_int_equal(http_server_listen(rig->server, "0.0.0.0", 0, &rig->port, NULL), 0);
}

static bool has_connections(void *arg)
{
    char line[64];
    struct buf page;
    bool has;

    snprintf(line, sizeof(line), "\nhearth_http_connections %d\n", *(int *)arg);
    buf_init(&page, MIB(1));
    metrics_print(&page);
    has = strstr(buf_str(&page), line) != NULL;
    buf_clear(&page);
    return has;
}

static void idle_connections_are_kept_up_to_a_limit_until_they_are_closed(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_answer answer = { 0 };
    atomic_int n = 0;

    http_call_close_idle(0);
    rig_open(&rig, echo, &n);
    loop_call(rig.loop, listen_everywhere, &rig);
    for (int i = 0; i < 2 * (LIMIT_CALL_IDLE + 1); i++) {
        const char *url = arena_printf(rig.a, "http://127.0.0.%d:%u/a", 1 + i / 2, rig.port);

        assert_int_equal(call(rig.a, url, NULL, &answer, NULL), 0);
    }
    assert_true(wait_until(has_connections, &(int){ LIMIT_CALL_IDLE }));
    http_call_close_idle(WAIT_MS);
    assert_true(has_connections(&(int){ LIMIT_CALL_IDLE }));
    http_call_close_idle(0);
    assert_true(wait_until(has_connections, &(int){ 0 }));
}

static void an_answer_that_finds_no_room_is_refused_in_words(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    atomic_int n = 0;

    rig_open(&rig, echo, &n);
    arena_alloc(rig.a, LIMIT_ARENA_BYTES - MIB(1));
    assert_int_equal(call(rig.a, rig_url(&rig, "/large?2000"), NULL, &answer, &e), 0);
    assert_int_equal(call(rig.a, rig_url(&rig, "/large?1000000"), NULL, &answer, &e), -EMSGSIZE);
    assert_string_equal(e.code, "UPSTREAM_TOO_LARGE");
    assert_non_null(strstr(e.text, "answered with more than one request may hold."));
}

static void a_redirect_is_an_answer_and_not_followed(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_answer answer = { 0 };
    atomic_int n = 0;

    rig_open(&rig, echo, &n);
    assert_int_equal(call(rig.a, rig_url(&rig, "/redirect"), NULL, &answer, NULL), 0);
    assert_int_equal(answer.status, 302);
    assert_int_equal(atomic_load(&n), 1);
}

static void an_answer_above_the_limit_is_refused(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    atomic_int n = 0;
    struct http_call_request request = { .method = "GET", .max_reply = 1000 };

    rig_open(&rig, echo, &n);
    request.url = rig_url(&rig, "/large?1000");
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, &e), 0);
    assert_int_equal(answer.body.n, 1000);
    request.url = rig_url(&rig, "/large?1001");
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, &e), -EMSGSIZE);
    assert_string_equal(e.code, "UPSTREAM_TOO_LARGE");
}

static void a_large_answer_is_paid_for_while_its_arena_lives(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct budget_holder *holder = budget_holder_get(HOLDER_APP, "payer");
    struct http_call_request request = { .method = "GET", .holder = holder };
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    atomic_int n = 0;

    rig_open(&rig, echo, &n);
    for (int is_above = 0; is_above < 2; is_above++) {
        struct arena *a = arena_new();

        request.url = rig_url(&rig, is_above ? "/large?2100000" : "/large?1000000");
        assert_int_equal(http_call(&request, a, NULL, &answer, &e), 0);
        assert_int_equal(budget_held(holder, BUDGET_MEMORY), is_above ? 4 * MIB(2) : 0);
        arena_free(a);
        assert_int_equal(budget_held(holder, BUDGET_MEMORY), 0);
    }
    budget_set_limit(BUDGET_MEMORY, (int64_t)(5 * MIB(1)));
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, &e), -EBUSY);
    assert_string_equal(e.code, "BUDGET_EXCEEDED");
    budget_holder_unref(holder);
}

static void what_goes_wrong_is_reported_in_words(void **state)
{
    static const struct {
        const char *says;
        enum raw_end end;
        int r;
        const char *code, *words;
    } cases[] = {
        { "", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", "without an answer" },
        { "", RAW_RESET, -ECONNRESET, "UPSTREAM_CLOSED", "without an answer" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", RAW_CLOSE, -ECONNRESET, "UPSTREAM_CLOSED", "complete" },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", RAW_CLOSE, -ECONNRESET,
          "UPSTREAM_CLOSED", "complete" },
        { "SSH-2.0-OpenSSH\r\n", RAW_CLOSE, -EBADMSG, "UPSTREAM_INVALID", "speak HTTP" },
        { "", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "did not begin" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", RAW_HANG, -ETIMEDOUT, "UPSTREAM_TIMEOUT",
          "nothing more" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_call_request request = { .method = "GET" };
        struct http_answer answer = { 0 };
        struct err e = { 0 };
        struct raw_peer peer;

        if (cases[i].end == RAW_HANG) /* the others may be late */
            *(*cases[i].says ? &request.idle_ms : &request.first_byte_ms) = 100;
        raw_open(&peer, cases[i].says, cases[i].end);
        request.url = arena_printf(a, "http://127.0.0.1:%u/", peer.port);
        assert_int_equal(http_call(&request, a, NULL, &answer, &e), cases[i].r);
        assert_string_equal(e.code, cases[i].code);
        assert_non_null(strstr(e.text, cases[i].words));
        assert_null(answer.body.p);
        raw_close(&peer);
    }
}

static void the_total_time_is_a_limit_too(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    struct raw_peer peer;

    raw_open(&peer, "HTTP/1.1 200 OK\r\n\r\n", RAW_HANG);
    assert_int_equal(http_call(&(struct http_call_request){ .method = "GET",
                                                            .total_ms = 80,
                                                            .url = arena_printf(a, "http://127.0.0.1:%u/", peer.port) },
                               a, NULL, &answer, &e),
                     -ETIMEDOUT);
    assert_string_equal(e.code, "UPSTREAM_TIMEOUT");
    raw_close(&peer);
}

static void a_closed_port_a_missing_name_and_a_peer_without_tls_have_their_sentences(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_answer answer = { 0 };
    struct raw_peer plain;
    struct err e = { 0 };

    assert_int_equal(call(a, arena_printf(a, "http://127.0.0.1:%u/", dead_port()), NULL, &answer, &e), -ECONNREFUSED);
    assert_string_equal(e.code, "CONNECT_FAILED");
    assert_non_null(strstr(e.text, "is the server there running"));
    assert_int_equal(call(a, "http://no-such-host.invalid/", NULL, &answer, &e), -EHOSTUNREACH);
    assert_string_equal(e.code, "DNS_FAILED");
    assert_non_null(strstr(e.text, "no-such-host.invalid"));
    raw_open(&plain, "HTTP/1.1 400 Bad Request\r\n\r\n", RAW_CLOSE);
    assert_int_equal(call(a, arena_printf(a, "https://127.0.0.1:%u/", plain.port), NULL, &answer, &e), -EPROTO);
    assert_string_equal(e.code, "TLS_FAILED");
    raw_close(&plain);
}

static void what_cannot_be_asked_is_refused_before_it_is_sent(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_call_header bad[] = { { "x-a", "1\r\nx-b: 2" }, { "x a", "1" }, { "", "1" } };
    struct http_answer answer = { 0 };
    struct err e = { 0 };

    assert_int_equal(call(a, "ftp://127.0.0.1/", NULL, &answer, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_URL");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct http_call_request request = {
            .method = "GET", .url = "http://127.0.0.1:1/", .headers = &bad[i], .n_headers = 1
        };

        assert_int_equal(http_call(&request, a, NULL, &answer, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_HEADER");
    }
}

struct leaver {
    struct raw_peer *peer;
    atomic_bool is_gone;
};

static bool has_heard(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_heard);
}

/* Disconnects once the upstream has the request, so that there is a call to end. */
static void *leave(void *arg)
{
    struct leaver *l = arg;

    wait_until(has_heard, l->peer);
    atomic_store(&l->is_gone, true);
    return NULL;
}

static void a_caller_that_is_gone_ends_the_call(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    struct raw_peer peer;
    struct leaver leaver = { .peer = &peer };
    pthread_t thread;

    raw_open(&peer, "", RAW_HANG);
    assert_int_equal(pthread_create(&thread, NULL, leave, &leaver), 0);
    assert_int_equal(http_call(&(struct http_call_request){ .method = "GET",
                                                            .url = arena_printf(a, "http://127.0.0.1:%u/", peer.port) },
                               a, &leaver.is_gone, &answer, &e),
                     -ECANCELED);
    pthread_join(thread, NULL);
    raw_close(&peer);
    assert_true(atomic_load(&peer.has_left));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_connections_are_kept_up_to_a_limit_until_they_are_closed),
        cmocka_unit_test(the_answer_comes_whole_with_status_and_headers),
        cmocka_unit_test(an_answer_that_finds_no_room_is_refused_in_words),
        cmocka_unit_test(a_redirect_is_an_answer_and_not_followed),
        cmocka_unit_test(an_answer_above_the_limit_is_refused),
        cmocka_unit_test(a_large_answer_is_paid_for_while_its_arena_lives),
        cmocka_unit_test(what_goes_wrong_is_reported_in_words),
        cmocka_unit_test(the_total_time_is_a_limit_too),
        cmocka_unit_test(a_closed_port_a_missing_name_and_a_peer_without_tls_have_their_sentences),
        cmocka_unit_test(what_cannot_be_asked_is_refused_before_it_is_sent),
        cmocka_unit_test(a_caller_that_is_gone_ends_the_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
