/* One client connection: reads requests one after the other, has each answered, sends the answers in order.
 *
 * Owned by the server; loop thread only. It reads the next head only when the answer before it is out, so pipelined
 * requests keep their order. While a request is with its owner (http/served.h) the connection still reads, to see the
 * client leave at once. Closing while its own code runs up the stack is put off to the end of that code.
 *
 *     connection.c       life, deadlines, who pays
 *     connection_read.c  bytes in: head, body, pipelined rest
 *     connection_write.c bytes out: replies, refusals, the farewell
 */
#pragma once

#include "http/chunked.h"
#include "http/deadline.h"
#include "http/head.h"

#include <event2/event_struct.h>

struct http_server;
struct http_served;

enum http_connection_state {
    CONNECTION_HEAD,                    /* waiting for a head, or in it */
    CONNECTION_BODY,
    CONNECTION_WORKING,                 /* the request is with its owner */
    CONNECTION_STREAMING,               /* its owner streams the answer */
    CONNECTION_REPLYING,                /* a whole answer is being sent */
    CONNECTION_LINGERING,               /* our side is closed; reading on so that the client gets the last answer */
};

struct http_connection {
    TAILQ_ENTRY(http_connection) links;
    struct http_server *server;         /* borrowed */
    int fd;                             /* owned */
    struct event readable, writable;
    struct http_deadline deadline;
    enum http_connection_state state;
    bool is_unix;
    bool is_busy, is_closing;           /* busy: its code is up the stack */
    bool is_reserve;                    /* beyond max_connections: for the administrator only */
    bool is_poisoned;                   /* too much was pipelined: no further request is read */
    bool keep_alive;                    /* after the answer that is being sent */
    struct http_head_scan scan;
    struct http_chunked chunked;
    struct http_framing framing;        /* of the current request */
    int64_t body_since_ms;              /* when its head was complete */
    size_t n_paced;                     /* bytes of the body, or of the answer, when their pace was last looked at */
    struct budget_purse purse;          /* of who sent the latest request: the connection, and answers not yet read */
    size_t linger_left;
    struct http_served *served;         /* owned while its body arrives, then shared with its owner */
    struct buf in;                      /* read but not yet used */
    struct http_reply out;
    struct http_peer *peer;             /* owned reference */
    char peer_text[sizeof(((struct http_request *)0)->peer)];
};

/* Takes fd and the reference over. */
void http_connection_open(struct http_server *s, int fd, struct http_peer *peer);
/* At once, or when the code up the stack is through; the request becomes gone. */
void http_connection_close(struct http_connection *c);
void http_connection_set_state(struct http_connection *c, enum http_connection_state state, enum http_wait wait);
void http_connection_wait(struct http_connection *c, enum http_wait wait);
void http_connection_expired(struct http_deadline *d, enum http_wait wait);

/* Runs what has arrived through the states; fresh bytes come behind those kept earlier. */
void http_connection_feed(struct http_connection *c, struct slice fresh);
/* Waits for the next head; one that was pipelined is taken at once. */
void http_connection_next(struct http_connection *c);

/* Sends the reply (taken over). keep_alive: whether another request may follow. */
void http_connection_reply(struct http_connection *c, struct http_reply *reply, bool keep_alive);
void http_connection_refuse(struct http_connection *c, enum http_refusal why);
/* Beyond a budget: r as budget_take() returned it. */
void http_connection_refuse_budget(struct http_connection *c, int r, const struct err *e);
/* The holder pays for this connection from now on. */
int http_connection_charge(struct http_connection *c, struct budget_holder *holder, struct err *e) MUST_CHECK;
void http_connection_send_out(struct http_connection *c);
/* The answer is out: the next request, or the farewell. */
void http_connection_replied(struct http_connection *c, bool keep_alive);
/* Calls http_connection_send_out(), or the stream's turn, when the socket takes bytes again. -EPIPE: it never will. */
int http_connection_await_room(struct http_connection *c) MUST_CHECK;

void http_connection_on_readable(int fd, short what, void *arg);
void http_connection_on_writable(int fd, short what, void *arg);
/* A new request id. id holds 65 bytes. */
void http_connection_make_id(struct http_server *s, char *id);
