/* Tools that run as tasks (2025-11-25, "Tasks"): asked for until they have ended. */
#include "mcp/client_private.h"

#include "base/clock.h"
#include "base/cond.h"

#include <string.h>

enum { TASK_POLL_MS = 1000, TASK_POLL_LEAST_MS = 50, TASK_LOOK_MS = 50, TASK_CANCEL_MS = 500 };

static void add_task_id(const void *arg, struct json_writer *w)
{
    json_add_string(w, "taskId", arg);
}

/* A result stands ready, or the server wants to ask: in both cases tasks/result is called, which waits. */
static bool is_due(struct slice status)
{
    static const char *const words[] = { "completed", "failed", "cancelled", "input_required" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (slice_eq_str(status, words[i]))
            return true;
    return false;
}

static int64_t poll_ms_of(struct json_value task)
{
    struct json_value v = json_get(task, "pollInterval");
    int64_t ms = json_type(v) == JSON_INT ? json_int(v) : TASK_POLL_MS;

    return MIN(MAX(ms, (int64_t)TASK_POLL_LEAST_MS), (int64_t)LIMIT_MCP_TASK_POLL_MS);
}

/* Until the next question is due, or the server says that something has changed. */
static int pause_task(struct mcp_client *c, const struct mcp_call *call, int64_t ms, struct err *e)
{
    const int64_t until_us = clock_mono_us() + ms * 1000;
    int64_t left_ms = 1, now_us;
    uint64_t news;

    pthread_mutex_lock(&c->lock);
    news = c->n_task_news;
    while (left_ms > 0 && news == c->n_task_news && !c->is_closed && (now_us = clock_mono_us()) < until_us) {
        left_ms = net_wait_left(call->wait, e);
        if (left_ms > 0)
            cond_wait_until(&c->changed, &c->lock, MIN(until_us, now_us + TASK_LOOK_MS * 1000));
    }
    pthread_mutex_unlock(&c->lock);
    return left_ms < 0 ? (int)left_ms : 0;
}

static void cancel_task(struct mcp_client *c, const char *id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(TASK_CANCEL_MS, NULL, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait };
    const struct client_request q = { "tasks/cancel", NULL, add_task_id, id };
    struct json_value result = { 0 };

    if (mcp_client_send(c, &call, &q, &result, NULL, NULL, NULL) < 0)
        return; /* the task ends at its ttl */
}

/* Each answer in an arena of its own: a task may be asked for very often. */
static int poll_task(struct mcp_client *c, const struct mcp_call *call, const char *id, bool *ret_is_due,
                     int64_t *ret_pause_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct client_request q = { "tasks/get", NULL, add_task_id, id };
    struct mcp_call part = *call;
    struct json_value task;
    int r;

    part.arena = a;
    r = mcp_client_send(c, &part, &q, &task, NULL, NULL, e);
    if (r < 0)
        return r;
    *ret_is_due = is_due(json_string(json_get(task, "status")));
    *ret_pause_ms = poll_ms_of(task);
    return 0;
}

static int await_task(struct mcp_client *c, const struct mcp_call *call, const char *id, struct json_value task,
                      struct err *e)
{
    bool due = is_due(json_string(json_get(task, "status")));
    int64_t pause_ms = poll_ms_of(task);
    int r = 0;

    while (r == 0 && !due) {
        r = pause_task(c, call, pause_ms, e);
        if (r == 0)
            r = poll_task(c, call, id, &due, &pause_ms, e);
    }
    return r;
}

int client_finish_task(struct mcp_client *c, const struct mcp_call *call, struct json_value task,
                       struct json_value *ret, struct json_rpc_error *ret_error, struct err *e)
{
    const char *id = json_cstr(json_get(task, "taskId"));
    const struct client_request q = { "tasks/result", NULL, add_task_id, id };
    int r;

    if (!id || !*id)
        return client_bad_answer("tools/call", "task.taskId", e);
    r = await_task(c, call, id, task, e);
    if (r == 0)
        r = mcp_client_send(c, call, &q, ret, ret_error, NULL, e);
    if (r == -ETIMEDOUT || r == -ECANCELED)
        cancel_task(c, id);
    if (r == -ETIMEDOUT)
        return err_set(e, r, "MCP_TIMEOUT", "The MCP server did not end its task in time.");
    return r;
}
