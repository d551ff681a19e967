/* What the files of the server share: the server's own struct. Only the loop thread touches it, but for the atomic counts. */
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
    struct loop *loop;                  /* borrowed */
    struct http_server_config config;   /* defaults filled in */
    struct http_listeners listeners;    /* owned */
    struct loop_timer *accept_again;    /* owned; armed while file descriptors are out */
    struct http_connections connections;        /* owned */
    struct http_served_list in_flight;  /* requests with their owners: shared with them */
    atomic_size_t n_connections, n_in_flight, n_streams;        /* metrics read them on any thread */
    size_t n_tcp, n_unix;               /* connections */
    size_t n_reserve;                   /* of n_tcp: beyond the maximum, for the administrator (crowd.h) */
    int spare_fd;                       /* owned; given up so that the Unix socket can accept when descriptors are out; -1: in use */
    struct http_deadlines deadlines;
    int body_timeout_ms;
    bool is_draining;
    char id_prefix[13];                 /* of request ids made here */
    uint64_t n_ids;
    char scratch[HTTP_SCRATCH_BYTES];   /* one read goes here first, so that idle connections hold no buffer */
};

/* http/listen.c */
void http_listeners_close(struct http_server *s);
void http_listeners_resume(void *server);
