/* The server's struct, shared by the files of the server. Only the loop thread uses it, except for the atomic
 * counts. */
#pragma once

#include "http/deadline.h"
#include "http/server.h"

#include <stdatomic.h>

enum { HTTP_SCRATCH_BYTES = 64 << 10 };

struct http_listener;

TAILQ_HEAD(http_connections, http_connection);
TAILQ_HEAD(http_served_list, http_served);
TAILQ_HEAD(http_listeners, http_listener);

struct http_server {
    struct loop *loop;                                   /* borrowed */
    struct http_server_config config;                    /* defaults filled in */
    struct http_listeners listeners;                     /* owned */
    struct loop_timer *accept_again;                     /* owned; armed while no file descriptors are free */
    struct loop_timer *drain_on;                         /* owned; armed while idle connections are left to close */
    struct http_connections connections;                 /* owned */
    struct http_served_list in_flight;                   /* requests that owners work on: shared with the owners */
    atomic_size_t n_connections, n_in_flight, n_streams; /* metrics read them on any thread */
    size_t n_tcp, n_unix;                                /* connections */
    size_t n_reserve; /* of n_tcp: those beyond the maximum, for the administrator (crowd.h) */
    int spare_fd;     /* owned; closed so that the Unix socket can accept when no descriptors are free; -1: in use */
    struct http_deadlines deadlines;
    int body_timeout_ms;
    bool is_draining;
    char id_prefix[13]; /* of request ids made here */
    uint64_t n_ids;
    char scratch[HTTP_SCRATCH_BYTES]; /* target of every read, so that idle connections hold no buffer */
};

/* http/listen.c */
void http_listeners_close(struct http_server *s);
void http_listeners_resume(void *server);
