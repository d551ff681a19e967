/* Upstreams in this process: a real http_server on its own loop, and a raw socket that sends whatever a test wants,
 * valid or not.
 *
 *     AUTO(rig_close) struct rig rig = { 0 };  rig_open(&rig, answer, arg);      rig_url(&rig, "/x")
 *     struct raw_peer peer;  raw_open(&peer, "HTTP/1.1 200 OK\r\n...", RAW_CLOSE);  ...  raw_close(&peer);
 */
#pragma once

#include "../wait.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/loop.h"
#include "http/server.h"
#include "http/sse.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct rig {
    struct arena *a;
    struct loop *loop;
    struct http_server *server;
    pthread_t thread;
    uint16_t port;
    atomic_bool is_running;
};

static inline void *rig_run(void *arg)
{
    struct rig *rig = arg;

    (void)!loop_run(rig->loop, NULL);
    return NULL;
}

static inline bool rig_head(void *arg, struct http_exchange *x, size_t *ret_max_body)
{
    *ret_max_body = LIMIT_BODY_CHAT;
    return true;
}

static inline void rig_runs(void *arg)
{
    atomic_store(&((struct rig *)arg)->is_running, true);
}

static inline bool rig_is_running(void *arg)
{
    return atomic_load(&((struct rig *)arg)->is_running);
}

/* on_request runs on the loop. */
static inline void rig_open(struct rig *rig, void (*on_request)(void *arg, struct http_exchange *x), void *arg)
{
    struct http_server_config c = { .on_request = on_request, .on_head = rig_head, .arg = arg };

    rig->a = arena_new();
    assert_int_equal(loop_new(&rig->loop, NULL), 0);
    assert_int_equal(http_server_start(rig->loop, &c, &rig->server, NULL), 0);
    assert_int_equal(http_server_listen(rig->server, "127.0.0.1", 0, &rig->port, NULL), 0);
    loop_post(rig->loop, rig_runs, rig);
    assert_int_equal(pthread_create(&rig->thread, NULL, rig_run, rig), 0);
    assert_true(wait_until(rig_is_running, rig));
}

static inline void rig_stop_server(void *arg)
{
    struct rig *rig = arg;

    rig->server = http_server_stop(rig->server);
}

static inline void rig_close(struct rig *rig)
{
    if (!rig->loop)
        return;
    loop_call(rig->loop, rig_stop_server, rig);
    loop_stop(rig->loop);
    pthread_join(rig->thread, NULL);
    loop_free(rig->loop);
    arena_free(rig->a);
}

static inline char *rig_url(struct rig *rig, const char *path)
{
    return arena_printf(rig->a, "http://127.0.0.1:%u%s", rig->port, path);
}

/* ---- a peer of bytes ---- */

enum raw_end { RAW_CLOSE, RAW_RESET, RAW_HANG, RAW_ENDLESS /* zeroes until the client leaves */ };

struct raw_peer {
    int listener;
    uint16_t port;
    const char *says;
    enum raw_end end;
    pthread_t thread;
    char heard[4096];      /* the first bytes of the last request */
    atomic_bool has_heard; /* a whole request head */
    atomic_bool has_left;  /* the client closed a connection that hung or was endless */
};

static inline void raw_serve(struct raw_peer *p, int fd)
{
    char more[4096];
    ssize_t n;

    do {
        size_t have = strlen(p->heard);

        n = recv(fd, p->heard + have, sizeof(p->heard) - 1 - have, 0);
    } while (n > 0 && p->heard[0] >= 'A' && !strstr(p->heard, "\r\n\r\n")); /* TLS begins with a small byte */
    atomic_store(&p->has_heard, true);
    (void)!send(fd, p->says, strlen(p->says), MSG_NOSIGNAL);
    if (p->end == RAW_ENDLESS) {
        memset(more, 0, sizeof(more));
        while (send(fd, more, sizeof(more), MSG_NOSIGNAL) > 0) {
        }
        atomic_store(&p->has_left, true);
    }
    if (p->end == RAW_HANG) {
        while (recv(fd, more, sizeof(more), 0) > 0) {
        }
        atomic_store(&p->has_left, true);
    }
    if (p->end == RAW_RESET)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
    close(fd);
}

static inline void *raw_run(void *arg)
{
    struct raw_peer *p = arg;
    int fd;

    while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        raw_serve(p, fd);
    return NULL;
}

static inline void raw_open(struct raw_peer *p, const char *says, enum raw_end end)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);

    *p = (struct raw_peer){ .says = says, .end = end };
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &n), 0);
    p->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, raw_run, p), 0);
}

static inline void raw_close(struct raw_peer *p)
{
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
}

/* A port on which no program listens, now or later: the port stays bound until the program ends. */
static inline uint16_t dead_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    return ntohs(at.sin_port);
}
