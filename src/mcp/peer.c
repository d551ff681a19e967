#include "mcp/peer_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "net/pay.h"

#include <string.h>

enum {
    PEER_LOOK_MS = 50,    /* interval at which a call looks at its flags */
    PEER_CANCEL_MS = 500, /* how long the notification of a cancelled call may take to be sent */
};

/* ---- sending ---- */

/* Under the lock: the reason is written when the link ends. */
static int peer_refuse_closed(const struct mcp_peer *p, struct err *e)
{
    return err_set(e, -EPIPE, "MCP_CLOSED", "%s", *p->why ? p->why : "The connection to the MCP server was closed.");
}

int peer_send(struct mcp_peer *p, const struct mcp_send *s, struct err *e)
{
    int r;

    pthread_mutex_lock(&p->lock);
    if (p->is_closing || p->is_closed) {
        r = peer_refuse_closed(p, e);
        pthread_mutex_unlock(&p->lock);
        return r;
    }
    p->n_sending++;
    pthread_mutex_unlock(&p->lock);
    r = p->link->ops->send(p->link, s, e);
    pthread_mutex_lock(&p->lock);
    p->n_sending--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return r;
}

/* progress_token: 0: none. */
static int peer_write(const struct mcp_request *q, int64_t id, bool wants_progress, struct buf *out, struct err *e)
{
    const struct json_rpc_id rpc_id = { .kind = JSON_RPC_ID_INT, .number = id };
    struct json_writer w;

    if (id > 0)
        json_rpc_begin_request(&w, out, &rpc_id, q->method);
    else
        json_rpc_begin_notification(&w, out, q->method);
    if (q->add_params || q->add_meta || wants_progress) {
        json_begin_object_as(&w, "params");
        if (q->add_meta || wants_progress) {
            json_begin_object_as(&w, "_meta");
            if (wants_progress)
                json_add_int(&w, "progressToken", id);
            if (q->add_meta)
                q->add_meta(q->meta, &w);
            json_end(&w);
        }
        if (q->add_params)
            q->add_params(q->arg, &w);
        json_end(&w);
    }
    json_end(&w);
    if (buf_check(out, e) < 0)
        return err_set(e, -E2BIG, "MCP_TOO_LARGE", "A message to an MCP server must have at most %d bytes.",
                       LIMIT_MCP_FRAME);
    return 0;
}

int mcp_peer_notify(struct mcp_peer *p, const struct mcp_request *q, const struct net_wait *wait, struct err *e)
{
    struct buf out;
    int r;

    buf_init(&out, LIMIT_MCP_FRAME);
    r = peer_write(q, 0, false, &out, e);
    if (r == 0)
        r = peer_send(
            p, &(struct mcp_send){ .frame = buf_slice(&out), .method = q->method, .version = q->version, .wait = wait },
            e);
    buf_clear(&out);
    return r;
}

static void peer_add_cancelled(const void *arg, struct json_writer *w)
{
    json_add_int(w, "requestId", *(const int64_t *)arg);
    json_add_string(w, "reason", "nobody waits for the response any more");
}

static void peer_cancel(struct mcp_peer *p, const struct mcp_request *q, int64_t id)
{
    const struct net_wait wait = net_wait_of(PEER_CANCEL_MS, NULL, NULL);
    const struct mcp_request cancelled = { .method = "notifications/cancelled",
                                           .version = q->version,
                                           .add_params = peer_add_cancelled,
                                           .arg = &id,
                                           .add_meta = q->add_meta,
                                           .meta = q->meta };

    if (mcp_peer_notify(p, &cancelled, &wait, NULL) < 0)
        return; /* a server that reads nothing learns nothing */
}

/* ---- one call ---- */

void peer_renew_quiet(struct mcp_peer *p, struct peer_call *c)
{
    bool is_unbounded = c->call->quiet_ms <= 0 || peer_has_questions(p, c);

    if (!c->is_done && !p->is_closing && !p->is_closed)
        atomic_store(&c->quiet_until_ms, is_unbounded ? INT64_MAX : clock_mono_ms() + c->call->quiet_ms);
}

static int peer_enter(struct mcp_peer *p, struct peer_call *c, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&p->lock);
    if (p->is_closing || p->is_closed)
        r = peer_refuse_closed(p, e);
    else if (p->n_calls >= LIMIT_MCP_CALLS)
        r = err_set(e, -EAGAIN, "OVERLOADED", "At most %d calls of one MCP server wait at the same time.",
                    LIMIT_MCP_CALLS);
    if (r == 0) {
        c->id = ++p->last_id;
        c->next = p->calls;
        p->calls = c;
        p->n_calls++;
        peer_renew_quiet(p, c);
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

/* After this no event knows the call. */
static void peer_leave(struct mcp_peer *p, struct peer_call *c)
{
    struct peer_call **at = &p->calls;

    pthread_mutex_lock(&p->lock);
    while (c->n_reports > 0)
        pthread_cond_wait(&c->changed, &p->lock);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    p->n_calls--;
    peer_cancel_within(p, c);
    pthread_mutex_unlock(&p->lock);
}

static int peer_await(struct mcp_peer *p, struct peer_call *c, const struct net_wait *wait, struct err *e)
{
    int64_t left_ms = 1;
    int r = 0;

    pthread_mutex_lock(&p->lock);
    while (!c->is_done && !p->is_closing && !p->is_closed && left_ms > 0) {
        left_ms = net_wait_left(wait, e);
        if (left_ms > 0)
            cond_wait_until(&c->changed, &p->lock, clock_mono_us() + MIN(left_ms, (int64_t)PEER_LOOK_MS) * 1000);
    }
    if (!c->is_done)
        r = p->is_closing || p->is_closed ? peer_refuse_closed(p, e) : (int)left_ms;
    pthread_mutex_unlock(&p->lock);
    return r;
}

static void peer_free_arena(void *arg)
{
    arena_free(arg);
}

static int peer_take_reply(struct peer_call *c, const struct mcp_call *call, struct mcp_reply *ret, struct err *e)
{
    int r = net_pay(call->wait->holder, call->arena, arena_bytes(c->arena), e);

    if (r < 0) {
        arena_free(c->arena);
        return r;
    }
    arena_defer(call->arena, peer_free_arena, c->arena);
    *ret = (struct mcp_reply){
        .is_error = c->frame.kind == JSON_RPC_ERROR,
        .result = c->frame.result,
        .error = c->frame.error,
        .n_bytes = c->n_bytes,
    };
    return 0;
}

static int peer_explain(struct mcp_peer *p, const struct mcp_request *q, int r, struct err *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->is_closing || p->is_closed) /* also when close() ended the wait of send() */
        r = peer_refuse_closed(p, e);
    pthread_mutex_unlock(&p->lock);
    if (r == -ETIMEDOUT)
        return err_set(e, r, "MCP_TIMEOUT", "The MCP server did not answer `%.100s` in time.", q->method);
    return r;
}

static void peer_meanwhile(const struct mcp_call *call, bool is_free)
{
    if (call->meanwhile)
        call->meanwhile(call->meanwhile_arg, is_free);
}

static int peer_run(struct mcp_peer *p, const struct mcp_request *q, struct peer_call *c, struct err *e)
{
    struct net_wait wait = *c->call->wait;
    struct buf out;
    int r;

    wait.quiet_until_ms = &c->quiet_until_ms;
    buf_init(&out, LIMIT_MCP_FRAME);
    r = peer_write(q, c->id, c->call->on_progress || c->call->quiet_ms > 0, &out, e);
    if (r == 0 && !p->sends_at_once)
        peer_meanwhile(c->call, false);
    if (r == 0)
        r = peer_send(p,
                      &(struct mcp_send){ .frame = buf_slice(&out),
                                          .method = q->method,
                                          .name = q->name,
                                          .version = q->version,
                                          .params = q->headers,
                                          .n_params = q->n_headers,
                                          .is_request = true,
                                          .wait = &wait },
                      e);
    buf_clear(&out);
    if (r == 0 && p->sends_at_once)
        peer_meanwhile(c->call, true);
    return r < 0 ? r : peer_await(p, c, &wait, e);
}

int mcp_peer_call(struct mcp_peer *p, const struct mcp_request *q, const struct mcp_call *call, struct mcp_reply *ret,
                  struct err *e)
{
    struct peer_call c = { .method = q->method, .call = call, .task = q->task };
    int r;

    cond_init(&c.changed);
    atomic_init(&c.quiet_until_ms, INT64_MAX);
    r = peer_enter(p, &c, e);
    if (r == 0 && q->ret_id)
        atomic_store(q->ret_id, c.id);
    if (r == 0) {
        r = peer_run(p, q, &c, e);
        peer_leave(p, &c);
    }
    pthread_cond_destroy(&c.changed);
    if (c.is_done) /* also when send() failed after the response had come */
        return peer_take_reply(&c, call, ret, e);
    if (call->caller)
        peer_cancel_caller(p, call->caller);
    if ((r == -ETIMEDOUT || r == -ECANCELED) && !q->must_not_be_cancelled)
        peer_cancel(p, q, c.id);
    return peer_explain(p, q, r, e);
}

/* ---- what comes in; on a thread of the link ---- */

struct peer_call *peer_find(struct mcp_peer *p, const struct json_rpc_id *id)
{
    struct peer_call *c = id->kind == JSON_RPC_ID_INT ? p->calls : NULL;

    while (c && c->id != id->number)
        c = c->next;
    return c;
}

/* The caller holds the lock. */
static void peer_settle(struct peer_call *c)
{
    c->is_done = true;
    atomic_store(&c->quiet_until_ms, 0);
    pthread_cond_broadcast(&c->changed);
}

/* Before the call goes on: the server may ask about its task at once. The caller holds the lock. */
static void peer_take_task(struct peer_call *c)
{
    const char *id = json_cstr(json_get(json_get(c->frame.result, "task"), "taskId"));

    if (c->task && id && strlen(id) < sizeof(c->task->id))
        snprintf(c->task->id, sizeof(c->task->id), "%s", id);
}

/* Takes the arena. */
static void peer_take_response(struct mcp_peer *p, struct arena *a, const struct json_rpc_frame *frame, size_t n_bytes)
{
    struct peer_call *c;

    pthread_mutex_lock(&p->lock);
    c = peer_find(p, &frame->id);
    if (c && !c->is_done) {
        c->arena = TAKE(a);
        c->frame = *frame;
        c->n_bytes = n_bytes;
        peer_take_task(c);
        peer_settle(c);
    } else {
        p->counts.n_unasked++;
    }
    pthread_mutex_unlock(&p->lock);
    arena_free(a);
}

static void peer_report(struct mcp_peer *p, struct peer_call *c, struct json_value params)
{
    const struct mcp_call *call = c->call;

    peer_renew_quiet(p, c);
    if (!call->on_progress)
        return;
    c->n_reports++;
    pthread_mutex_unlock(&p->lock);
    call->on_progress(call->arg, json_double(json_get(params, "progress")), json_double(json_get(params, "total")),
                      json_cstr(json_get(params, "message")));
    pthread_mutex_lock(&p->lock);
    c->n_reports--;
    pthread_cond_broadcast(&c->changed);
}

static void peer_take_progress(struct mcp_peer *p, struct json_value params)
{
    const struct json_rpc_id token = json_rpc_id_from(json_get(params, "progressToken"));
    struct peer_call *c;

    pthread_mutex_lock(&p->lock);
    c = peer_find(p, &token);
    if (c && !c->is_done)
        peer_report(p, c, params);
    pthread_mutex_unlock(&p->lock);
}

static void peer_take_notification(struct mcp_peer *p, const struct json_rpc_frame *frame)
{
    const struct json_rpc_id id = json_rpc_id_from(json_get(frame->params, "requestId"));

    if (strcmp(frame->method, "notifications/progress") == 0)
        peer_take_progress(p, frame->params);
    else if (strcmp(frame->method, "notifications/cancelled") == 0)
        peer_cancel_request(p, &id);
    else
        p->on.on_notification(p->on.arg, frame);
}

/* What came in: `n_bytes` of text, in the answer of the call `within` (NULL: in none). */
struct peer_text {
    size_t n_bytes;
    const struct json_rpc_id *within;
};

/* Takes the arena, which holds the frame. */
static void peer_take_frame(struct mcp_peer *p, struct arena *a, const struct json_rpc_frame *frame,
                            const struct peer_text *text)
{
    if (frame->kind == JSON_RPC_REQUEST) {
        peer_take_request(p, a, frame, text->within);
    } else if (frame->kind == JSON_RPC_NOTIFICATION) {
        peer_take_notification(p, frame);
        arena_free(a);
    } else {
        peer_take_response(p, a, frame, text->n_bytes);
    }
}

static void peer_count(struct mcp_peer *p, uint64_t *counter)
{
    pthread_mutex_lock(&p->lock);
    (*counter)++;
    pthread_mutex_unlock(&p->lock);
}

/* Takes the arena. */
static void peer_take_value(struct mcp_peer *p, struct arena *a, struct json_value v, const struct peer_text *text)
{
    struct json_rpc_frame frame;

    peer_count(p, &p->counts.n_frames);
    if (json_rpc_read_value(v, &frame, NULL) == 0) {
        peer_take_frame(p, a, &frame, text);
        return;
    }
    peer_count(p, &p->counts.n_bad);
    arena_free(a);
}

/* Batches exist in 2025-03-26 and before. Each frame gets an arena of its own, because they end at different times. */
static void peer_take_batch(struct mcp_peer *p, struct json_value batch, const struct peer_text *text)
{
    struct json_iter it = json_iter(batch);
    struct json_value v;

    for (size_t n = 0; n < LIMIT_MCP_BATCH && json_next(&it, NULL, &v); n++) {
        struct arena *a = arena_new();
        struct json_value copy;

        if (json_copy(a, v, &copy, NULL) == 0)
            peer_take_value(p, a, copy, text);
        else
            arena_free(a);
    }
}

static void peer_on_frame(void *arg, struct slice text, const struct json_rpc_id *within)
{
    const struct peer_text came = { text.n, within };
    struct mcp_peer *p = arg;
    struct arena *a = arena_new();
    struct json_value v;

    if (text.n > LIMIT_MCP_FRAME || json_parse(a, text, &v, NULL) < 0) {
        peer_count(p, &p->counts.n_frames);
        peer_count(p, &p->counts.n_bad);
        arena_free(a);
    } else if (json_type(v) == JSON_ARRAY) {
        peer_take_batch(p, v, &came);
        arena_free(a);
    } else {
        peer_take_value(p, a, v, &came);
    }
}

static void peer_end_calls(struct mcp_peer *p)
{
    for (struct peer_call *c = p->calls; c; c = c->next) {
        atomic_store(&c->quiet_until_ms, 0);
        pthread_cond_broadcast(&c->changed);
    }
    peer_cancel_requests(p);
}

static void peer_on_gap(void *arg)
{
    struct mcp_peer *p = arg;

    p->on.on_gap(p->on.arg);
}

static void peer_on_closed(void *arg, const struct err *why)
{
    struct mcp_peer *p = arg;

    pthread_mutex_lock(&p->lock);
    p->is_closed = true;
    if (!*p->why)
        snprintf(p->why, sizeof(p->why), "%s", why->text);
    peer_end_calls(p);
    pthread_mutex_unlock(&p->lock);
    p->on.on_closed(p->on.arg, why);
}

/* ---- the whole ---- */

int mcp_peer_open(const struct mcp_peer_config *c, struct mcp_peer **ret, struct err *e)
{
    struct mcp_peer *p = xcalloc(1, sizeof(*p));
    const struct mcp_link_events on = {
        .on_frame = peer_on_frame, .on_gap = peer_on_gap, .on_closed = peer_on_closed, .arg = p
    };
    int r;

    p->link = c->link;
    p->link_name = c->link->ops->name;
    p->sends_at_once = c->link->ops->sends_at_once;
    p->pool = c->pool;
    p->on = c->on;
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->changed);
    peer_lanes_open(p);
    r = p->link->ops->start(p->link, &on, e);
    if (r < 0) {
        mcp_peer_close(p);
        mcp_peer_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

int mcp_peer_listen(struct mcp_peer *p, const char *version, struct err *e)
{
    return p->link->ops->listen ? p->link->ops->listen(p->link, version, e) : 0;
}

bool mcp_peer_is_open(struct mcp_peer *p)
{
    bool is_open;

    pthread_mutex_lock(&p->lock);
    is_open = !p->is_closing && !p->is_closed;
    pthread_mutex_unlock(&p->lock);
    return is_open;
}

void mcp_peer_counts(struct mcp_peer *p, struct mcp_counts *ret)
{
    pthread_mutex_lock(&p->lock);
    *ret = p->counts;
    pthread_mutex_unlock(&p->lock);
}

const char *mcp_peer_link_name(const struct mcp_peer *p)
{
    return p->link_name;
}

/* The link is freed by its close(), so nobody may be in its send() then: the second deadline ends their waits. */
void mcp_peer_close(struct mcp_peer *p)
{
    struct mcp_link *link;

    pthread_mutex_lock(&p->lock);
    p->is_closing = true;
    peer_end_calls(p);
    while (p->n_sending > 0)
        pthread_cond_wait(&p->changed, &p->lock);
    link = TAKE(p->link);
    pthread_mutex_unlock(&p->lock);
    if (link)
        link->ops->close(link);
    peer_lanes_close(p);
}

struct mcp_peer *mcp_peer_free(struct mcp_peer *p)
{
    if (!p)
        return NULL;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}
