/* The thread of the realtime client, against a server in this process that replies as a good one does. */
#include "backend/hosted/hosted_realtime.h"
#include "backend/hosted/hosted_session.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/realtime_wire.h"
#include "base/websocket_frames.h"
#include "base/websocket_key.h"

#include "../net/upstream.h"

#include <stdlib.h>

static const struct hosted_times fast = {
    .heartbeat_ms = 20, .reply_ms = 30000, .confirm_ms = 30000, .step_ms = 10, .track_ms = 1
};

struct server {
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_int n_connections, n_messages;
    atomic_bool is_over, hangs; /* hangs: accepts and says nothing */
};

struct talk { /* of one connection */
    struct server *server;
    struct buf out;
};

static void add(struct talk *talk, const struct rt_message *m)
{
    struct buf text;

    buf_init(&text, MIB(1));
    rt_wire_write(&text, true, m);
    websocket_write_message(&talk->out, WEBSOCKET_SERVER, false, buf_slice(&text));
    buf_clear(&text);
}

static void reply(struct talk *talk, struct arena *a, const struct rt_message *m)
{
    struct json_value changes = json_get(json_get(m->payload, "config"), "postgres_changes");
    bool is_join = slice_eq_str(m->event, "phx_join"), is_table = is_join && json_length(changes) == 1;
    struct rt_message answer = {
        .join_ref = m->join_ref, .ref = m->ref, .topic = m->topic, .event = SLICE_LIT("phx_reply")
    };
    struct json_iter it = json_iter(changes);
    struct json_value first = { 0 };
    struct slice none;

    if (is_table)
        (void)!json_next(&it, &none, &first);
    answer.text =
        slice_of(is_table ? arena_printf(a, "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":7,%s]}}",
                                         json_to_str(a, first) + 1)
                          : "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[]}}");
    add(talk, &answer);
    if (is_table)
        add(talk, &(struct rt_message){ .topic = m->topic,
                                        .event = SLICE_LIT("system"),
                                        .text = SLICE_LIT("{\"extension\":\"postgres_changes\",\"status\":\"ok\"}") });
    if (is_join && !is_table)
        add(talk,
            &(struct rt_message){ .topic = m->topic, .event = SLICE_LIT("presence_state"), .text = SLICE_LIT("{}") });
}

/* What is broadcast comes back to its sender. */
static bool on_message(void *arg, bool is_binary, struct slice bytes)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct talk *talk = arg;
    struct rt_message m;

    atomic_fetch_add(&talk->server->n_messages, 1);
    if (rt_wire_read(a, true, is_binary, bytes, &m, NULL) < 0)
        return true;
    if (m.is_broadcast) {
        struct buf cast;

        buf_init(&cast, MIB(4));
        if (rt_wire_write_broadcast(&cast, &m))
            websocket_write_message(&talk->out, WEBSOCKET_SERVER, true, buf_slice(&cast));
        buf_clear(&cast);
    } else {
        reply(talk, a, &m);
    }
    return true;
}

static bool shake_hands(int fd)
{
    char head[4096] = "", *key, *end;
    struct buf out;
    size_t n = 0;
    ssize_t got;

    while (!strstr(head, "\r\n\r\n")) {
        got = recv(fd, head + n, sizeof(head) - 1 - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    key = strstr(head, "Sec-WebSocket-Key: ") + strlen("Sec-WebSocket-Key: ");
    end = strstr(key, "\r\n");
    *end = '\0';
    buf_init(&out, KIB(1));
    buf_add_str(&out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Accept: ");
    (void)!websocket_accept(&out, key, NULL);
    buf_add_str(&out, "\r\n\r\n");
    got = send(fd, out.p, out.n, MSG_NOSIGNAL);
    buf_clear(&out);
    return got > 0;
}

static void talk_with(struct server *server, int fd)
{
    struct talk talk = { .server = server };
    const struct websocket_reader_config config = { .on_message = on_message, .arg = &talk };
    struct websocket_reader *r = websocket_reader_new(&config);
    char bytes[4096];
    ssize_t n = 1;

    buf_init(&talk.out, MIB(16));
    while (n > 0 && !websocket_reader_is_over(r)) {
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n <= 0 || atomic_load(&server->hangs))
            continue;
        websocket_reader_feed(r, (struct slice){ bytes, (size_t)n }, &talk.out);
        if (talk.out.n > 0)
            n = send(fd, talk.out.p, talk.out.n, MSG_NOSIGNAL);
        buf_reset(&talk.out);
    }
    websocket_reader_free(r);
    buf_clear(&talk.out);
}

static void *serve(void *arg)
{
    struct server *server = arg;
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        atomic_fetch_add(&server->n_connections, 1);
        if (atomic_load(&server->hangs) || shake_hands(fd))
            talk_with(server, fd);
        close(fd);
    }
    return NULL;
}

static void server_open(struct server *server)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&at, &n), 0);
    server->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_close(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* ---- the client ---- */

struct ears {
    struct hosted_realtime *rt;
    atomic_int n_gaps, n_broadcasts;
    pthread_mutex_t *gate; /* not NULL: the report of a gap waits until it is free */
};

static void on_gap(void *arg, const char *table)
{
    struct ears *ears = arg;
    struct err e = { 0 };

    /* a callback may want more */
    assert_int_equal(hosted_realtime_watch(ears->rt, "second", NULL, &e), 0);
    atomic_fetch_add(&ears->n_gaps, 1);
    if (ears->gate) {
        pthread_mutex_lock(ears->gate);
        pthread_mutex_unlock(ears->gate);
    }
}

static void on_broadcast(void *arg, const char *topic, const char *event, const char *payload_json)
{
    atomic_fetch_add(&((struct ears *)arg)->n_broadcasts, 1);
}

static struct hosted_realtime *open_client(struct ears *ears, uint16_t port, const struct guard *guard)
{
    char url[64];
    const struct hosted_realtime_config config = { .url = url,
                                                   .key = "key",
                                                   .abbr = "svc",
                                                   .times = &fast,
                                                   .guard = guard,
                                                   .on_gap = on_gap,
                                                   .on_broadcast = on_broadcast,
                                                   .arg = ears };

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    assert_int_equal(hosted_realtime_open(&config, &ears->rt, NULL), 0);
    return ears->rt;
}

static void *speak(void *rt)
{
    const struct hosted_broadcast b = { .topic = "room", .event = "x", .payload_json = "{}" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_monitor m;

    for (int i = 0; i < 50; i++) {
        while (hosted_realtime_broadcast(rt, &b, NULL) == -EAGAIN) {
        }
        hosted_realtime_monitor(rt, a, &m);
    }
    return NULL;
}

static bool has_heard_all(void *arg)
{
    return atomic_load(&((struct ears *)arg)->n_broadcasts) == 200;
}

static bool has_two_gaps(void *arg)
{
    return atomic_load(&((struct ears *)arg)->n_gaps) >= 2;
}

static void threads_speak_while_the_client_listens(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct server server = { 0 };
    struct ears ears = { 0 };
    pthread_t speakers[4];
    struct err e = { 0 };

    server_open(&server);
    open_client(&ears, server.port, NULL);
    assert_int_equal(hosted_realtime_watch(ears.rt, "orders", NULL, &e), 0);
    assert_int_equal(hosted_realtime_listen(ears.rt, "room", false, &e), 0);
    assert_int_equal(hosted_realtime_track(ears.rt, &(struct backend_presence){ .machine_id = "m" }, &e), 0);
    assert_int_equal(hosted_realtime_settle(ears.rt, &wait, &e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(speakers); i++)
        assert_int_equal(pthread_create(&speakers[i], NULL, speak, ears.rt), 0);
    for (size_t i = 0; i < ARRAY_SIZE(speakers); i++)
        pthread_join(speakers[i], NULL);
    assert_true(wait_until(has_heard_all, &ears));
    assert_true(wait_until(has_two_gaps, &ears));
    assert_int_equal(atomic_load(&server.n_connections), 1);
    hosted_realtime_close(ears.rt);
    server_close(&server);
}

static bool has_a_gap(void *arg)
{
    return atomic_load(&((struct ears *)arg)->n_gaps) > 0;
}

static void all_is_settled_once_the_gaps_are_reported(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL), moment = net_wait_of(100, NULL, NULL);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    struct server server = { 0 };
    struct ears ears = { .gate = &gate };
    struct err e = { 0 };

    server_open(&server);
    open_client(&ears, server.port, NULL);
    pthread_mutex_lock(&gate);
    assert_int_equal(hosted_realtime_watch(ears.rt, "second", NULL, &e), 0);
    assert_true(wait_until(has_a_gap, &ears));
    assert_int_equal(hosted_realtime_settle(ears.rt, &moment, &e), -ETIMEDOUT);
    pthread_mutex_unlock(&gate);
    assert_int_equal(hosted_realtime_settle(ears.rt, &wait, &e), 0);
    hosted_realtime_close(ears.rt);
    server_close(&server);
}

static bool has_connected(void *arg)
{
    return atomic_load(&((struct server *)arg)->n_connections) > 0;
}

/* A server that accepts and says nothing does not hold the close up. */
static void a_close_ends_an_upgrade_that_waits(void **state)
{
    struct server server = { 0 };
    struct ears ears = { 0 };

    atomic_store(&server.hangs, true);
    server_open(&server);
    open_client(&ears, server.port, NULL);
    assert_int_equal(hosted_realtime_watch(ears.rt, "orders", NULL, NULL), 0);
    assert_true(wait_until(has_connected, &server));
    hosted_realtime_close(ears.rt);
    assert_int_equal(atomic_load(&server.n_messages), 0);
    server_close(&server);
}

static void nothing_is_connected_while_nothing_is_wanted(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct backend_presences list;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct server server = { 0 };
    struct ears ears = { 0 };

    server_open(&server);
    open_client(&ears, server.port, NULL);
    assert_int_equal(hosted_realtime_settle(ears.rt, &wait, NULL), 0);
    assert_int_equal(hosted_realtime_presences(ears.rt, a, &list, NULL), -EAGAIN);
    hosted_realtime_close(ears.rt);
    assert_int_equal(atomic_load(&server.n_connections), 0);
    server_close(&server);
}

static void an_address_that_the_guard_refuses_is_not_connected_to(void **state)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct guard_config public_only = { .is_public_only = true };
    struct guard *guard = guard_new(&public_only);
    AUTO(arena_freep) struct arena *a = arena_new();
    struct server server = { 0 };
    struct ears ears = { 0 };
    struct backend_monitor m;

    server_open(&server);
    open_client(&ears, server.port, guard);
    assert_int_equal(hosted_realtime_watch(ears.rt, "orders", NULL, NULL), 0);
    assert_int_equal(hosted_realtime_settle(ears.rt, &wait, NULL), 0);
    hosted_realtime_monitor(ears.rt, a, &m);
    assert_non_null(m.last_error);
    assert_int_equal(m.state, BACKEND_LINK_CONNECTING);
    hosted_realtime_close(ears.rt);
    assert_int_equal(atomic_load(&server.n_connections), 0);
    server_close(&server);
    guard_free(guard);
}

static void an_address_that_is_no_url_is_refused(void **state)
{
    static const char *const urls[] = { "", "ftp://h", "wss://h", "https://user:pw@h", "x y" };

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        const struct hosted_realtime_config config = { .url = urls[i], .key = "k", .abbr = "svc" };
        struct hosted_realtime *rt = NULL;

        assert_int_equal(hosted_realtime_open(&config, &rt, NULL), -EINVAL);
        assert_null(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_speak_while_the_client_listens),
        cmocka_unit_test(all_is_settled_once_the_gaps_are_reported),
        cmocka_unit_test(a_close_ends_an_upgrade_that_waits),
        cmocka_unit_test(nothing_is_connected_while_nothing_is_wanted),
        cmocka_unit_test(an_address_that_the_guard_refuses_is_not_connected_to),
        cmocka_unit_test(an_address_that_is_no_url_is_refused),
    };

    return hash_init(NULL) < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
