/* Every refusal over a real socket: the JSON envelope, then the end of the connection. test_head.c tests the grammar
 * itself. */
#include "http/refusal.h"
#include "server_world.h"

static void assert_envelope(struct world *w, const char *text, int status, const char *code)
{
    char line[40], member[60], id[90];

    snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
    snprintf(member, sizeof(member), "\"code\":\"%s\"}", code);
    snprintf(id, sizeof(id), "x-request-id: %s\r\n", w->refused_id);
    assert_contains(text, line);
    assert_contains(text, "content-type: application/json\r\n");
    assert_contains(text, "connection: close\r\n");
    assert_contains(text, "\r\n\r\n{\"success\":false,\"error\":\"");
    assert_contains(text, member);
    assert_contains(text, id);
}

static void a_refusal_is_the_envelope_and_the_end(void **state)
{
    static const struct {
        const char *sent;
        int status;
        const char *code;
    } cases[] = {
        { "hello\r\n\r\n", 400, "BAD_REQUEST" },
        { "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "BAD_REQUEST" },
        { "GET / HTTP/1.1\r\n\r\n", 400, "BAD_REQUEST" },
        { GET("/../etc/passwd") "\r\n", 400, "BAD_PATH" },
        { GET("/x") "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "BAD_REQUEST" },
        { GET("/x") "Content-Length: +1\r\n\r\n", 400, "BAD_REQUEST" },
        { GET("/x") "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "BAD_REQUEST" },
        { GET("/x") "Transfer-Encoding: gzip\r\n\r\n", 501, "NOT_IMPLEMENTED" },
        { GET("/x") "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "BAD_REQUEST" },
        { GET("/x") "Expect: tea\r\n\r\n", 417, "EXPECTATION_FAILED" },
        { "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 501, "NOT_IMPLEMENTED" },
        { "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "VERSION_NOT_SUPPORTED" },
        { "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", 413, "BODY_TOO_LARGE" },
        { "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413, "BODY_TOO_LARGE" },
        { "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n", 413, "BODY_TOO_LARGE" },
        { "POST /small HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n", 413,
          "BODY_TOO_LARGE" },
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = dial(w);

        say(fd, cases[i].sent);
        assert_envelope(w, hear_all(fd), cases[i].status, cases[i].code);
        assert_int_equal(atomic_load(&w->n_refused), i + 1);
        close(fd);
    }
}

static void a_body_at_its_limit_is_taken(void **state)
{
    struct world *w = *state;
    int fd = dial(w);

    say(fd, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
    hear(fd, "POST|/small||-|0123456789");
    say(fd, "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n");
    hear(fd, "POST|/small||-|0123456789");
    close(fd);
}

static void heads_too_large_are_reported_so(void **state)
{
    struct world *w = *state;
    char *filler = malloc(LIMIT_HEADER_BYTES + 1);
    int fd = dial(w);

    memset(filler, 'a', LIMIT_HEADER_BYTES);
    filler[LIMIT_HEADER_BYTES] = '\0';
    say(fd, GET("/x") "X-Large: ");
    say(fd, filler);
    assert_envelope(w, hear_all(fd), 431, "HEADERS_TOO_LARGE");
    close(fd);
    fd = dial(w);
    say(fd, "GET /");
    say(fd, filler);
    assert_envelope(w, hear_all(fd), 414, "URI_TOO_LONG");
    close(fd);
    free(filler);
}

static void the_client_reads_the_refusal_although_it_goes_on_sending(void **state)
{
    struct world *w = *state;
    char *body = calloc(1, LIMIT_LINGER_BYTES);
    int fd = dial(w);

    say(fd, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 34603008\r\n\r\n");
    for (size_t sent = 0; sent < LIMIT_LINGER_BYTES;) {
        ssize_t n = send(fd, body + sent, LIMIT_LINGER_BYTES - sent, MSG_NOSIGNAL);

        assert_true(n > 0);
        sent += (size_t)n;
    }
    assert_envelope(w, hear_all(fd), 413, "BODY_TOO_LARGE");
    free(body);
    close(fd);
}

/* Sends until the other side accepts nothing for patience_ms; returns the number of bytes. */
static size_t pour(int fd, size_t most, int patience_ms)
{
    static const char zeroes[64 << 10];
    struct pollfd out = { .fd = fd, .events = POLLOUT };
    size_t sent = 0;

    while (sent < most && poll(&out, 1, patience_ms) == 1) {
        ssize_t n = send(fd, zeroes, sizeof(zeroes), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            break;
        sent += (size_t)n;
    }
    return sent;
}

static void a_refused_body_is_not_read_to_its_end(void **state)
{
    enum { ANNOUNCED = 60 << 20, KERNEL_BYTES = 16 << 20 };
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, "POST /forbidden HTTP/1.1\r\nHost: a\r\nContent-Length: 62914560\r\n\r\n");
    assert_true(pour(fd, ANNOUNCED, 200) < LIMIT_LINGER_BYTES + KERNEL_BYTES);
    text = hear(fd, "not you");
    assert_contains(text, "HTTP/1.1 403 ");
    assert_contains(text, "connection: close\r\n");
    close(fd);
}

static void a_head_is_judged_before_its_body_comes(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, "POST /forbidden HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
    text = hear_all(fd);
    assert_contains(text, "HTTP/1.1 403 ");
    assert_lacks(text, "100 Continue");
    close(fd);
}

/* When the whole body has arrived, the beginning of the next request is known. */
static void a_refused_body_that_is_here_costs_no_connection(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, "POST /forbidden HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nGET / HTT" GET("/ping") "\r\n");
    text = hear(fd, "{\"success\":true}");
    assert_contains(text, "HTTP/1.1 403 ");
    assert_lacks(text, "connection: close");
    close(fd);
}

static void the_answer_before_a_refusal_comes_first(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, GET("/worker") "\r\nGET /bad\x01 HTTP/1.1\r\n\r\n" GET("/never") "\r\n");
    text = hear_all(fd);
    assert_true(strstr(text, "pad") < strstr(text, "HTTP/1.1 400"));
    assert_lacks(text, "never");
    close(fd);
}

static void a_refused_head_request_has_no_body(void **state)
{
    struct world *w = *state;
    int fd = dial(w);

    say(fd, "HEAD /a/../b HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n");
    assert_lacks(hear_all(fd), "success");
    close(fd);
}

static void bodies_that_are_only_announced_hold_nothing(void **state)
{
    struct world *w = *state;
    int fds[30];

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(w);
        say(fds[i], "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 41943040\r\n\r\n");
        hear(fds[i], "100 Continue");
    }
    assert_int_equal(budget_total(BUDGET_BODY), 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

static bool holds_no_body(struct world *w)
{
    return budget_total(BUDGET_BODY) == 0;
}

static void a_body_beyond_its_callers_budget_is_refused_by_name(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    budget_set_limit(BUDGET_BODY, (int64_t)MIB(1));
    say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 41943040\r\n\r\n");
    assert_true(pour(fd, 2 << 20, WAIT_MS) > 1 << 20);
    text = hear(fd, "BUDGET_EXCEEDED");
    assert_contains(text, "HTTP/1.1 429 ");
    assert_contains(text, "retry-after: 1\r\n");
    assert_contains(text, "`body`");
    close(fd);
    world_wait(holds_no_body, w);
    budget_set_limit(BUDGET_BODY, 1);
    fd = dial(w);
    say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nsmall");
    hear(fd, "POST|/x||-|small");
    close(fd);
    budget_set_limit(BUDGET_BODY, 0);
}

static void texts_name_the_limits_that_hold(void **state)
{
    char number[3][12];

    snprintf(number[0], sizeof(number[0]), " %d ", LIMIT_TARGET_BYTES);
    snprintf(number[1], sizeof(number[1]), " %d ", LIMIT_HEADER_BYTES);
    snprintf(number[2], sizeof(number[2]), " %d ", LIMIT_HEADERS);
    assert_contains(http_refusal_row(REFUSE_TARGET_LENGTH)->text, number[0]);
    assert_contains(http_refusal_row(REFUSE_HEADER_BYTES)->text, number[1]);
    assert_contains(http_refusal_row(REFUSE_HEADER_COUNT)->text, number[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(a_refusal_is_the_envelope_and_the_end),
        SERVED(a_body_at_its_limit_is_taken),
        SERVED(heads_too_large_are_reported_so),
        SERVED(the_client_reads_the_refusal_although_it_goes_on_sending),
        SERVED(the_answer_before_a_refusal_comes_first),
        SERVED(a_refused_head_request_has_no_body),
        SERVED(a_refused_body_is_not_read_to_its_end),
        SERVED(a_head_is_judged_before_its_body_comes),
        SERVED(a_refused_body_that_is_here_costs_no_connection),
        SERVED(bodies_that_are_only_announced_hold_nothing),
        SERVED(a_body_beyond_its_callers_budget_is_refused_by_name),
        cmocka_unit_test(texts_name_the_limits_that_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
