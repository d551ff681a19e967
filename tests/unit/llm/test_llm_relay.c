/* The service in front of the upstream of desk.h: both on one loop, the clients are plain sockets. */
#include "desk.h"

#include "llm/relay.h"

struct front {
    struct desk desk;
    struct http_server *server;
    struct llm_relays *relays;
    uint16_t port;
    atomic_int n_started, n_failed, n_ended, n_whole;
    struct llm_usage used;              /* by the last that ended */
};

static void add_part(struct buf *out, const char *what, struct slice text)
{
    buf_printf(out, "data: %s %.*s\n\n", what, (int)text.n, text.p);
}

static void tell_text(struct buf *out, const struct llm_told *t, struct slice text)
{
    add_part(out, "text", text);
}

static void tell_end(struct buf *out, const struct llm_told *t)
{
    const struct llm_usage *usage = &t->answer->usage;

    buf_printf(out, "data: end %s %s %d+%d\n\n", t->provider, t->model, (int)usage->prompt_tokens, (int)usage->completion_tokens);
}

static void tell_error(struct buf *out, const struct llm_told *t, const struct err *e)
{
    buf_printf(out, "event: error\ndata: %s %s\n\n", e->code, e->text);
}

static const struct llm_form form = { .text = tell_text, .end = tell_end, .error = tell_error };

struct asking { struct front *front; struct http_exchange *x; };

static struct http_stream *start(void *arg, const struct llm_told *t)
{
    struct asking *asking = arg;

    http_response_header(asking->x, "x-provider", t->provider);
    return sse_start(asking->x);
}

static void refuse_client(void *arg, int r, const struct err *e, int64_t retry_after_ms)
{
    struct asking *asking = arg;

    atomic_fetch_add(&asking->front->n_failed, 1);
    asking->x->response.status = 502;
    buf_printf(&asking->x->response.body, "%s %lld %s", e->code, (long long)retry_after_ms, e->text);
    http_exchange_send(asking->x);
}

static void count(void *arg, const struct llm_told *t, bool is_whole)
{
    struct front *f = ((struct asking *)arg)->front;

    f->used = t->answer->usage;
    atomic_fetch_add(&f->n_whole, is_whole);
    atomic_fetch_add(&f->n_ended, 1);
}

static const struct llm_relay_host host = { start, refuse_client, count };

/* "uuid:number:scope" of the test. */
static void on_return(struct front *f, struct http_exchange *x, const char *last_id, struct arena *a, struct asking *asking)
{
    char *copy = arena_strdup(a, last_id);

    copy[36] = '\0';
    llm_relay_resume(f->relays, &(struct llm_resume){ .arena = a, .uuid = copy, .after = strtol(copy + 37, NULL, 10), .scope = strchr(copy + 37, ':') + 1,
                                                      .host = &host, .host_arg = asking, .exchange = x });
}

static void on_request(void *arg, struct http_exchange *x)
{
    struct front *f = arg;
    struct arena *a = arena_new();
    struct asking *asking = ARENA_NEW(a, struct asking);

    *asking = (struct asking){ f, x };
    if (http_header(&x->request, "last-event-id")) {
        on_return(f, x, http_header(&x->request, "last-event-id"), a, asking);
        return;
    }
    atomic_fetch_add(&f->n_started, 1);
    llm_relay_start(f->relays, &(struct llm_relay_start){ .arena = a, .plan = desk_plan(&f->desk, a, http_exchange_body_arena(x), true), .form = &form, .host = &host,
                                                          .host_arg = asking, .exchange = x,
                                                          .scope = http_header(&x->request, "x-scope") ? "mine" : NULL });
}

static void open_front(void *arg)
{
    struct front *f = arg;
    const struct http_server_config c = { .on_request = on_request, .on_head = rig_head, .arg = f };

    assert_int_equal(llm_relays_new(f->desk.rig.loop, f->desk.settings, &f->relays, NULL), 0);
    assert_int_equal(http_server_start(f->desk.rig.loop, &c, &f->server, NULL), 0);
    assert_int_equal(http_server_listen(f->server, "127.0.0.1", 0, &f->port, NULL), 0);
}

static void close_front(void *arg)
{
    struct front *f = arg;

    f->server = http_server_stop(f->server);
    f->relays = llm_relays_free(f->relays);
}

static void front_open(struct front *f, const char *first, const char *fallback)
{
    desk_open(&f->desk, first, fallback);
    loop_call(f->desk.rig.loop, open_front, f);
}

static void front_close(struct front *f)
{
    loop_call(f->desk.rig.loop, close_front, f);
    desk_close(&f->desk);
    assert_int_equal(atomic_load(&f->n_ended), atomic_load(&f->n_started));
}

static int ask_with(struct front *f, const char *header)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(f->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const char *request = arena_printf(f->desk.a, "POST /chat HTTP/1.0\r\nhost: x\r\n%scontent-length: 0\r\n\r\n", header);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

static int ask(struct front *f)
{
    return ask_with(f, "");
}

static char *receive(struct front *f, int fd)
{
    size_t size = MIB(32), n = 0;
    char *all = arena_alloc(f->desk.a, size);
    ssize_t got;

    while ((got = recv(fd, all + n, size - 1 - n, 0)) > 0)
        n += (size_t)got;
    close(fd);
    return all;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %.2000s", part, text);
}

static void deltas_become_events_as_they_come(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all;

    front_open(&f, "/", NULL);
    all = receive(&f, ask(&f));
    assert_has(all, "x-provider: one\r\n");
    assert_has(all, "data: text Hel\n\ndata: text lo\n\ndata: end one m-1 3+5\n\n");
    assert_int_equal(atomic_load(&f.n_failed), 0);
    assert_int_equal(atomic_load(&f.n_whole), 1);
    assert_int_equal(f.used.prompt_tokens, 3);
    assert_int_equal(f.used.completion_tokens, 5);
}

static void what_fails_before_the_first_delta_is_an_ordinary_error(void **state)
{
    static const struct { const char *path, *wanted; int n_asked; } cases[] = {
        { "/locked", "LLM_ERROR 0 one refuses the API key", 1 },
        { "/limited", "RATE_LIMIT 20000 one takes no more", 1 },
        { "/unwilling", "LLM_ERROR 0 one fails (503)", 2 },
        { "/refusing", "LLM_ERROR 0 one reports: overloaded", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].path, NULL);
        assert_has(receive(&f, ask(&f)), cases[i].wanted);
        assert_int_equal(atomic_load(&f.desk.n_asked), cases[i].n_asked);
        assert_int_equal(atomic_load(&f.n_failed), 1);
        assert_int_equal(atomic_load(&f.n_whole), 0);
        assert_int_equal(f.used.prompt_tokens + f.used.completion_tokens, 0);
    }
}

static void a_second_attempt_or_another_account_answers_unnoticed(void **state)
{
    static const struct { const char *first, *fallback, *wanted; } cases[] = {
        { "/second", NULL, "data: end one m-1" },
        { "/locked", "/", "data: end other m-1" },
        { "/unwilling", "/", "data: end other m-1" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].first, cases[i].fallback);
        assert_has(receive(&f, ask(&f)), cases[i].wanted);
    }
}

static void what_fails_later_is_told_in_the_stream(void **state)
{
    static const struct { const char *path, *wanted; } cases[] = {
        { "/cut", "data: text lo\n\nevent: error\ndata: LLM_ERROR one ended its answer before it was complete.\n\n" },
        { "/midway", "data: text lo\n\nevent: error\ndata: LLM_ERROR one reports: overloaded\n\n" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].path, "/");
        assert_has(receive(&f, ask(&f)), cases[i].wanted);
        assert_int_equal(atomic_load(&f.desk.n_asked), 1);      /* no other account goes on with a broken answer */
    }
}

static void an_upstream_that_falls_silent_is_given_up(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(front_close) struct front f = { .desk.flag = "llm.idle_s=0.2" };
    struct raw_peer peer;

    raw_open(&peer, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: " CHUNK("a") "\n\n", RAW_HANG);
    front_open(&f, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    assert_has(receive(&f, ask(&f)), "data: text a\n\nevent: error\ndata: LLM_ERROR one: its server sent nothing more for 0.2 seconds.");
    raw_close(&peer);
}

static bool has_heard(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_heard);
}

static bool has_left(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_left);
}

static void a_client_that_leaves_cancels_the_upstream(void **state)
{
    static const char *const says[] = { "", "HTTP/1.1 200 OK\r\n\r\ndata: " CHUNK("a") "\n\n" };

    for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        AUTO(front_close) struct front f = { 0 };
        struct raw_peer peer;
        char byte;
        int fd;

        raw_open(&peer, says[i], RAW_HANG);
        front_open(&f, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
        fd = ask(&f);
        assert_true(wait_until(has_heard, &peer));
        if (*says[i])
            assert_int_equal(recv(fd, &byte, 1, 0), 1);
        close(fd);
        assert_true(wait_until(has_left, &peer));
        raw_close(&peer);
        assert_int_equal(atomic_load(&f.n_ended), 1);
        assert_int_equal(atomic_load(&f.n_whole), 0);
        assert_true(f.used.is_estimated && f.used.prompt_tokens > 0);
        assert_int_equal(f.used.completion_tokens, *says[i] ? 1 : 0);
    }
}

/* strchr() would look at the whole answer, each time, under ASan's strict_string_checks. */
static const char *behind_event(const char *at)
{
    while (at[0] != '\n' || at[1] != '\n')
        at++;
    return at + 2;
}

static void a_slow_client_misses_nothing(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all, *at;
    int fd;

    front_open(&f, "/large", NULL);
    fd = ask(&f);
    all = receive(&f, fd);
    at = strstr(all, "data: ");
    for (int i = 0; i < N_LARGE; i++, at = behind_event(at)) {
        char wanted[32];

        snprintf(wanted, sizeof(wanted), "data: text %05d.", i);
        assert_memory_equal(at, wanted, strlen(wanted));
    }
    assert_has(at, "data: end one m-1 3+5\n\n");
}

static void nothing(void *arg)
{
}

/* The loop turns many times, and the upstream gets nothing more away. */
static bool is_stuck(void *arg)
{
    struct front *f = arg;
    int before = atomic_load(&f->desk.n_pushed);

    for (int i = 0; i < 200; i++)
        loop_call(f->desk.rig.loop, nothing, NULL);
    return before > 0 && atomic_load(&f->desk.n_pushed) == before;
}

/* Nobody reads: the upstream's answer must not pile up here. It is then cancelled with the client. */
static void a_client_that_reads_nothing_holds_the_upstream_back(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    int fd;

    front_open(&f, "/large", NULL);
    fd = ask(&f);
    assert_true(wait_until(is_stuck, &f));
    assert_true(atomic_load(&f.desk.n_pushed) < N_LARGE);
    close(fd);
}

static void an_account_that_may_not_stream_answers_in_one_piece(void **state)
{
    static const char *const env[] = { "GENERIC_LLM_STREAMING_DISABLED=true", NULL };
    AUTO(front_close) struct front f = { 0 };

    front_open(&f, "/", NULL);
    llm_accounts_free(f.desk.accounts);
    assert_int_equal(llm_accounts_new(f.desk.settings, env, &f.desk.accounts, NULL), 0);
    desk_add(&f.desk, "one", "/");
    assert_has(receive(&f, ask(&f)), "\r\n\r\ndata: text all at once\n\ndata: end one m-1");
}

/* Reads a stream up to its n-th event and leaves; gives the id of the last one. */
static char *read_some(struct front *f, int fd, int n)
{
    char *all = arena_alloc(f->desk.a, KIB(64)), *last = NULL;
    size_t have = 0;
    int n_seen = 0;
    ssize_t got;

    while (n_seen < n && (got = recv(fd, all + have, KIB(64) - 1 - have, 0)) > 0) {
        have += (size_t)got;
        n_seen = 0;
        for (char *at = strstr(all, "\nid: "), *end; at && (end = strstr(at, "\n\n")); at = strstr(end, "\nid: "), n_seen++)
            last = at + 5;
    }
    close(fd);
    assert_non_null(last);
    return arena_strndup(f->desk.a, last, strcspn(last, "\n"));
}

static const char *last_event(struct front *f, const char *id, const char *scope)
{
    return arena_printf(f->desk.a, "last-event-id: %s:%s\r\n", id, scope);
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct front *)arg)->n_ended) > 0;
}

/* More than half a ring, the mark at which a relay without a client holds its upstream back; pushed pieces are in sockets and buffers too. */
static bool has_filled_the_ring(void *arg)
{
    return atomic_load(&((struct front *)arg)->desk.n_pushed) >= LIMIT_RING_BYTES / (4 * LARGE_BYTES);
}

static bool has_no_client(void *arg)
{
    return http_server_in_flight(((struct front *)arg)->server) == 0;
}

/* While it was away the upstream went on as far as the ring holds, and waits. */
static void a_client_that_comes_back_goes_on_where_it_stopped(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all, *at, *id;
    char wanted[80];

    front_open(&f, "/gated", NULL);
    id = read_some(&f, ask_with(&f, "x-scope: mine\r\n"), 5);
    assert_int_equal(strtol(id + 37, NULL, 10), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.desk.is_open, true);
    assert_true(wait_until(has_filled_the_ring, &f));
    assert_true(wait_until(is_stuck, &f));
    assert_true(atomic_load(&f.desk.n_pushed) < N_LARGE);
    all = receive(&f, ask_with(&f, last_event(&f, arena_printf(f.desk.a, "%.36s:3", id), "mine")));
    at = strstr(all, "\r\n\r\n") + 4;
    for (int n = 3; n < N_LARGE; n++, at = behind_event(at)) {
        snprintf(wanted, sizeof(wanted), "id: %.36s:%d\ndata: text %05d.", id, n + 1, n);
        assert_memory_equal(at, wanted, strlen(wanted));
    }
    assert_has(at, "data: end one m-1 3+5\n\n");
    id = arena_printf(f.desk.a, "%.36s:%d", id, N_LARGE);       /* it is all told, and can still be asked for */
    assert_has(receive(&f, ask_with(&f, last_event(&f, id, "mine"))), "data: end one m-1 3+5\n\n");
    assert_has(receive(&f, ask_with(&f, last_event(&f, arena_printf(f.desk.a, "%.36s:3", id), "mine"))), "STREAM_GONE");
}

/* The stops were the request's, which ended with its client. */
static void a_stop_ends_the_answer_also_without_its_client(void **state)
{
    AUTO(front_close) struct front f = { .desk.model = "o3", .desk.stop = "00007" };
    const char *all, *id;

    front_open(&f, "/gated", NULL);
    id = read_some(&f, ask_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.desk.is_open, true);
    assert_true(wait_until(has_ended, &f));
    all = receive(&f, ask_with(&f, last_event(&f, id, "mine")));
    assert_has(all, "data: text 00006.");
    assert_null(strstr(all, "00007"));
    assert_has(all, "data: end one o3 ");
}

static void what_is_not_there_cannot_be_resumed(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *id, *other;

    front_open(&f, "/", NULL);
    id = read_some(&f, ask_with(&f, "x-scope: mine\r\n"), 3);
    assert_has(receive(&f, ask_with(&f, last_event(&f, id, "yours"))), "STREAM_GONE");
    other = arena_printf(f.desk.a, "%.36s:99", id);
    assert_has(receive(&f, ask_with(&f, last_event(&f, other, "mine"))), "STREAM_GONE");
    other = arena_printf(f.desk.a, "0%.35s:1", id);
    assert_has(receive(&f, ask_with(&f, last_event(&f, other, "mine"))), "STREAM_GONE");
    assert_has(receive(&f, ask_with(&f, last_event(&f, arena_printf(f.desk.a, "%.36s:1", id), "mine"))), ":2\ndata: text lo\n\n");
}

/* The upstream waits for a full ring, in vain. */
static void a_client_that_does_not_come_back_is_given_up(void **state)
{
    AUTO(front_close) struct front f = { .desk.flag = "llm.resume_s=0.05" };
    const char *id;

    front_open(&f, "/large", NULL);
    id = read_some(&f, ask_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_ended, &f));
    assert_true(f.used.is_estimated && f.used.completion_tokens > 5 * LARGE_BYTES / 4);
    assert_true(atomic_load(&f.desk.n_pushed) < N_LARGE);
    assert_has(receive(&f, ask_with(&f, last_event(&f, id, "mine"))), "STREAM_GONE");
}

static void the_service_can_stop_while_a_stream_is_kept(void **state)
{
    struct front f = { 0 };

    front_open(&f, "/gated", NULL);
    read_some(&f, ask_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.desk.is_open, true);
    front_close(&f);
}

static void the_service_can_stop_while_relays_run(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct front f = { 0 };
    struct raw_peer peer;
    int fds[3];

    raw_open(&peer, "", RAW_HANG);
    front_open(&f, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = ask(&f);
    front_close(&f);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    raw_close(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_become_events_as_they_come),
        cmocka_unit_test(what_fails_before_the_first_delta_is_an_ordinary_error),
        cmocka_unit_test(a_second_attempt_or_another_account_answers_unnoticed),
        cmocka_unit_test(what_fails_later_is_told_in_the_stream),
        cmocka_unit_test(an_upstream_that_falls_silent_is_given_up),
        cmocka_unit_test(a_client_that_leaves_cancels_the_upstream),
        cmocka_unit_test(a_slow_client_misses_nothing),
        cmocka_unit_test(a_client_that_reads_nothing_holds_the_upstream_back),
        cmocka_unit_test(an_account_that_may_not_stream_answers_in_one_piece),
        cmocka_unit_test(a_client_that_comes_back_goes_on_where_it_stopped),
        cmocka_unit_test(a_stop_ends_the_answer_also_without_its_client),
        cmocka_unit_test(what_is_not_there_cannot_be_resumed),
        cmocka_unit_test(a_client_that_does_not_come_back_is_given_up),
        cmocka_unit_test(the_service_can_stop_while_a_stream_is_kept),
        cmocka_unit_test(the_service_can_stop_while_relays_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
