/* Dispatch with the modules behind it: in this thread (local exchanges), or behind a real server on its own loop.
 *
 *     AUTO(world_close) struct world w = { 0 };   world_open(&w, NULL, NULL, 0);
 *     reply = request_local(&w, HTTP_GET, "/sdk/ping", "", "");        assert_int_equal(reply.status, 200);
 *     world_serve(&w, NULL);
 *     reply = request(&w, "GET /sdk/ping HTTP/1.1\r\nhost: localhost\r\nx-app-id: " APP "\r\n", "");
 */
#pragma once

#include "../identity/fixture.h"
#include "../wait.h"
#include "api/api.h"
#include "api/dispatch.h"
#include "api/routes.h"
#include "apps/apps.h"
#include "backend/backend.h"
#include "base/json.h"
#include "http/local.h"
#include "http/server.h"
#include "identity/sessions.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

struct world {
    struct fixture f;
    struct settings *settings;
    struct backend backend;
    struct api api;
    struct dispatch *dispatch;
    struct loop *loop;
    struct http_server *server;
    struct pool *short_pool, *long_pool;
    pthread_t thread;
    uint16_t port;
    size_t n_short_waiting; /* room of the short pool's queue; 0: 100 */
};

struct reply {
    int status;
    struct slice head, body; /* head: of a real server only */
    struct json_value json;
};

static atomic_bool backend_is_ready = true;

static inline int notify_backend_ready(struct backend *b, struct err *e)
{
    return atomic_load(&backend_is_ready) ? 0 : err_set(e, -EIO, "STORE_ERROR", "its disk is gone.");
}

static const struct backend_ops stub_ops = { .name = "stub", .is_ready = notify_backend_ready };

static const struct route *const world_tables[] = {
    system_routes,  connectivity_routes, key_routes,           permission_routes,
    session_routes, audit_routes,        backend_token_routes, NULL,
};

static inline void world_dispatch(struct world *w, const struct route *const *tables)
{
    struct dispatch_config c = { .api = &w->api,
                                 .tables = tables,
                                 .settings = w->settings,
                                 .identity = w->f.id,
                                 .short_pool = w->short_pool,
                                 .long_pool = w->long_pool };
    struct err e = { 0 };

    must(dispatch_open(&c, &w->dispatch, &e), &e);
    w->api.dispatch = w->dispatch;
}

/* tables NULL: those of this folder. flags: "key=value" settings. Initialized in place, because the parts point at each
 * other. */
static inline void world_open(struct world *w, const struct route *const *tables, const char *const *flags,
                              size_t n_flags)
{
    struct settings_sources from = { .flags = flags, .n_flags = n_flags };
    struct err e = { 0 };

    *w = (struct world){ .f = fixture_open(), .backend = { &stub_ops } };
    must(settings_load(&from, &w->settings, &e), &e);
    must(apps_open(
             &(struct apps_config){
                 .store = w->f.store, .settings = w->settings, .identity = w->f.id, .data_dir = w->f.path },
             &w->api.apps, &e),
         &e);
    w->api.settings = w->settings;
    w->api.store = w->f.store;
    w->api.identity = w->f.id;
    w->api.backend = &w->backend;
    w->api.data_dir = w->f.path;
    snprintf(w->api.base_url, sizeof(w->api.base_url), "http://127.0.0.1:3001");
    world_dispatch(w, tables ? tables : world_tables);
}

/* ---- in this thread ---- */

static inline struct reply read_reply(struct world *w, int status, struct slice body)
{
    struct reply reply = { .status = status, .body = { arena_slicedup(w->f.a, body), body.n } };
    int r;

    r = json_parse(w->f.a, reply.body, &reply.json, NULL);
    if (r < 0)
        reply.json = (struct json_value){ 0 };
    return reply;
}

static inline struct reply request_local(struct world *w, enum http_method method, const char *path, const char *query,
                                         const char *body)
{
    struct http_exchange *x = http_local_new(method, path, query, slice_of(body));
    struct reply reply;
    struct slice text;
    int status;

    dispatch_request(w->dispatch, x);
    http_local_wait(x, &status, &text);
    reply = read_reply(w, status, text);
    http_local_free(x);
    return reply;
}

static inline const char *text_of(const struct reply *reply, const char *name)
{
    const char *text = json_cstr(json_get(reply->json, name));

    return text ? text : "";
}

static inline const char *code_of(const struct reply *reply)
{
    return text_of(reply, "code");
}

/* ---- over a real server ---- */

static inline void on_request(void *arg, struct http_exchange *x)
{
    struct world *w = arg;

    dispatch_request(w->dispatch, x);
}

static inline bool on_head(void *arg, struct http_exchange *x, size_t *ret_max_body)
{
    struct world *w = arg;

    return dispatch_head(w->dispatch, x, ret_max_body);
}

static inline void on_refused(void *arg, const char *request_id, int status, const char *code)
{
    struct world *w = arg;

    dispatch_refused(w->dispatch, request_id, status, code);
}

static inline void on_thread_end(void *arg)
{
    store_thread_end(arg);
}

static inline void *run_loop(void *arg)
{
    struct world *w = arg;
    struct err e = { 0 };

    must(loop_run(w->loop, &e), &e);
    store_thread_end(w->f.store);
    return NULL;
}

static inline void start_pools(struct world *w)
{
    struct pool_config c = { .name = "short",
                             .n_min = 2,
                             .n_max = 2,
                             .max_waiting = w->n_short_waiting ? w->n_short_waiting : 100,
                             .on_thread_end = on_thread_end,
                             .arg = w->f.store };
    struct err e = { 0 };

    must(pool_start(&c, &w->short_pool, &e), &e);
    c.name = "long";
    c.max_waiting = 100;
    must(pool_start(&c, &w->long_pool, &e), &e);
}

static inline void world_serve(struct world *w, const struct route *const *tables)
{
    struct http_server_config c = { .on_head = on_head, .on_request = on_request, .on_refused = on_refused, .arg = w };
    struct err e = { 0 };

    start_pools(w);
    dispatch_close(w->dispatch);
    world_dispatch(w, tables ? tables : world_tables);
    must(loop_new(&w->loop, &e), &e);
    w->api.loop = w->loop;
    must(http_server_start(w->loop, &c, &w->server, &e), &e);
    must(http_server_listen(w->server, "127.0.0.1", 0, &w->port, &e), &e);
    dispatch_add_address(w->dispatch, "127.0.0.1", w->port);
    snprintf(w->api.base_url, sizeof(w->api.base_url), "http://127.0.0.1:%u", w->port);
    assert_int_equal(pthread_create(&w->thread, NULL, run_loop, w), 0);
}

static inline void stop_server(void *arg)
{
    struct world *w = arg;

    w->server = http_server_stop(w->server);
}

static inline void world_close(struct world *w)
{
    if (w->loop) {
        loop_call(w->loop, stop_server, w);
        pool_stop(w->short_pool);
        pool_stop(w->long_pool);
        loop_stop(w->loop);
        pthread_join(w->thread, NULL);
        loop_free(w->loop);
    }
    dispatch_close(w->dispatch);
    apps_close(w->api.apps);
    settings_free(w->settings);
    fixture_close(&w->f);
}

static inline int world_connect(struct world *w)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(w->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static inline void send_text(int fd, const char *text)
{
    size_t n = strlen(text);

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* Everything until the server closes. */
static inline struct slice receive_all(struct world *w, int fd)
{
    char *all = arena_alloc(w->f.a, MIB(1));
    ssize_t got;
    size_t n = 0;

    while ((got = recv(fd, all + n, MIB(1) - 1 - n, 0)) > 0)
        n += (size_t)got;
    return (struct slice){ all, n };
}

/* lines: request line and headers, each ended by CRLF, without the final empty line. */
static inline struct reply request(struct world *w, const char *lines, const char *body)
{
    int fd = world_connect(w);
    struct slice all;
    const char *end;
    struct reply reply;

    send_text(fd,
              arena_printf(w->f.a, "%sconnection: close\r\ncontent-length: %zu\r\n\r\n%s", lines, strlen(body), body));
    all = receive_all(w, fd);
    close(fd);
    end = strstr(all.p, "\r\n\r\n");
    assert_non_null(end);
    reply = read_reply(w, (int)strtol(all.p + strlen("HTTP/1.1 "), NULL, 10), slice_of(end + 4));
    reply.head = (struct slice){ all.p, (size_t)(end - all.p) + 2 };
    return reply;
}

/* Value of a response header; NULL when it is absent. */
static inline const char *header_of(struct world *w, const struct reply *reply, const char *name)
{
    const char *head = arena_slicedup(w->f.a, reply->head), *at = strstr(head, arena_printf(w->f.a, "\r\n%s: ", name));

    if (!at)
        return NULL;
    at += strlen(name) + 4;
    return arena_strndup(w->f.a, at, strcspn(at, "\r"));
}
