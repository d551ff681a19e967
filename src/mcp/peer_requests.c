#include "mcp/peer_private.h"

#include "base/limits.h"
#include "identity/identity.h"

#include <string.h>

void peer_lanes_open(struct mcp_peer *p)
{
    for (size_t i = 0; i < N_PEER_LANES; i++) {
        struct peer_lane *lane = &p->lanes[i];

        *lane = (struct peer_lane){ .peer = p, .max_workers = i == PEER_QUICK ? 1 : LIMIT_MCP_REQUESTS };
        lane->last = &lane->first;
    }
}

static void peer_request_free(struct peer_request *q)
{
    arena_free(q->arena);
}

/* ---- answering; on a thread of the pool ---- */

static int peer_error_code(int r)
{
    switch (r) {
    case -ENOSYS:
        return JSON_RPC_METHOD_NOT_FOUND;
    case -EINVAL:
        return JSON_RPC_INVALID_PARAMS;
    case -EPERM:
        return -1; /* specification, "Sampling", error handling: the person said no */
    default:
        return JSON_RPC_INTERNAL_ERROR;
    }
}

static void peer_write_result(struct buf *out, const struct json_rpc_id *id, const char *result)
{
    struct json_writer w;

    json_rpc_begin(&w, out, id);
    json_add_raw(&w, "result", result);
    json_end(&w);
}

static void peer_write_answer(struct mcp_peer *p, struct peer_request *q, const struct net_wait *wait, struct buf *out)
{
    const struct mcp_server_request request = { q->frame.params, q->arena, wait, q->caller };
    struct err e = { 0 };
    struct buf result;
    int r;

    buf_init(&result, LIMIT_MCP_FRAME);
    if (strcmp(q->frame.method, "ping") == 0) {
        buf_add_str(&result, "{}");
        r = 0;
    } else {
        r = p->on.on_request(p->on.arg, q->frame.method, &request, &result, &e);
    }
    if (r == 0)
        r = buf_check(&result, &e);
    if (r == 0)
        peer_write_result(out, &q->frame.id, buf_str(&result));
    else
        json_rpc_write_error(out, &q->frame.id, peer_error_code(r), e.text, (struct json_value){ 0 });
    buf_clear(&result);
}

static void peer_answer(struct mcp_peer *p, struct peer_request *q)
{
    const struct net_wait wait = net_wait_of(LIMIT_MCP_REQUEST_MS, &q->is_gone, NULL);
    struct err e = { 0 };
    struct buf out;

    buf_init(&out, LIMIT_MCP_FRAME);
    if (!atomic_load(&q->is_gone))
        peer_write_answer(p, q, &wait, &out);
    if (!atomic_load(&q->is_gone) && buf_check(&out, &e) == 0 &&
        peer_send(p, &(struct mcp_send){ .frame = buf_slice(&out), .wait = &wait }, &e) < 0)
        e.text[0] = '\0'; /* the server does not read, or has ended: nobody is left to say it to */
    buf_clear(&out);
}

/* The caller holds the lock. */
static void peer_forget_request(struct mcp_peer *p, struct peer_request *q)
{
    struct peer_request **at = &p->requests;

    while (*at != q)
        at = &(*at)->other;
    *at = q->other;
    peer_request_free(q);
}

static struct peer_request *peer_lane_pop(struct peer_lane *lane)
{
    struct peer_request *q = lane->first;

    if (!q)
        return NULL;
    lane->first = q->next;
    if (!lane->first)
        lane->last = &lane->first;
    lane->n_waiting--;
    return q;
}

static void peer_lane_run(void *arg)
{
    struct peer_lane *lane = arg;
    struct mcp_peer *p = lane->peer;
    struct peer_request *q;

    pthread_mutex_lock(&p->lock);
    while ((q = peer_lane_pop(lane))) {
        pthread_mutex_unlock(&p->lock);
        peer_answer(p, q);
        pthread_mutex_lock(&p->lock);
        peer_forget_request(p, q);
    }
    lane->n_workers--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* ---- taking; on a thread of the link ---- */

/* For whom the server asks: known when all calls that run are for the same caller. */
static const struct mcp_caller *peer_find_caller(const struct mcp_peer *p)
{
    const struct mcp_caller *caller = NULL;

    for (const struct peer_call *c = p->calls; c; c = c->next) {
        if (!c->call->caller)
            continue;
        if (caller && strcmp(caller->name, c->call->caller->name) != 0)
            return NULL;
        caller = c->call->caller;
    }
    return caller;
}

/* The call may end before the request. */
static const struct mcp_caller *peer_copy_caller(struct arena *a, const struct mcp_caller *from)
{
    struct mcp_caller *copy;

    if (!from)
        return NULL;
    copy = ARENA_NEW(a, struct mcp_caller);
    *copy = (struct mcp_caller){ .name = arena_strdup(a, from->name),
                                 .who = from->who ? caller_copy(a, from->who) : NULL,
                                 .agent = arena_strdup(a, from->agent),
                                 .session_id = arena_strdup(a, from->session_id),
                                 .task_uuid = arena_strdup(a, from->task_uuid) };
    return copy;
}

static struct peer_lane *peer_lane_of(struct mcp_peer *p, const char *method)
{
    static const char *const slow[] = { "sampling/createMessage", "elicitation/create", "roots/list" };

    for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
        if (strcmp(method, slow[i]) == 0)
            return &p->lanes[PEER_SLOW];
    return &p->lanes[PEER_QUICK];
}

static void peer_lane_push(struct peer_lane *lane, struct peer_request *q)
{
    *lane->last = q;
    lane->last = &q->next;
    lane->n_waiting++;
    q->other = lane->peer->requests;
    lane->peer->requests = q;
}

/* The caller holds the lock. False: the lane has no thread and gets none. */
static bool peer_lane_staff(struct peer_lane *lane)
{
    if (lane->n_workers >= lane->max_workers)
        return true;
    if (pool_submit(lane->peer->pool, peer_lane_run, lane) == 0)
        lane->n_workers++;
    return lane->n_workers > 0;
}

void peer_take_request(struct mcp_peer *p, struct arena *a, const struct json_rpc_frame *frame)
{
    struct peer_lane *lane = peer_lane_of(p, frame->method);
    struct peer_request *q = ARENA_NEW(a, struct peer_request);
    bool is_taken;

    q->arena = a;
    q->frame = *frame;
    pthread_mutex_lock(&p->lock);
    is_taken = p->pool && !p->is_closing && !p->is_closed && lane->n_waiting < LIMIT_MCP_REQUESTS_WAITING &&
               peer_lane_staff(lane);
    if (is_taken) {
        q->caller = peer_copy_caller(a, peer_find_caller(p));
        peer_lane_push(lane, q);
    } else {
        p->counts.n_refused++;
    }
    pthread_mutex_unlock(&p->lock);
    if (!is_taken)
        peer_request_free(q);
}

void peer_cancel_request(struct mcp_peer *p, const struct json_rpc_id *id)
{
    pthread_mutex_lock(&p->lock);
    for (struct peer_request *q = p->requests; q; q = q->other)
        if (json_rpc_id_eq(&q->frame.id, id))
            atomic_store(&q->is_gone, true);
    pthread_mutex_unlock(&p->lock);
}

void peer_cancel_caller(struct mcp_peer *p, const struct mcp_caller *caller)
{
    const struct peer_call *c;

    pthread_mutex_lock(&p->lock);
    for (c = p->calls; c; c = c->next)
        if (c->call->caller && strcmp(c->call->caller->name, caller->name) == 0)
            break;
    for (struct peer_request *q = c ? NULL : p->requests; q; q = q->other)
        if (q->caller && strcmp(q->caller->name, caller->name) == 0)
            atomic_store(&q->is_gone, true);
    pthread_mutex_unlock(&p->lock);
}

void peer_cancel_requests(struct mcp_peer *p)
{
    for (struct peer_request *q = p->requests; q; q = q->other)
        atomic_store(&q->is_gone, true);
}

void peer_lanes_close(struct mcp_peer *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < N_PEER_LANES; i++)
        while (p->lanes[i].n_workers > 0)
            pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
