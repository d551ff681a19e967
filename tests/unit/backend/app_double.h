/* An app in Custom Mode: answers POST /api/task-lock and /api/task-webhook on a loopback port, keeps its lock in its
 * own table by a conditional update, and can be told to behave badly.
 *
 *     struct app_double *app = app_start(backend);      app->manner = APP_CUTS_AFTER;      app_stop(app);
 */
#pragma once

#include "contract.h"
#include "backend/query.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum app_manner {
    APP_NORMAL,
    APP_SHORT,         /* success without locked_by and locked_at */
    APP_NAMES_ONLY,    /* stores locked_by and leaves the status to the service */
    APP_REFUSES,       /* already_locked, always */
    APP_GIVES_NO_LOCK, /* success, and the table says nothing */
    APP_CUTS_AFTER,    /* locks, and closes the connection instead of an answer */
    APP_CUTS_BEFORE,   /* closes the connection without a lock */
    APP_LOCKS_OTHER,   /* success, and the table names another machine */
    APP_MUTE           /* takes the request and does not answer */
};

enum { APP_REQUEST_BYTES = 65536 };

struct app_double {
    struct backend *db; /* owned: the app's own connection */
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_int manner, n_locks, n_webhooks,
        n_refused_webhooks; /* of the next webhooks: so many are answered with 503 */
    pthread_mutex_t lock;
    char last_webhook[4096];
};

static inline void app_query(struct app_double *app, const char *table, const char *key, const char *id,
                             const char *change, bool only_free, int64_t *ret_n)
{
    static const char *const free_words[] = { "pending", "failed" };
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct query_condition tests[] = {
        { .path = { .column = key }, .op = QUERY_EQ, .values = &id, .n_values = 1 },
        { .path = { .column = "status" }, .op = QUERY_IN, .values = free_words, .n_values = 2 },
    };
    const struct query_condition where = { .junction = QUERY_AND, .items = tests, .n_items = only_free ? 2 : 1 };
    struct query q = { .kind = QUERY_UPDATE, .table = table, .where = &where, .limit = -1, .max_affected = -1 };
    struct query_reply reply = { 0 };
    struct err e = { 0 };

    must(json_parse(a, slice_of(change), &q.rows, &e), &e);
    must(backend_query(app->db, &q, a, &reply, &e), &e);
    *ret_n = reply.n_rows;
}

static inline const char *app_key_of(const char *table)
{
    return strcmp(table, "things") == 0 ? "name" : "id";
}

/* NULL: no answer. */
static inline const char *app_lock(struct app_double *app, struct json_value body, struct arena *a)
{
    const char *machine = json_cstr(json_get(body, "machine_id")), *table = json_cstr(json_get(body, "table_name"));
    int manner = atomic_load(&app->manner);
    const char *holder = manner == APP_LOCKS_OTHER ? "another" : machine;
    const char *status = manner == APP_NAMES_ONLY ? "" : "\"status\":\"claimed\",\"locked_at\":\"now\",";
    int64_t n = 1;

    atomic_fetch_add(&app->n_locks, 1);
    if (manner == APP_REFUSES)
        return "{\"success\":false,\"reason\":\"already_locked\",\"locked_by\":\"another\"}";
    if (manner == APP_CUTS_BEFORE || manner == APP_MUTE)
        return NULL;
    if (manner != APP_GIVES_NO_LOCK)
        app_query(app, table, app_key_of(table), json_cstr(json_get(body, "task_id")),
                  arena_printf(a, "{%s\"locked_by\":\"%s\"}", status, holder), true, &n);
    if (n == 0)
        return "{\"success\":false,\"reason\":\"already_locked\",\"locked_by\":\"another\"}";
    if (manner == APP_CUTS_AFTER)
        return NULL;
    return manner == APP_SHORT
               ? "{\"success\":true}"
               : arena_printf(a, "{\"success\":true,\"locked_by\":\"%s\",\"locked_at\":\"2026-11-20T10:00:00Z\"}",
                              machine);
}

/* NULL: 503. */
static inline const char *app_webhook(struct app_double *app, struct json_value body, const char *text, struct arena *a)
{
    const char *action = json_cstr(json_get(body, "action"));
    const char *end = strcmp(action, "complete") == 0 ? "completed" : "failed";
    int64_t n;

    if (atomic_load(&app->n_refused_webhooks) > 0) {
        atomic_fetch_sub(&app->n_refused_webhooks, 1);
        return NULL;
    }
    app_query(app, "orders", "id", json_cstr(json_get(body, "task_id")),
              arena_printf(a, "{\"status\":\"%s\",\"locked_by\":null,\"locked_at\":null}", end), false, &n);
    pthread_mutex_lock(&app->lock);
    snprintf(app->last_webhook, sizeof(app->last_webhook), "%s", text);
    pthread_mutex_unlock(&app->lock);
    atomic_fetch_add(&app->n_webhooks, 1);
    return "{\"success\":true}";
}

/* The body of a request; NULL: the connection broke. */
static inline char *app_read(int fd, char *request)
{
    size_t n = 0, length;
    char *end = NULL, *header;

    while (n + 1 < APP_REQUEST_BYTES) {
        ssize_t got = recv(fd, request + n, APP_REQUEST_BYTES - 1 - n, 0);

        if (got <= 0)
            return NULL;
        n += (size_t)got;
        request[n] = '\0';
        end = end ? end : strstr(request, "\r\n\r\n");
        header = end ? strcasestr(request, "content-length:") : NULL;
        length = header ? (size_t)strtoul(header + strlen("content-length:"), NULL, 10) : 0;
        if (end && n >= (size_t)(end + 4 - request) + length)
            return end + 4;
    }
    return NULL;
}

static inline void app_answer(struct app_double *app, int fd)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *request = arena_alloc(a, APP_REQUEST_BYTES), *body = app_read(fd, request);
    bool is_lock = body && strncmp(request, "POST /api/task-lock ", 20) == 0;
    struct json_value json = { 0 };
    const char *answer, *response;

    if (!body || json_parse(a, slice_of(body), &json, NULL) < 0)
        return;
    answer = is_lock ? app_lock(app, json, a) : app_webhook(app, json, body, a);
    if (is_lock && !answer)
        return;
    response = arena_printf(
        a, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\nconnection: close\r\n\r\n%s",
        answer ? "200 OK" : "503 Service Unavailable", strlen(answer ? answer : "{}"), answer ? answer : "{}");
    (void)!send(fd, response, strlen(response), MSG_NOSIGNAL);
}

struct app_connection {
    struct app_double *app;
    int fd;
};

static void *app_serve(void *arg)
{
    struct app_connection *c = arg;

    app_answer(c->app, c->fd);
    if (atomic_load(&c->app->manner) == APP_MUTE) {
        char byte;

        while (recv(c->fd, &byte, 1, 0) > 0) /* until the client has left */
            ;
    }
    close(c->fd);
    free(c);
    return NULL;
}

/* One connection after the other: the lock is taken by the database, not by this order. */
static void *app_run(void *arg)
{
    struct app_double *app = arg;
    int fd;

    while ((fd = accept4(app->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct app_connection *c = xcalloc(1, sizeof(*c));

        *c = (struct app_connection){ app, fd };
        app_serve(c);
    }
    return NULL;
}

static inline struct app_double *app_start(struct backend *db)
{
    struct app_double *app = xcalloc(1, sizeof(*app));
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);

    app->db = db;
    pthread_mutex_init(&app->lock, NULL);
    app->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(app->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(app->listener, 128), 0);
    assert_int_equal(getsockname(app->listener, (struct sockaddr *)&at, &size), 0);
    app->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&app->thread, NULL, app_run, app), 0);
    return app;
}

static inline void app_stop(struct app_double *app)
{
    shutdown(app->listener, SHUT_RDWR);
    pthread_join(app->thread, NULL);
    close(app->listener);
    backend_close(app->db);
    pthread_mutex_destroy(&app->lock);
    free(app);
}
