/* One connection to an MCP server. Frames (JSON-RPC messages as text) go out by send() and come in by on_frame.
 *
 * The transports (mcp/stdio, mcp/http, mcp/sse) embed struct mcp_link first in a struct of their own and are opened by
 * a function of their own; what they read before start() waits. A link belongs to one peer (mcp/peer), which starts it
 * once, and closes it once. Every function may block its thread, never the loop; `wait` carries deadline and cancel.
 * send() may be called by any number of threads at once. Events come on any thread, also on one that is in send().
 *
 *     r = mcp_stdio_open(&config, &link, e);
 *     r = link->ops->start(link, &events, e);
 *     r = link->ops->send(link, &(struct mcp_send){ .frame = text, .wait = &wait }, e);
 *     link = link->ops->close(link);
 */
#pragma once

#include "base/slice.h"
#include "net/wait.h"

struct mcp_link;
struct http_call_header;
struct json_rpc_id;

struct mcp_link_events {
    /* One frame, or one batch of them; valid during the call. A transport ends the connection (-E2BIG
     * MCP_FRAME_TOO_LARGE) instead of reading more than LIMIT_MCP_FRAME bytes. Returns fast: it answers nothing. The
     * frames of one stream come one after the other; different streams may deliver at the same time. request: the id of
     * our request in whose answer the frame came (streamable HTTP, a stream of events); NULL: outside of any answer. */
    void (*on_frame)(void *arg, struct slice frame, const struct json_rpc_id *request);
    /* The stream of listen() is open only now, or again: what the server sent unasked before may be lost. */
    void (*on_gap)(void *arg);
    /* Once, by the time close() returns. No frame can be sent any more; every call in flight fails with `why`. */
    void (*on_closed)(void *arg, const struct err *why);
    void *arg;
};

struct mcp_send {
    struct slice frame;
    const char *method;  /* of a request or notification, for the header Mcp-Method; NULL: a response */
    const char *name;    /* for the header Mcp-Name: params.name (tools/call, prompts/get) or params.uri
                            (resources/read); otherwise NULL. UTF-8; the transport encodes it */
    const char *version; /* protocol version in force; NULL: not known yet (initialize) */
    const struct http_call_header *params; /* arguments that are headers too (mcp/http_params.h); HTTP only */
    size_t n_params;
    bool is_request;             /* a response is expected: over HTTP, send() returns when its stream has ended */
    const struct net_wait *wait; /* also its `quiet` moment (net/wait.h), which progress moves on */
};

struct mcp_link_ops {
    const char *name;   /* "stdio", "http", "sse" */
    bool sends_at_once; /* send() does not wait for the server to have read the frame */

    /* Begins to read; before the first send(). `on` is copied. */
    int (*start)(struct mcp_link *l, const struct mcp_link_events *on, struct err *e);

    /* Sends one frame. A frame is sent whole or not at all as far as the server can see. A negative result of a
     * request: no response will come from this send(), and whether the server acted on it is unknown unless the code
     * says so. What a caller distinguishes:
     *   -ETIMEDOUT, -ECANCELED       the wait is over (UPSTREAM_TIMEOUT, SHUTTING_DOWN)
     *   -EPIPE MCP_CLOSED            the connection has ended; on_closed has come or will come
     *   -EACCES MCP_LOGIN_REQUIRED   401 or 403: nobody is logged in, or without this scope
     *   -EPROTO MCP_NO_ANSWER        HTTP: a status of 400 or above without a JSON-RPC error in its body. With one the
     *                                frame goes to on_frame and send() returns 0 (the rule of eras needs its code)
     *   -ENOTCONN MCP_SESSION_LOST   HTTP: the server has forgotten the session; the request was not handled
     * Over HTTP in the stateless era, the end of a request's wait closes its stream, and that cancels the request at
     * the server: the notification notifications/cancelled is not posted there (returns 0). */
    int (*send)(struct mcp_link *l, const struct mcp_send *s, struct err *e);

    /* After the handshake of a version before 2026-07-28: opens the stream of what the server sends unasked (GET over
     * streamable HTTP). Returns at once; a server that has no such stream is no error. NULL: there is none. */
    int (*listen)(struct mcp_link *l, const char *version, struct err *e);

    /* Ends the connection in good order and frees the link; blocks until no event is running or will come. NULL is not
     * allowed. Not from within an event. Returns NULL. */
    struct mcp_link *(*close)(struct mcp_link *l);
};

struct mcp_link {
    const struct mcp_link_ops *ops;
};
