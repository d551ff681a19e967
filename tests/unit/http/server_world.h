/* For the tests of the server: a server on a loop thread, test handlers, and a blocking client. */
#pragma once

#include "../wait.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/pool.h"
#include "http/server.h"
#include "http/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* must follow those four */
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
    struct loop *loop;
    struct http_server *server;
    struct pool *pool;
    pthread_t thread;
    uint16_t port;
    atomic_bool is_running;
    struct http_exchange *_Atomic held; /* the request to /hold, for the test to answer */
    atomic_int n_gone, n_refused, n_changes;
    char refused_id[65];
    int n_in_turn; /* requests since the last round of the loop; loop thread */
    atomic_int n_most_in_turn;
};

static void world_wait(bool (*is_so)(struct world *w), struct world *w)
{
    int64_t end_ms = clock_mono_ms() + WAIT_MS;

    while (!is_so(w)) {
        assert_true(clock_mono_ms() < end_ms);
        poll(NULL, 0, 1);
    }
}

static bool is_running(struct world *w)
{
    return atomic_load(&w->is_running);
}

static void do_nothing(void *arg)
{
}

/* One round of the loop. */
UNUSED static void world_turn(struct world *w)
{
    loop_call(w->loop, do_nothing, NULL);
}

UNUSED static bool is_held(struct world *w)
{
    return atomic_load(&w->held) != NULL;
}

UNUSED static bool is_gone_reported(struct world *w)
{
    return atomic_load(&w->n_gone) > 0;
}

UNUSED static bool is_quiet(struct world *w)
{
    return http_server_in_flight(w->server) == 0;
}

UNUSED static int n_connections(void)
{
    static const char name[] = "\nhearth_http_connections ";
    struct buf page;
    const char *at;
    int n;

    buf_init(&page, MIB(1));
    metrics_print(&page);
    at = strstr(buf_str(&page), name);
    n = at ? (int)strtol(at + strlen(name), NULL, 10) : 0;
    buf_clear(&page);
    return n;
}

UNUSED static bool has_no_connection(struct world *w)
{
    return n_connections() == 0;
}

static void answer_text(struct http_exchange *x, const char *text)
{
    buf_add_str(&x->response.body, text);
    http_exchange_send(x);
}

static void count_gone(struct http_exchange *x, void *arg)
{
    struct world *w = arg;

    atomic_fetch_add(&w->n_gone, 1);
}

static void handle_ping(struct world *w, struct http_exchange *x)
{
    answer_text(x, "{\"success\":true}");
}

static void handle_show(struct world *w, struct http_exchange *x)
{
    const struct http_request *r = &x->request;
    const char *note = http_header(r, "x-note");

    buf_printf(&x->response.body, "%s|%s|%s|%s|%.*s", http_method_name(r->method), r->path, r->query, note ? note : "-",
               (int)r->body.n, r->body.p ? r->body.p : "");
    http_exchange_send(x);
}

static void handle_hold(struct world *w, struct http_exchange *x)
{
    http_exchange_on_gone(x, count_gone, w);
    atomic_store(&w->held, x);
}

/* Replies when the client disconnects. */
static void end_of_forever(struct http_exchange *x, void *arg)
{
    http_exchange_send(x);
}

static void handle_forever(struct world *w, struct http_exchange *x)
{
    http_exchange_on_gone(x, end_of_forever, w);
}

static void handle_who(struct world *w, struct http_exchange *x)
{
    buf_printf(&x->response.body, "%s from %s", x->request.from == HTTP_FROM_UNIX ? "unix" : "tcp", x->request.peer);
    http_exchange_send(x);
}

static void handle_big(struct world *w, struct http_exchange *x)
{
    char *to = buf_reserve(&x->response.body, 20 << 20);

    memset(to, 'b', 20 << 20);
    x->response.body.n += 20 << 20;
    http_exchange_send(x);
}

static void answer_on_worker(void *arg)
{
    struct http_exchange *x = arg;

    buf_add_str(&x->response.body, "{\"pad\":\"");
    for (int i = 0; i < 1000; i++)
        buf_add_str(&x->response.body, "0123456789");
    answer_text(x, "\"}");
}

static void handle_worker(struct world *w, struct http_exchange *x)
{
    assert_int_equal(pool_submit(w->pool, answer_on_worker, x), 0);
}

static const struct {
    const char *path;
    void (*handle)(struct world *w, struct http_exchange *x);
} handlers[] = {
    { "/ping", handle_ping }, { "/hold", handle_hold }, { "/forever", handle_forever },
    { "/who", handle_who },   { "/big", handle_big },   { "/worker", handle_worker },
};

static void end_turn(void *arg)
{
    struct world *w = arg;

    atomic_store(&w->n_most_in_turn, MAX(atomic_load(&w->n_most_in_turn), w->n_in_turn));
    w->n_in_turn = 0;
}

static void on_request(void *arg, struct http_exchange *x)
{
    struct world *w = arg;

    if (w->n_in_turn++ == 0)
        loop_post(w->loop, end_turn, w);
    for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
        if (strcmp(handlers[i].path, x->request.path) == 0) {
            handlers[i].handle(arg, x);
            return;
        }
    }
    handle_show(arg, x);
}

static void on_refused(void *arg, const char *request_id, int status, const char *code)
{
    struct world *w = arg;

    snprintf(w->refused_id, sizeof(w->refused_id), "%s", request_id);
    atomic_fetch_add(&w->n_refused, 1);
}

static bool on_head(void *arg, struct http_exchange *x, size_t *ret_max_body)
{
    *ret_max_body = strcmp(x->request.path, "/small") == 0 ? 10 : 40 << 20;
    if (strcmp(x->request.path, "/administrator") == 0) {
        struct budget_holder *admin = budget_holder_get(HOLDER_ADMIN, "");

        assert_int_equal(http_exchange_charge(x, admin, NULL), 0);
        budget_holder_unref(admin);
    }
    if (strcmp(x->request.path, "/forbidden") == 0) {
        x->response.status = 403;
        buf_add_str(&x->response.body, "not you");
        return false;
    }
    return true;
}

static void *run_loop(void *arg)
{
    struct world *w = arg;
    struct err e = { 0 };

    assert_int_equal(loop_run(w->loop, &e), 0);
    return NULL;
}

static void report_running(void *arg)
{
    struct world *w = arg;

    atomic_store(&w->is_running, true);
}

/* change may be NULL; it alters the configuration before the start. */
static struct world *world_new(void (*change)(struct http_server_config *c))
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct http_server_config config = {
        .on_head = on_head, .on_request = on_request, .on_refused = on_refused, .arg = w
    };
    struct pool_config pool = { .name = "test", .n_min = 2, .n_max = 2, .max_waiting = 100 };
    struct err e = { 0 };

    if (change)
        change(&config);
    assert_int_equal(hash_init(&e), 0);
    assert_int_equal(loop_new(&w->loop, &e), 0);
    assert_int_equal(pool_start(&pool, &w->pool, &e), 0);
    assert_int_equal(http_server_start(w->loop, &config, &w->server, &e), 0);
    assert_int_equal(http_server_listen(w->server, "127.0.0.1", 0, &w->port, &e), 0);
    loop_post(w->loop, report_running, w);
    assert_int_equal(pthread_create(&w->thread, NULL, run_loop, w), 0);
    world_wait(is_running, w); /* until then this thread counts as the loop thread */
    return w;
}

static void stop_server(void *arg)
{
    struct world *w = arg;

    w->server = http_server_stop(w->server);
}

static void world_free(struct world *w)
{
    loop_call(w->loop, stop_server, w);
    w->pool = pool_stop(w->pool);
    loop_stop(w->loop);
    pthread_join(w->thread, NULL);
    loop_free(w->loop);
    free(w);
}

/* ---- a server for each test: SERVED(test), or with a changed configuration SERVED_WITH(test, change) ---- */

typedef void alter_config(struct http_server_config *c);
struct served {
    alter_config *change;
};

static int world_set_up(void **state)
{
    const struct served *served = *state;

    *state = world_new(served->change);
    return 0;
}

static int world_tear_down(void **state)
{
    world_free(*state);
    return 0;
}

#define SERVED_WITH(test, alter)                                                                                       \
    cmocka_unit_test_prestate_setup_teardown(test, world_set_up, world_tear_down, (&(struct served){ alter }))
#define SERVED(test) SERVED_WITH(test, NULL)

/* ---- a blocking client ---- */

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n" /* without the end of the head */

static void set_patience(int fd)
{
    struct timeval patience = { .tv_sec = WAIT_MS / 1000 };

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
}

UNUSED static int dial(struct world *w)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(w->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    set_patience(fd);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads until marker has appeared n times; the text so far is in a static buffer. */
static const char *hear_times(int fd, const char *marker, int n)
{
    static char text[1 << 20];
    size_t got = 0;
    int found = 0;

    text[0] = '\0';
    while (found < n) {
        ssize_t now = recv(fd, text + got, sizeof(text) - 1 - got, 0);

        if (now <= 0)
            fail_msg("wanted \"%s\" %d times, heard: %s", marker, n, text);
        got += (size_t)now;
        text[got] = '\0';
        found = 0;
        for (const char *at = text; (at = strstr(at, marker)); at++)
            found++;
    }
    return text;
}

UNUSED static const char *hear(int fd, const char *marker)
{
    return hear_times(fd, marker, 1);
}

/* Reads to the end of the connection. */
UNUSED static const char *hear_all(int fd)
{
    static char text[1 << 20];
    size_t got = 0;
    ssize_t now;

    while ((now = recv(fd, text + got, sizeof(text) - 1 - got, 0)) > 0)
        got += (size_t)now;
    text[got] = '\0';
    if (now < 0)
        fail_msg("the connection was not closed, heard: %s", text);
    return text;
}

UNUSED static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

UNUSED static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in: %s", part, text);
}
