/* JSON-RPC over a link: our requests and their responses, the server's requests and our answers.
 *
 * A response belongs to the call that has its id; every other response is counted and dropped. Progress begins the
 * quiet time of its call anew. A call that is given up is cancelled at the server. Requests of the server are answered
 * on threads of the pool, so that the thread that reads never waits; while one that may take a person's time is
 * answered, the quiet time of the calls that it may belong to stands still. Any thread but the loop's. The owner closes
 * first, and frees when no call runs any more.
 *
 *     r = mcp_peer_open(&(struct mcp_peer_config){ link, pool, events }, &peer, e);
 *     r = mcp_peer_call(peer, &(struct mcp_request){ .method = "ping" }, &call, &reply, e);
 *     mcp_peer_close(peer);
 *     peer = mcp_peer_free(peer);
 */
#pragma once

#include "base/json_rpc.h"
#include "base/limits.h"
#include "mcp/client.h"

struct mcp_peer;

struct mcp_peer_events {
    /* A notification, except progress and cancelled. On a thread of the link; must not wait. */
    void (*on_notification)(void *arg, const struct json_rpc_frame *frame);
    void (*on_gap)(void *arg); /* notifications before this moment may be lost; on a thread of the link */
    /* A request of the server, except ping; on a thread of the pool. Writes the value of `result`. -ENOSYS is answered
     * with -32601, -EINVAL with -32602, -EPERM with -1, everything else with -32603. */
    int (*on_request)(void *arg, const char *method, const struct mcp_server_request *request, struct buf *ret_result,
                      struct err *e);
    void (*on_closed)(void *arg, const struct err *why); /* once */
    void *arg;
};

struct mcp_peer_config {
    struct mcp_link *link; /* taken, also on failure */
    struct pool *pool;     /* borrowed; NULL: requests of the server are dropped */
    struct mcp_peer_events on;
};

/* A task that a call of ours may become (2025-11-25, "Tasks"): what its server asks meanwhile belongs to that call. On
 * the stack of the caller. */
struct mcp_peer_task {
    struct mcp_peer_task *next;
    const struct mcp_caller *caller; /* of the call; NULL: nobody */
    char id[LIMIT_RPC_ID_BYTES + 1]; /* "": it is no task yet, or one with a longer id */
};

struct mcp_request {
    const char *method, *name, *version;    /* see struct mcp_send */
    const struct http_call_header *headers; /* arguments that are headers too */
    size_t n_headers;
    void (*add_params)(const void *arg, struct json_writer *w); /* adds members of `params`; NULL: none */
    const void *arg;
    void (*add_meta)(const void *meta, struct json_writer *w); /* adds members of `params._meta`; NULL: none */
    const void *meta;
    _Atomic int64_t *ret_id;    /* its id, set before it is sent; NULL */
    bool must_not_be_cancelled; /* initialize */
    struct mcp_peer_task *task; /* that its response may name; NULL: none */
};

struct mcp_reply {
    bool is_error;
    struct json_value result;    /* of a response without error */
    struct json_rpc_error error; /* of one with an error */
    size_t n_bytes;              /* of the frame */
};

int mcp_peer_open(const struct mcp_peer_config *c, struct mcp_peer **ret, struct err *e) MUST_CHECK;
/* Blocks until the response is there; it lies in call->arena. A JSON-RPC error is a reply, not a failure. Fails like
 * the operations of client.h; -EAGAIN OVERLOADED while LIMIT_MCP_CALLS calls wait. */
int mcp_peer_call(struct mcp_peer *p, const struct mcp_request *q, const struct mcp_call *call, struct mcp_reply *ret,
                  struct err *e) MUST_CHECK;
/* Around the request that may become the task, and all that is asked about it. */
void mcp_peer_begin_task(struct mcp_peer *p, struct mcp_peer_task *task, const struct mcp_caller *caller);
void mcp_peer_end_task(struct mcp_peer *p, struct mcp_peer_task *task);
/* A notification; q->name and q->must_not_be_cancelled have no meaning. */
int mcp_peer_notify(struct mcp_peer *p, const struct mcp_request *q, const struct net_wait *wait,
                    struct err *e) MUST_CHECK;
/* After the handshake: the stream of what the server sends unasked. */
int mcp_peer_listen(struct mcp_peer *p, const char *version, struct err *e) MUST_CHECK;
bool mcp_peer_is_open(struct mcp_peer *p);
void mcp_peer_counts(struct mcp_peer *p, struct mcp_counts *ret);
const char *mcp_peer_link_name(const struct mcp_peer *p); /* "stdio", "http", "sse" */
/* Ends every call, closes the link, waits for the answers that are being made. Any number of times. Not from within an
 * event. */
void mcp_peer_close(struct mcp_peer *p);
struct mcp_peer *mcp_peer_free(struct mcp_peer *p); /* closed, and no call runs; NULL is fine; returns NULL */
