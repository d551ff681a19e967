/* A WebSocket (RFC 6455) to a server: TLS, proxy, guard and limits of the head are those of http_call(). No extension,
 * no compression.
 *
 * One thread uses it; only net_websocket_wake() may be called by others. Nothing waits longer than its wait. An object
 * serves one connection after the other.
 *
 *     struct net_websocket *w = net_websocket_new(on_message, arg);
 *     r = net_websocket_open(w, &request, &wait, e);
 *     r = net_websocket_send(w, false, message, e);         queued
 *     while (r == 0)
 *         r = net_websocket_step(w, 1000, e);               sends and reads; messages come by on_message
 *     net_websocket_shut(w, 1000);
 *     w = net_websocket_free(w);
 */
#pragma once

#include "net/http_client.h"
#include "net/wait.h"

struct net_websocket;

/* The message is borrowed. Must not call the functions below but send and wake. */
typedef void net_websocket_fn(void *arg, bool is_binary, struct slice message);

struct net_websocket *net_websocket_new(net_websocket_fn *on_message, void *arg) MUST_CHECK;
struct net_websocket *net_websocket_free(struct net_websocket *w);

/* Connects and upgrades. Of the request these count: url (http or https), headers, connect_ms, guard. Ends an earlier
 * connection. The errors of http_call(); -EBADMSG UPSTREAM_INVALID also for an answer that is no upgrade, with its
 * status and the beginning of its body in the text. */
int net_websocket_open(struct net_websocket *w, const struct http_call_request *request, const struct net_wait *wait,
                       struct err *e) MUST_CHECK;
/* -EAGAIN OVERLOADED when the server has left LIMIT_SOCKET_WAITING bytes unread. */
int net_websocket_send(struct net_websocket *w, bool is_binary, struct slice message, struct err *e) MUST_CHECK;
/* Sends what is queued, reads what has come; waits at most wait_ms when there is neither, and ends early after a wake.
 * -ECONNRESET UPSTREAM_CLOSED when the server has closed or broke a rule: the text has its code. */
int net_websocket_step(struct net_websocket *w, int64_t wait_ms, struct err *e) MUST_CHECK;
/* Closes with 1000: sends what is queued and waits at most so long for the server's close frame. */
void net_websocket_shut(struct net_websocket *w, int64_t wait_ms);
/* Closes the connection without a word. */
void net_websocket_drop(struct net_websocket *w);
/* Ends the step that waits now, or else the next one. Any thread. */
void net_websocket_wake(struct net_websocket *w);
