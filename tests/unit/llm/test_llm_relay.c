#include "front.h"

static void deltas_become_events_as_they_come(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all;

    front_open(&f, "/", NULL);
    all = receive(&f, request(&f));
    assert_has(all, "x-provider: one\r\n");
    assert_has(all, "data: text Hel\n\ndata: text lo\n\ndata: end one m-1 3+5\n\n");
    assert_int_equal(atomic_load(&f.n_failed), 0);
    assert_int_equal(atomic_load(&f.n_whole), 1);
    assert_int_equal(f.used.prompt_tokens, 3);
    assert_int_equal(f.used.completion_tokens, 5);
}

static void what_fails_before_the_first_delta_is_an_ordinary_error(void **state)
{
    static const struct {
        const char *path, *wanted;
        int n_requested;
    } cases[] = {
        { "/locked", "LLM_ERROR 0 one refuses the API key", 1 },
        { "/limited", "RATE_LIMIT 20000 one takes no more", 1 },
        { "/unwilling", "LLM_ERROR 0 one fails (503)", 2 },
        { "/refusing", "LLM_ERROR 0 one reports: overloaded", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].path, NULL);
        assert_has(receive(&f, request(&f)), cases[i].wanted);
        assert_int_equal(atomic_load(&f.fixture.n_requested), cases[i].n_requested);
        assert_int_equal(atomic_load(&f.n_failed), 1);
        assert_int_equal(atomic_load(&f.n_whole), 0);
        assert_int_equal(f.used.prompt_tokens + f.used.completion_tokens, 0);
    }
}

static void a_second_attempt_or_another_account_answers_unnoticed(void **state)
{
    static const struct {
        const char *first, *fallback, *wanted;
    } cases[] = {
        { "/second", NULL, "data: end one m-1" },
        { "/locked", "/", "data: end other m-1" },
        { "/unwilling", "/", "data: end other m-1" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].first, cases[i].fallback);
        assert_has(receive(&f, request(&f)), cases[i].wanted);
    }
}

static void what_fails_later_is_reported_in_the_stream(void **state)
{
    static const struct {
        const char *path, *wanted;
    } cases[] = {
        { "/cut", "data: text lo\n\nevent: error\ndata: LLM_ERROR one ended its answer before it was complete.\n\n" },
        { "/midway", "data: text lo\n\nevent: error\ndata: LLM_ERROR one reports: overloaded\n\n" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(front_close) struct front f = { 0 };

        front_open(&f, cases[i].path, "/");
        assert_has(receive(&f, request(&f)), cases[i].wanted);
        assert_int_equal(atomic_load(&f.fixture.n_requested), 1); /* no other account continues a broken answer */
    }
}

static void an_upstream_that_falls_silent_is_given_up(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(front_close) struct front f = { .fixture.flag = "llm.idle_s=0.2" };
    struct raw_peer peer;

    raw_open(&peer, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: " CHUNK("a") "\n\n", RAW_HANG);
    front_open(&f, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    assert_has(receive(&f, request(&f)),
               "data: text a\n\nevent: error\ndata: LLM_ERROR one: its server sent nothing more for 0.2 seconds.");
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
        fd = request(&f);
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

/* Replaces strchr(), which under ASan's strict_string_checks reads the whole answer at each call. */
static const char *after_event(const char *at)
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
    fd = request(&f);
    all = receive(&f, fd);
    at = strstr(all, "data: ");
    for (int i = 0; i < N_LARGE; i++, at = after_event(at)) {
        char wanted[32];

        snprintf(wanted, sizeof(wanted), "data: text %05d.", i);
        assert_memory_equal(at, wanted, strlen(wanted));
    }
    assert_has(at, "data: end one m-1 3+5\n\n");
}

static void nothing(void *arg)
{
}

/* The loop runs many rounds, and the upstream cannot send any more. */
static bool is_stuck(void *arg)
{
    struct front *f = arg;
    int before = atomic_load(&f->fixture.n_pushed);

    for (int i = 0; i < 200; i++)
        loop_call(f->fixture.rig.loop, nothing, NULL);
    return before > 0 && atomic_load(&f->fixture.n_pushed) == before;
}

/* The client does not read: the upstream's answer must not pile up here. The upstream is then cancelled with the
 * client. */
static void a_client_that_reads_nothing_holds_the_upstream_back(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    int fd;

    front_open(&f, "/large", NULL);
    fd = request(&f);
    assert_true(wait_until(is_stuck, &f));
    assert_true(atomic_load(&f.fixture.n_pushed) < N_LARGE);
    close(fd);
}

static void an_account_that_may_not_stream_answers_in_one_piece(void **state)
{
    static const char *const env[] = { "GENERIC_LLM_STREAMING_DISABLED=true", NULL };
    AUTO(front_close) struct front f = { 0 };

    front_open(&f, "/", NULL);
    llm_accounts_free(f.fixture.accounts);
    assert_int_equal(llm_accounts_new(f.fixture.settings, env, &f.fixture.accounts, NULL), 0);
    fixture_add(&f.fixture, "one", "/");
    assert_has(receive(&f, request(&f)), "\r\n\r\ndata: text all at once\n\ndata: end one m-1");
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct front *)arg)->n_ended) > 0;
}

static bool has_no_client(void *arg)
{
    return http_server_in_flight(((struct front *)arg)->server) == 0;
}

/* Larger than the answers that the loop reads itself: a worker writes the events. */
static void an_answer_in_one_large_piece_is_read_by_a_worker(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all;

    front_open(&f, "/bulky", NULL);
    all = receive(&f, request(&f));
    assert_has(all, "x-provider: one\r\n");
    assert_has(all, "data: text bulky.");
    assert_int_equal(strlen(strstr(all, "data: text bulky.")),
                     strlen("data: text bulky.") + N_BULKY + strlen("\n\ndata: end one m-1 3+5\n\n"));
    assert_int_equal(atomic_load(&f.n_whole), 1);
    assert_int_equal(f.used.completion_tokens, 5);
}

static void hold_worker(void *arg)
{
    assert_true(wait_until(is_open, arg));
}

static bool is_waiting_for_a_worker(void *arg)
{
    return pool_waiting(arg) > 0;
}

/* The turn ends when the worker, which has the answer, is done. */
static void a_client_may_leave_while_a_worker_reads(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    int fd;

    front_open(&f, "/bulky", NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pool_submit(f.workers, hold_worker, &f.fixture), 0);
    fd = request(&f);
    assert_true(wait_until(is_waiting_for_a_worker, f.workers));
    close(fd);
    atomic_store(&f.fixture.is_open, true);
    assert_true(wait_until(has_ended, &f));
    assert_true(wait_until(has_no_client, &f));
    assert_int_equal(atomic_load(&f.n_failed) + atomic_load(&f.n_whole), 1);
}

/* Reads a stream up to its n-th event and disconnects; returns the id of the last event. */
static char *read_some(struct front *f, int fd, int n)
{
    char *all = arena_alloc(f->fixture.a, KIB(64)), *last = NULL;
    size_t have = 0;
    int n_seen = 0;
    ssize_t got;

    while (n_seen < n && (got = recv(fd, all + have, KIB(64) - 1 - have, 0)) > 0) {
        have += (size_t)got;
        n_seen = 0;
        for (char *at = strstr(all, "\nid: "), *end; at && (end = strstr(at, "\n\n"));
             at = strstr(end, "\nid: "), n_seen++)
            last = at + 5;
    }
    close(fd);
    assert_non_null(last);
    return arena_strndup(f->fixture.a, last, strcspn(last, "\n"));
}

static const char *last_event(struct front *f, const char *id, const char *scope)
{
    return arena_printf(f->fixture.a, "last-event-id: %s:%s\r\n", id, scope);
}

/* More than half a ring, the limit at which a relay without a client holds its upstream back; pushed pieces are in
 * sockets and buffers too. */
static bool has_filled_the_ring(void *arg)
{
    return atomic_load(&((struct front *)arg)->fixture.n_pushed) >= LIMIT_RING_BYTES / (4 * LARGE_BYTES);
}

/* While the client was away the upstream continued until the ring was full, and waits. */
static void a_client_that_comes_back_goes_on_where_it_stopped(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *all, *at, *id;
    char wanted[80];

    front_open(&f, "/gated", NULL);
    id = read_some(&f, request_with(&f, "x-scope: mine\r\n"), 5);
    assert_int_equal(strtol(id + 37, NULL, 10), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.fixture.is_open, true);
    assert_true(wait_until(has_filled_the_ring, &f));
    assert_true(wait_until(is_stuck, &f));
    assert_true(atomic_load(&f.fixture.n_pushed) < N_LARGE);
    all = receive(&f, request_with(&f, last_event(&f, arena_printf(f.fixture.a, "%.36s:3", id), "mine")));
    at = strstr(all, "\r\n\r\n") + 4;
    for (int n = 3; n < N_LARGE; n++, at = after_event(at)) {
        snprintf(wanted, sizeof(wanted), "id: %.36s:%d\ndata: text %05d.", id, n + 1, n);
        assert_memory_equal(at, wanted, strlen(wanted));
    }
    assert_has(at, "data: end one m-1 3+5\n\n");
    id = arena_printf(f.fixture.a, "%.36s:%d", id, N_LARGE); /* all was sent, and can still be requested */
    assert_has(receive(&f, request_with(&f, last_event(&f, id, "mine"))), "data: end one m-1 3+5\n\n");
    assert_has(receive(&f, request_with(&f, last_event(&f, arena_printf(f.fixture.a, "%.36s:3", id), "mine"))),
               "STREAM_GONE");
}

/* The stop sequences belonged to the request, which ended with its client. */
static void a_stop_ends_the_answer_also_without_its_client(void **state)
{
    AUTO(front_close) struct front f = { .fixture.model = "o3", .fixture.stop = "00007" };
    const char *all, *id;

    front_open(&f, "/gated", NULL);
    id = read_some(&f, request_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.fixture.is_open, true);
    assert_true(wait_until(has_ended, &f));
    all = receive(&f, request_with(&f, last_event(&f, id, "mine")));
    assert_has(all, "data: text 00006.");
    assert_null(strstr(all, "00007"));
    assert_has(all, "data: end one o3 ");
}

static void what_is_not_there_cannot_be_resumed(void **state)
{
    AUTO(front_close) struct front f = { 0 };
    const char *id, *other;

    front_open(&f, "/", NULL);
    id = read_some(&f, request_with(&f, "x-scope: mine\r\n"), 3);
    assert_has(receive(&f, request_with(&f, last_event(&f, id, "yours"))), "STREAM_GONE");
    other = arena_printf(f.fixture.a, "%.36s:99", id);
    assert_has(receive(&f, request_with(&f, last_event(&f, other, "mine"))), "STREAM_GONE");
    other = arena_printf(f.fixture.a, "0%.35s:1", id);
    assert_has(receive(&f, request_with(&f, last_event(&f, other, "mine"))), "STREAM_GONE");
    assert_has(receive(&f, request_with(&f, last_event(&f, arena_printf(f.fixture.a, "%.36s:1", id), "mine"))),
               ":2\ndata: text lo\n\n");
}

/* The upstream waits for room in the full ring, in vain. */
static void a_client_that_does_not_come_back_is_given_up(void **state)
{
    AUTO(front_close) struct front f = { .fixture.flag = "llm.resume_s=0.05" };
    const char *id;

    front_open(&f, "/large", NULL);
    id = read_some(&f, request_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_ended, &f));
    assert_true(f.used.is_estimated && f.used.completion_tokens > 5 * LARGE_BYTES / 4);
    assert_true(atomic_load(&f.fixture.n_pushed) < N_LARGE);
    assert_has(receive(&f, request_with(&f, last_event(&f, id, "mine"))), "STREAM_GONE");
}

static void the_service_can_stop_while_a_stream_is_kept(void **state)
{
    struct front f = { 0 };

    front_open(&f, "/gated", NULL);
    read_some(&f, request_with(&f, "x-scope: mine\r\n"), 5);
    assert_true(wait_until(has_no_client, &f));
    atomic_store(&f.fixture.is_open, true);
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
        fds[i] = request(&f);
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
        cmocka_unit_test(what_fails_later_is_reported_in_the_stream),
        cmocka_unit_test(an_upstream_that_falls_silent_is_given_up),
        cmocka_unit_test(a_client_that_leaves_cancels_the_upstream),
        cmocka_unit_test(a_slow_client_misses_nothing),
        cmocka_unit_test(a_client_that_reads_nothing_holds_the_upstream_back),
        cmocka_unit_test(an_account_that_may_not_stream_answers_in_one_piece),
        cmocka_unit_test(an_answer_in_one_large_piece_is_read_by_a_worker),
        cmocka_unit_test(a_client_may_leave_while_a_worker_reads),
        cmocka_unit_test(a_client_that_comes_back_goes_on_where_it_stopped),
        cmocka_unit_test(a_stop_ends_the_answer_also_without_its_client),
        cmocka_unit_test(what_is_not_there_cannot_be_resumed),
        cmocka_unit_test(a_client_that_does_not_come_back_is_given_up),
        cmocka_unit_test(the_service_can_stop_while_a_stream_is_kept),
        cmocka_unit_test(the_service_can_stop_while_relays_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
