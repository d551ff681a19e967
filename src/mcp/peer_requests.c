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

/* ---- the calls that a request may belong to; the caller holds the lock ---- */

static bool peer_is_for(const struct peer_request *q, const struct peer_call *c)
{
    const struct mcp_caller *caller = c->call->caller;

    if (q->call_id > 0)
        return q->call_id == c->id;
    return q->caller && caller && strcmp(q->caller->name, caller->name) == 0;
}

bool peer_has_questions(const struct mcp_peer *p, const struct peer_call *c)
{
    for (const struct peer_request *q = p->requests; q; q = q->other)
        if (q->is_slow && peer_is_for(q, c))
            return true;
    return false;
}

/* After the request has joined or left the list. */
static void peer_renew_calls(struct mcp_peer *p, const struct peer_request *q)
{
    for (struct peer_call *c = p->calls; c && q->is_slow; c = c->next)
        if (peer_is_for(q, c))
            peer_renew_quiet(p, c);
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
    peer_renew_calls(p, q);
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

static void peer_meet_caller(const struct mcp_caller *caller, const struct mcp_caller **met, bool *is_one)
{
    if (caller && *met && strcmp((*met)->name, caller->name) != 0)
        *is_one = false;
    if (caller)
        *met = caller;
}

/* The one for whom everything runs that runs now; NULL: there is none, or several. */
static const struct mcp_caller *peer_only_caller(const struct mcp_peer *p)
{
    const struct mcp_caller *caller = NULL;
    bool is_one = true;

    for (const struct peer_call *c = p->calls; c; c = c->next)
        peer_meet_caller(c->call->caller, &caller, &is_one);
    for (const struct mcp_peer_task *t = p->tasks; t; t = t->next)
        peer_meet_caller(t->caller, &caller, &is_one);
    return is_one ? caller : NULL;
}

/* 2025-11-25, "Tasks": what a server asks because of a task names it. Absent: it names none. */
static struct slice peer_task_of(const struct json_rpc_frame *frame)
{
    struct json_value meta = json_get(frame->params, "_meta");

    return json_string(json_get(json_get(meta, "io.modelcontextprotocol/related-task"), "taskId"));
}

static const struct mcp_peer_task *peer_find_task(const struct mcp_peer *p, struct slice id)
{
    const struct mcp_peer_task *t = p->tasks;

    while (t && !slice_eq_str(id, t->id))
        t = t->next;
    return t;
}

/* For whom the server asks: exactly, where the transport or the request says it; otherwise it is known while one caller
 * has calls. (A progress token in a request of the server is the server's own and says nothing.) */
static const struct mcp_caller *peer_find_caller(struct mcp_peer *p, struct peer_request *q,
                                                 const struct json_rpc_id *within)
{
    struct slice task = peer_task_of(&q->frame);
    const struct peer_call *c;

    if (task.n > 0) {
        q->task = peer_find_task(p, task);
        return q->task ? q->task->caller : NULL;
    }
    if (!within)
        return peer_only_caller(p);
    c = peer_find(p, within);
    q->call_id = c ? c->id : 0;
    return c ? c->call->caller : NULL;
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
    q->is_slow = lane == &lane->peer->lanes[PEER_SLOW];
    q->other = lane->peer->requests;
    lane->peer->requests = q;
    peer_renew_calls(lane->peer, q);
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

void peer_take_request(struct mcp_peer *p, struct arena *a, const struct json_rpc_frame *frame,
                       const struct json_rpc_id *within)
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
        q->caller = peer_copy_caller(a, peer_find_caller(p, q, within));
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

void peer_cancel_within(struct mcp_peer *p, const struct peer_call *c)
{
    for (struct peer_request *q = p->requests; q; q = q->other)
        if (q->call_id == c->id)
            atomic_store(&q->is_gone, true);
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

/* ---- tasks ---- */

void mcp_peer_begin_task(struct mcp_peer *p, struct mcp_peer_task *task, const struct mcp_caller *caller)
{
    *task = (struct mcp_peer_task){ .caller = caller };
    pthread_mutex_lock(&p->lock);
    task->next = p->tasks;
    p->tasks = task;
    pthread_mutex_unlock(&p->lock);
}

/* Nobody waits any more for what was asked because of it. */
void mcp_peer_end_task(struct mcp_peer *p, struct mcp_peer_task *task)
{
    struct mcp_peer_task **at = &p->tasks;

    pthread_mutex_lock(&p->lock);
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    for (struct peer_request *q = p->requests; q; q = q->other) {
        if (q->task != task)
            continue;
        q->task = NULL;
        atomic_store(&q->is_gone, true);
    }
    pthread_mutex_unlock(&p->lock);
}

void peer_lanes_close(struct mcp_peer *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < N_PEER_LANES; i++)
        while (p->lanes[i].n_workers > 0)
            pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
