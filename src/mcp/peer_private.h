/* Shared by peer.c (our calls) and peer_requests.c (the server's requests). No other file may include it. */
#pragma once

#include "mcp/peer.h"

#include <pthread.h>

/* One of our calls; on the stack of its thread, in the list of the peer until it returns. */
struct peer_call {
    struct peer_call *next;
    int64_t id;
    const char *method;
    const struct mcp_call *call;
    struct mcp_peer_task *task; /* see mcp_request */
    pthread_cond_t changed;
    _Atomic int64_t quiet_until_ms; /* 0: send() is to return at once */
    int n_reports;                  /* callbacks of progress that are running */
    bool is_done;
    struct arena *arena; /* of the response; owned */
    struct json_rpc_frame frame;
    size_t n_bytes;
};

/* One request of the server. */
struct peer_request {
    struct peer_request *next;  /* in its lane */
    struct peer_request *other; /* in the list of all */
    struct arena *arena;        /* owned; holds all below */
    struct json_rpc_frame frame;
    const struct mcp_caller *caller;  /* NULL: not known */
    int64_t call_id;                  /* the call that it belongs to; 0: which call of the caller is not known */
    const struct mcp_peer_task *task; /* that it belongs to, until the task ends; NULL: none */
    bool is_slow;                     /* may take a person's time */
    atomic_bool is_gone;
};

/* Requests that are answered at once have a lane of their own, so that no ping waits until a person has decided. */
struct peer_lane {
    struct mcp_peer *peer;
    struct peer_request *first, **last;
    size_t n_waiting, n_workers, max_workers;
};

enum { PEER_QUICK, PEER_SLOW, N_PEER_LANES };

struct mcp_peer {
    struct mcp_link *link; /* owned; NULL after close() */
    const char *link_name;
    bool sends_at_once; /* the link's */
    struct pool *pool;
    struct mcp_peer_events on;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct peer_call *calls;
    size_t n_calls, n_sending;
    int64_t last_id;
    bool is_closing, is_closed; /* close() was called; the link has ended */
    char why[400];
    struct peer_lane lanes[N_PEER_LANES];
    struct peer_request *requests;
    struct mcp_peer_task *tasks;
    struct mcp_counts counts;
};

/* Sends one frame unless the peer is closed. */
int peer_send(struct mcp_peer *p, const struct mcp_send *s, struct err *e) MUST_CHECK;
/* The caller holds the lock. NULL: no call of ours has the id. */
struct peer_call *peer_find(struct mcp_peer *p, const struct json_rpc_id *id);
/* The caller holds the lock: the quiet time of the call begins anew, or stands still while the server waits for an
 * answer of ours. */
void peer_renew_quiet(struct mcp_peer *p, struct peer_call *c);
/* The caller holds the lock. */
bool peer_has_questions(const struct mcp_peer *p, const struct peer_call *c);
/* Takes the arena. within: the id of the call in whose answer it came; NULL: none. On a thread of the link. */
void peer_take_request(struct mcp_peer *p, struct arena *a, const struct json_rpc_frame *frame,
                       const struct json_rpc_id *within);
/* The server gave up this request. */
void peer_cancel_request(struct mcp_peer *p, const struct json_rpc_id *id);
/* The caller holds the lock: the call has ended, and so does what was asked in its answer. */
void peer_cancel_within(struct mcp_peer *p, const struct peer_call *c);
/* A call failed or was cancelled: what was asked for its caller ends, unless another call of that caller runs. */
void peer_cancel_caller(struct mcp_peer *p, const struct mcp_caller *caller);
/* The caller holds the lock: nobody waits for answers any more. */
void peer_cancel_requests(struct mcp_peer *p);
void peer_lanes_open(struct mcp_peer *p);
/* Waits until no request is being answered, and drops those that wait. */
void peer_lanes_close(struct mcp_peer *p);
