/* A WebSocket (RFC 6455) on a connection of the server, after the upgrade of a request.
 *
 * A handler checks the handshake, makes the socket and begins it; from then on the exchange is taken, as by a stream.
 * Messages arrive on the loop thread. Pushing is for any thread and never waits: the bytes that a client has not read
 * are bounded and charged to its caller (BUDGET_REPLIES), and a client that leaves too many unread is closed. A client
 * that has been silent for a minute is closed. Reference counted: the loop holds one reference, the maker another.
 *
 *     r = http_websocket_check(x, e);
 *     r = http_websocket_new(x, &user, &socket, e);
 *     http_websocket_begin(socket);              x must not be touched any more
 *     r = http_websocket_push(socket, frames);   made by websocket_write_message()
 *     http_websocket_close(socket, WEBSOCKET_NORMAL, "");
 *     socket = http_websocket_unref(socket);
 */
#pragma once

#include "http/http.h"
#include "base/websocket_frames.h"

struct http_websocket;

/* Loop thread; must not block. */
struct http_websocket_user {
    /* A whole message, borrowed. False: no more is read until http_websocket_resume(). */
    bool (*on_message)(void *arg, bool is_binary, struct slice message);
    void (*on_closed)(void *arg); /* once, and nothing after it */
    void *arg;
};

/* RFC 6455 section 4.2.1: -EINVAL BAD_HANDSHAKE; -EPROTO UPGRADE_REQUIRED. Sets the headers of the answer. */
int http_websocket_check(struct http_exchange *x, struct err *e) MUST_CHECK;
/* -EBUSY BUDGET_EXCEEDED, -EAGAIN OVERLOADED; -ENOTSUP NOT_SERVING when the request came without a connection. */
int http_websocket_new(struct http_exchange *x, const struct http_websocket_user *user, struct http_websocket **ret,
                       struct err *e) MUST_CHECK;
/* Answers 101 and takes the exchange. */
void http_websocket_begin(struct http_websocket *w);
/* Whole frames. 0; -EPIPE when the client has left or is being closed; -EAGAIN when it had left too much unread: it is
 * being closed. */
int http_websocket_push(struct http_websocket *w, struct slice frames);
void http_websocket_resume(struct http_websocket *w);
/* Sends what was pushed, a close frame, and closes. Only the first close counts. */
void http_websocket_close(struct http_websocket *w, enum websocket_code code, const char *reason);
struct budget_holder *http_websocket_holder(struct http_websocket *w); /* borrowed */
struct http_websocket *http_websocket_ref(struct http_websocket *w) MUST_CHECK;
struct http_websocket *http_websocket_unref(struct http_websocket *w); /* NULL is fine; returns NULL */
