#include "server_world.h"

#include <netinet/tcp.h>

enum { MANY = 300 };

static void an_inline_answer_has_date_id_and_length(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, GET("/ping") "\r\n");
    text = hear(fd, "{\"success\":true}");
    assert_contains(text, "HTTP/1.1 200 OK\r\n");
    assert_contains(text, "content-length: 16\r\n");
    assert_contains(text, "content-type: application/json\r\n");
    assert_contains(text, "x-request-id: ");
    assert_contains(text, " GMT\r\n");
    assert_lacks(text, "connection:");
    close(fd);
}

static void a_clean_request_id_is_kept_and_a_dirty_one_replaced(void **state)
{
    static const struct {
        const char *id;
        bool is_kept;
    } cases[] = { { "abc-1.2_Z", true },
                  { "a b", false },
                  { "", false },
                  { "<x>", false },
                  { "0123456789012345678901234567890123456789012345678901234567890123", true },
                  { "01234567890123456789012345678901234567890123456789012345678901234", false } };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char request[300], line[120];
        int fd = dial(w);
        const char *text;

        snprintf(request, sizeof(request), GET("/ping") "X-Request-Id: %s\r\n\r\n", cases[i].id);
        snprintf(line, sizeof(line), "x-request-id: %s\r\n", cases[i].id);
        say(fd, request);
        text = hear(fd, "}");
        if (cases[i].is_kept)
            assert_contains(text, line);
        else
            assert_lacks(text, line);
        close(fd);
    }
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, GET("/one") "\r\n" GET("/worker") "\r\n" GET("/two?q=1") "\r\n");
    text = hear(fd, "GET|/two|q=1|-|");
    assert_true(strstr(text, "GET|/one||-|") < strstr(text, "\"pad\""));
    assert_true(strstr(text, "\"pad\"") < strstr(text, "/two"));
    close(fd);
}

static void a_pipeline_does_not_hold_the_loop(void **state)
{
    enum { REQUESTS = 1000 };
    struct world *w = *state;
    int fd = dial(w);
    struct buf all;

    buf_init(&all, MIB(1));
    for (int i = 0; i < REQUESTS; i++)
        buf_printf(&all, "%s\r\n", GET("/ping"));
    say(fd, buf_str(&all));
    buf_clear(&all);
    hear_times(fd, "HTTP/1.1 200 OK", REQUESTS);
    world_turn(w);
    assert_in_range(atomic_load(&w->n_most_in_turn), 1, 2 * LIMIT_PIPELINED_A_TURN);
    close(fd);
}

static void a_request_may_arrive_byte_by_byte(void **state)
{
    static const char request[] =
        "\r\nPOST /a%20b HTTP/1.1\r\nHost: a\r\nX-Note:  hi \t\r\nContent-Length: 3\r\n\r\nabc"
        "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nde\r\n1\r\nf\r\n0\r\nT: v\r\n\r\n";
    struct world *w = *state;
    int fd = dial(w), one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    for (size_t i = 0; i < sizeof(request) - 1; i++)
        assert_int_equal(send(fd, request + i, 1, 0), 1);
    hear(fd, "POST|/c||-|def");
    close(fd);
}

static void a_large_body_arrives_whole(void **state)
{
    struct world *w = *state;
    size_t n = 3 << 20;
    char *body = malloc(n + 1);
    int fd = dial(w);
    size_t sent = 0;

    memset(body, 'x', n);
    body[n] = '\0';
    say(fd, "POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\nConnection: close\r\n\r\n");
    while (sent < n) {
        ssize_t now = send(fd, body + sent, n - sent, MSG_NOSIGNAL);

        assert_true(now > 0);
        sent += (size_t)now;
    }
    hear(fd, "content-length: 3145742\r\n");
    free(body);
    close(fd);
}

static void head_is_answered_without_a_body(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, "HEAD /ping HTTP/1.1\r\nHost: a\r\n\r\nGET /one HTTP/1.1\r\nHost: a\r\n\r\n");
    text = hear(fd, "GET|/one");
    assert_contains(text, "content-length: 16\r\n");
    assert_lacks(text, "success");
    close(fd);
}

static void http10_is_closed_unless_it_asks_to_stay(void **state)
{
    struct world *w = *state;
    int fd = dial(w);

    say(fd, "GET /ping HTTP/1.0\r\n\r\n");
    assert_contains(hear_all(fd), "connection: close\r\n");
    close(fd);
    fd = dial(w);
    say(fd, "GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_contains(hear(fd, "}"), "connection: keep-alive\r\n");
    say(fd, "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n");
    assert_contains(hear_all(fd), "connection: close\r\n");
    close(fd);
}

static void a_client_that_expects_100_is_reported_to_go_on(void **state)
{
    struct world *w = *state;
    int fd = dial(w);

    say(fd, "POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(hear(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "ok");
    hear(fd, "POST|/e||-|ok");
    close(fd);
}

static void json_is_compressed_only_for_who_accepts_it(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    const char *text;

    say(fd, GET("/worker") "Accept-Encoding: br, gzip\r\n\r\n");
    text = hear(fd, "\r\n\r\n");
    assert_contains(text, "content-encoding: gzip\r\n");
    assert_contains(text, "vary: accept-encoding\r\n");
    close(fd);
    fd = dial(w);
    say(fd, GET("/worker") "Accept-Encoding: gzip;q=0\r\n\r\n");
    text = hear(fd, "\"}");
    assert_lacks(text, "content-encoding");
    assert_contains(text, "vary: accept-encoding\r\n");
    close(fd);
}

static void a_big_answer_reaches_a_slow_reader_whole(void **state)
{
    struct world *w = *state;
    static char piece[1 << 16];
    size_t got = 0;
    int fd = dial(w);
    ssize_t now;

    say(fd, GET("/big") "Connection: close\r\n\r\n");
    shutdown(fd, SHUT_WR); /* a client that awaits an answer keeps its connection */
    while ((now = recv(fd, piece, sizeof(piece), 0)) > 0)
        got += (size_t)now;
    assert_int_equal(now, 0);
    assert_true(got > 20 << 20);
    close(fd);
}

static void an_answer_may_come_from_another_thread(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_exchange *x;
    const char *text;

    say(fd, GET("/hold") "\r\n");
    world_wait(is_held, w);
    assert_int_equal(http_server_in_flight(w->server), 1);
    x = atomic_exchange(&w->held, NULL);
    http_exchange_on_gone(x, NULL, NULL);
    x->response.status = 201;
    http_response_header(x, "x-odd", "a\r\nb: c");
    answer_text(x, "{}");
    text = hear(fd, "{}");
    assert_contains(text, "HTTP/1.1 201 Created\r\n");
    assert_contains(text, "x-odd: ab: c\r\n");
    world_wait(is_quiet, w);
    assert_int_equal(atomic_load(&w->n_gone), 0);
    close(fd);
}

static void a_leaving_client_is_seen_at_once_and_a_late_answer_dropped(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_exchange *x;

    say(fd, GET("/hold") "\r\n");
    world_wait(is_held, w);
    close(fd);
    world_wait(is_gone_reported, w);
    x = atomic_load(&w->held);
    assert_true(atomic_load(&x->is_gone));
    http_exchange_on_gone(x, count_gone, w); /* the client is gone already: called immediately */
    assert_int_equal(atomic_load(&w->n_gone), 2);
    http_exchange_on_gone(x, NULL, NULL);
    answer_text(x, "{}");
    world_wait(is_quiet, w);
}

static void an_answer_after_the_stop_is_dropped(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_exchange *x;

    say(fd, GET("/hold") "\r\n");
    world_wait(is_held, w);
    x = atomic_load(&w->held);
    loop_call(w->loop, stop_server, w);
    assert_true(atomic_load(&x->is_gone));
    answer_text(x, "{}");
    assert_string_equal(hear_all(fd), "");
    close(fd);
}

static void pipelining_without_end_costs_the_connection(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct http_exchange *x;
    const char *text;

    say(fd, GET("/hold") "\r\n");
    world_wait(is_held, w);
    for (int i = 0; i < 8000; i++)
        say(fd, GET("/ping") "\r\n");
    for (int i = 0; i < 100; i++) /* rounds of the loop; each of them reads */
        world_turn(w);
    x = atomic_load(&w->held);
    http_exchange_on_gone(x, NULL, NULL);
    answer_text(x, "{}");
    text = hear_all(fd);
    assert_contains(text, "connection: close\r\n");
    assert_lacks(text, "success");
    close(fd);
}

static void drain_server(void *arg)
{
    struct world *w = arg;

    http_server_drain(w->server);
}

static void draining_closes_idle_connections_and_lets_work_finish(void **state)
{
    struct world *w = *state;
    int idle = dial(w), busy = dial(w);
    struct http_exchange *x;

    say(idle, GET("/ping") "\r\n");
    hear(idle, "}");
    say(busy, GET("/hold") "\r\n");
    world_wait(is_held, w);
    loop_call(w->loop, drain_server, w);
    assert_string_equal(hear_all(idle), "");
    x = atomic_load(&w->held);
    http_exchange_on_gone(x, NULL, NULL);
    answer_text(x, "{}");
    assert_contains(hear_all(busy), "connection: close\r\n");
    close(idle);
    close(busy);
}

static bool has_many(struct world *w)
{
    return n_connections() == MANY;
}

static void drain_and_count(void *arg)
{
    drain_server(arg);
    assert_true(MANY - n_connections() <= LIMIT_CLOSED_A_TURN);
}

static void many_idle_connections_are_closed_in_several_turns(void **state)
{
    struct world *w = *state;
    int fds[MANY];

    for (size_t i = 0; i < MANY; i++)
        fds[i] = dial(w);
    world_wait(has_many, w);
    loop_call(w->loop, drain_and_count, w);
    world_wait(has_no_connection, w);
    for (size_t i = 0; i < MANY; i++)
        close(fds[i]);
}

static void close_some_and_count(void *arg)
{
    struct world *w = arg;
    int before = n_connections();

    w->n_in_turn = http_server_close_some(w->server);
    assert_true(before - n_connections() <= LIMIT_CLOSED_A_TURN);
}

static void many_working_connections_are_closed_in_several_turns(void **state)
{
    struct world *w = *state;
    int fds[MANY];

    for (size_t i = 0; i < MANY; i++) {
        fds[i] = dial(w);
        say(fds[i], GET("/half"));
    }
    world_wait(has_many, w);
    do
        loop_call(w->loop, close_some_and_count, w);
    while (w->n_in_turn);
    assert_int_equal(n_connections(), 0);
    for (size_t i = 0; i < MANY; i++)
        close(fds[i]);
}

static void allow_two_connections(struct http_server_config *c)
{
    c->max_connections = 2;
}

static void a_newcomer_takes_the_place_of_the_longest_idle(void **state)
{
    struct world *w = *state;
    int first = dial(w), second = dial(w), third;

    say(first, GET("/ping") "\r\n");
    hear(first, "}");
    say(second, GET("/ping") "\r\n");
    hear(second, "}");
    third = dial(w);
    say(third, GET("/ping") "\r\n");
    hear(third, "}");
    assert_string_equal(hear_all(first), "");
    say(second, GET("/ping") "\r\n");
    hear(second, "}");
    close(first);
    close(second);
    close(third);
}

static void a_connection_that_never_asked_goes_before_one_that_did(void **state)
{
    struct world *w = *state;
    int used = dial(w), silent, third;
    const char *text;

    say(used, GET("/ping") "\r\n");
    hear(used, "}");
    silent = dial(w);
    third = dial(w);
    text = hear_all(silent);
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "`connections`");
    say(used, GET("/ping") "\r\n");
    hear(used, "}");
    close(used);
    close(silent);
    close(third);
}

static bool has_two_in_flight(struct world *w)
{
    return http_server_in_flight(w->server) == 2;
}

static void while_all_connections_work_only_the_administrator_is_served(void **state)
{
    struct world *w = *state;
    int busy[2], late;
    const char *text;

    for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
        busy[i] = dial(w);
        say(busy[i], GET("/forever") "\r\n");
    }
    world_wait(has_two_in_flight, w);
    late = dial(w);
    say(late, GET("/ping") "\r\n");
    text = hear_all(late);
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "retry-after: 1\r\n");
    assert_contains(text, "\"code\":\"OVERLOADED\"");
    close(late);
    late = dial(w);
    say(late, GET("/administrator") "\r\n");
    hear(late, "GET|/administrator");
    close(late);
    for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
        close(busy[i]);
    world_wait(has_no_connection, w);
}

/* Does not shorten the idle time of a connection: this client may be delayed before its first byte. */
static void shorten_deadlines(struct http_server_config *c)
{
    c->head_timeout_ms = c->body_timeout_ms = c->write_timeout_ms = 50;
}

static void shorten_idling(struct http_server_config *c)
{
    c->idle_timeout_ms = 50;
}

static void what_takes_too_long_is_reported_408(void **state)
{
    static const struct {
        const char *sent, *answer;
    } cases[] = {
        { "GET /ping HTTP/1.1\r\nHost", "HTTP/1.1 408 Request Timeout\r\n" },
        { "POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", "\"code\":\"REQUEST_TIMEOUT\"" },
        { "POST /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 408 " },
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = dial(w);

        say(fd, cases[i].sent);
        assert_contains(hear_all(fd), cases[i].answer);
        close(fd);
    }
}

static void who_says_nothing_is_closed(void **state)
{
    struct world *w = *state;
    int fd = dial(w);

    assert_string_equal(hear_all(fd), "");
    close(fd);
}

static void a_client_that_never_reads_its_answer_is_closed(void **state)
{
    struct world *w = *state;
    int fd = dial(w);
    struct pollfd answer = { .fd = fd, .events = POLLIN };

    say(fd, GET("/big") "\r\n");
    assert_int_equal(poll(&answer, 1, WAIT_MS), 1); /* the answer has arrived */
    world_wait(has_no_connection, w);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(an_inline_answer_has_date_id_and_length),
        SERVED(a_clean_request_id_is_kept_and_a_dirty_one_replaced),
        SERVED(pipelined_requests_are_answered_in_order),
        SERVED(a_pipeline_does_not_hold_the_loop),
        SERVED(many_idle_connections_are_closed_in_several_turns),
        SERVED(many_working_connections_are_closed_in_several_turns),
        SERVED(a_request_may_arrive_byte_by_byte),
        SERVED(a_large_body_arrives_whole),
        SERVED(head_is_answered_without_a_body),
        SERVED(http10_is_closed_unless_it_asks_to_stay),
        SERVED(a_client_that_expects_100_is_reported_to_go_on),
        SERVED(json_is_compressed_only_for_who_accepts_it),
        SERVED(a_big_answer_reaches_a_slow_reader_whole),
        SERVED(an_answer_may_come_from_another_thread),
        SERVED(a_leaving_client_is_seen_at_once_and_a_late_answer_dropped),
        SERVED(an_answer_after_the_stop_is_dropped),
        SERVED(pipelining_without_end_costs_the_connection),
        SERVED(draining_closes_idle_connections_and_lets_work_finish),
        SERVED_WITH(a_newcomer_takes_the_place_of_the_longest_idle, allow_two_connections),
        SERVED_WITH(a_connection_that_never_asked_goes_before_one_that_did, allow_two_connections),
        SERVED_WITH(while_all_connections_work_only_the_administrator_is_served, allow_two_connections),
        SERVED_WITH(what_takes_too_long_is_reported_408, shorten_deadlines),
        SERVED_WITH(who_says_nothing_is_closed, shorten_idling),
        SERVED_WITH(a_client_that_never_reads_its_answer_is_closed, shorten_deadlines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
