/* A request inside the service: the server's part of an exchange.
 *
 * Made by the connection when a head is complete. http_served_begin() hands it to config.on_request; from then on its
 * owner, on any thread, answers it, and the loop uses only `connection`, `server` and the list. The answer is posted to
 * the loop, which drops it when the client has left meanwhile. The arena is freed when the answer is built, or with the
 * stream.
 */
#pragma once

#include "http/carrier.h"
#include "http/reply.h"

#include <sys/queue.h>

struct http_connection;
struct http_server;
struct served_stream;
struct http_websocket;

struct http_served {
    struct http_exchange exchange;      /* first: what owners hold */
    TAILQ_ENTRY(http_served) links;     /* loop: in server->in_flight */
    struct loop *loop;                  /* borrowed */
    struct http_server *server;         /* loop: NULL after the server's stop */
    struct http_connection *connection; /* loop: NULL when the client has left */
    struct buf body;                    /* of the request */
    struct http_reply reply;
    struct served_stream *stream;  /* loop: set while streaming */
    struct http_websocket *socket; /* loop: set after the upgrade */
    bool keep_alive, is_http10;    /* as the client requested */
    atomic_bool must_close;        /* the service drains: this is the last answer of the connection */
};

struct http_served *http_served_new(struct http_connection *c);
struct http_served *http_served_free(struct http_served *served);
/* The request is complete: hands it to the owner. */
void http_served_begin(struct http_served *served);
/* Sends the response that on_head filled when it refused the request. */
void http_served_answer(struct http_served *served, bool must_close);
/* Loop: removes it from the server's list when its answer is sent or its client has left. */
void http_served_finish(struct http_served *served);
/* Loop: the client has left, or the server stops. served may be freed by this call. */
void http_served_lose(struct http_served *served);
struct http_reply_way http_served_way(const struct http_served *served);

/* http/stream.c */
struct http_stream *http_served_start_stream(struct http_exchange *x);
void http_served_stream_lose(struct served_stream *s);    /* loop */
void http_served_stream_send(struct served_stream *s);    /* loop: the socket has room */
void http_served_stream_comment(struct served_stream *s); /* loop: the stream has been silent for long */

/* http/websocket.c; loop */
void http_websocket_lose(struct http_websocket *w);
void http_websocket_send(struct http_websocket *w); /* the socket has room */
/* Returns how many of the bytes were used. */
size_t http_websocket_take(struct http_websocket *w, struct slice bytes);
