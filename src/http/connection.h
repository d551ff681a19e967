/* One client connection: reads requests one after the other, passes each on, and sends the answers in order.
 *
 * Owned by the server; loop thread only. The connection reads the next head only after the previous answer is sent, so
 * pipelined requests keep their order. While an owner works on a request (http/served.h), the connection still reads,
 * so that it notices at once when the client leaves. A close requested while the connection's own code is on the stack
 * is deferred until that code returns.
 *
 *     connection.c       life, deadlines, budgets
 *     connection_read.c  bytes in: head, body, pipelined rest
 *     connection_write.c bytes out: replies, refusals, the farewell
 *     websocket.c        both, after an upgrade
 */
#pragma once

#include "http/chunked.h"
#include "http/deadline.h"
#include "http/head.h"

#include <event2/event_struct.h>

struct http_server;
struct http_served;

enum http_connection_state {
    CONNECTION_HEAD, /* waiting for a head, or reading it */
    CONNECTION_BODY,
    CONNECTION_WORKING,   /* an owner works on the request */
    CONNECTION_STREAMING, /* the owner streams the answer */
    CONNECTION_SOCKET,    /* upgraded to a WebSocket */
    CONNECTION_REPLYING,  /* a complete answer is being sent */
    CONNECTION_LINGERING, /* our side is closed; reading continues so that the client receives the last answer */
};

struct http_connection {
    TAILQ_ENTRY(http_connection) links;
    struct http_server *server; /* borrowed */
    int fd;                     /* owned */
    struct event readable, writable;
    struct http_deadline deadline;
    enum http_connection_state state;
    bool is_unix;
    bool is_busy, is_closing; /* busy: its code is on the stack */
    bool is_reserve;          /* beyond max_connections: for the administrator only */
    bool is_poisoned;         /* too much was pipelined: no more requests are read */
    bool keep_alive;          /* after the answer that is being sent */
    struct http_head_scan scan;
    struct http_chunked chunked;
    struct http_framing framing; /* of the current request */
    int64_t body_since_ms;       /* when the head was complete */
    size_t n_paced;              /* bytes of the body or the answer at the last check of the pace */
    struct budget_purse purse;   /* of the sender of the latest request: the connection, and answers not yet read */
    size_t linger_left;
    struct http_served *served; /* owned while the body arrives, then shared with the owner of the request */
    struct buf in;              /* read but not yet parsed */
    struct http_reply out;
    struct http_peer *peer; /* owned reference */
    char peer_text[sizeof(((struct http_request *)0)->peer)];
};

/* Takes ownership of fd and of the reference. */
void http_connection_open(struct http_server *s, int fd, struct http_peer *peer);
/* Closes now, or after the connection's code on the stack has returned; the request's is_gone becomes true. */
void http_connection_close(struct http_connection *c);
void http_connection_set_state(struct http_connection *c, enum http_connection_state state, enum http_wait wait);
void http_connection_wait(struct http_connection *c, enum http_wait wait);
void http_connection_expired(struct http_deadline *d, enum http_wait wait);

/* Feeds the arrived bytes to the state machine; fresh bytes follow those kept earlier. */
void http_connection_feed(struct http_connection *c, struct slice fresh);
/* Reads on in the bytes kept earlier. */
void http_connection_go_on(struct http_connection *c);
/* Waits for the next head; a pipelined head is read immediately. */
void http_connection_next(struct http_connection *c);

/* Takes ownership of the reply and sends it. keep_alive: whether another request may follow. */
void http_connection_reply(struct http_connection *c, struct http_reply *reply, bool keep_alive);
void http_connection_refuse(struct http_connection *c, enum http_refusal why);
/* Refuses the request for a full budget: r as budget_take() returned it. */
void http_connection_refuse_budget(struct http_connection *c, int r, const struct err *e);
/* The holder pays for this connection from now on. */
int http_connection_charge(struct http_connection *c, struct budget_holder *holder, struct err *e) MUST_CHECK;
void http_connection_send_out(struct http_connection *c);
/* The answer is sent: reads the next request, or closes politely. */
void http_connection_replied(struct http_connection *c, bool keep_alive);
/* Waits until the socket is writable, then calls http_connection_send_out() or lets the stream send. -EPIPE: the socket
 * cannot be watched. */
int http_connection_await_room(struct http_connection *c) MUST_CHECK;

void http_connection_on_readable(int fd, short what, void *arg);
void http_connection_on_writable(int fd, short what, void *arg);
/* A new request id. id holds 65 bytes. */
void http_connection_make_id(struct http_server *s, char *id);
