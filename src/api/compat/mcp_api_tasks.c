/* Tasks as tools, and as the tasks of revision 2025-11-25: the id of such a task is the task's uuid. */
#include "api/compat/mcp_api_turn.h"
#include "api/resources/task_shapes.h"
#include "api/routes.h"
#include "api/trigger.h"
#include "base/clock.h"
#include "tasks/tasks.h"

enum { LOOK_US = 1000000, POLL_MS = 1000 };

#define RELATED_TASK "io.modelcontextprotocol/related-task"

#define RESULT_SHAPE                                                                                                   \
    SHAPE_STRING("task_uuid", .format = "uuid"), SHAPE_STRING("status"), SHAPE_BOOL("finished"),                       \
        SHAPE_ANY("result", .help = "what the agent answered, or null"),                                               \
        SHAPE_STRING("error", .flags = FIELD_NULLABLE)

const struct field mcp_api_result_answer[] = { RESULT_SHAPE, FIELD_END };
const struct field mcp_api_trigger_answer[] = { RESULT_SHAPE, FIELD_END };

/* ---- a task's row ---- */

static bool has_status(const struct task_row *row, const char *status)
{
    return row->status && strcmp(row->status, status) == 0;
}

bool mcp_api_task_is_final(const char *status)
{
    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 || strcmp(status, "canceled") == 0;
}

static bool is_final(const struct task_row *row)
{
    return row->status && mcp_api_task_is_final(row->status);
}

static void write_outcome(struct mcp_api_turn *t, const struct task_row *row, struct mcp_api_result *ret)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "task_uuid", row->uuid);
    json_add_string(&w, "status", row->status);
    json_add_bool(&w, "finished", is_final(row));
    json_add_raw(&w, "result", row->result);
    json_add_string(&w, "error", row->error);
    json_end(&w);
    ret->structured.n = out.n;
    ret->structured.p = buf_to_arena(&out, t->arena);
}

/* Reports the status at each change, and otherwise once a second. */
static void report_status(struct mcp_api_turn *t, const char *status, bool is_new, int64_t began_us)
{
    double waited_s = (double)(clock_mono_us() - began_us) / 1e6;

    if (is_new || waited_s >= t->progress + 1)
        mcp_api_progress(t, waited_s, 0, status);
}

/* Waits until the task ends, the time is over or the call is cancelled. */
static int wait_for_end(struct mcp_api_turn *t, const char *uuid, int64_t wait_s, struct task_row *ret, struct err *e)
{
    struct mcp_api *m = t->req->api->mcp_api;
    int64_t began_us = clock_mono_us(), until_us = began_us + wait_s * INT64_C(1000000);
    char status[32] = "";
    int r;

    mcp_api_running_expect(m, &t->running, uuid);
    for (;;) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct request look = *t->req;

        look.arena = a;
        r = task_of_caller(&look, uuid, ret, e);
        if (r < 0)
            return r;
        if (is_final(ret) || clock_mono_us() >= until_us || mcp_api_is_cancelled(t) ||
            atomic_load(&t->req->api->is_leaving))
            return task_of_caller(t->req, uuid, ret, e); /* into the turn's arena */
        report_status(t, ret->status, strcmp(status, ret->status) != 0, began_us);
        snprintf(status, sizeof(status), "%s", ret->status);
        mcp_api_running_wait(m, &t->running, MIN(until_us, clock_mono_us() + LOOK_US));
    }
}

/* ---- trigger_agent ---- */

static int start_task(struct mcp_api_turn *t, const struct trigger *in, const char **ret_uuid, struct err *e)
{
    static const struct mcp_api_route route = { webhook_routes, HTTP_POST, "/webhooks/{token}", NULL };
    struct json_value delivery = { 0 }, answer = { 0 };
    struct slice text = { 0 };
    int r = trigger_delivery(t->arena, in, &delivery, e);

    if (r == 0)
        r = mcp_api_call_route(t, &route, delivery, &text, e);
    if (r == 0)
        r = json_parse(t->arena, text, &answer, e);
    if (r == 0)
        *ret_uuid = json_cstr(json_get(answer, "task_uuid"));
    return r;
}

/* Reads the arguments and starts the task. */
static int trigger(struct mcp_api_turn *t, struct json_value arguments, struct trigger *ret, const char **ret_uuid,
                   struct err *e)
{
    int r = trigger_read(t->arena, arguments, ret, e);

    return r < 0 ? r : start_task(t, ret, ret_uuid, e);
}

int mcp_api_trigger(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                    struct mcp_api_result *ret, struct err *e)
{
    struct trigger in = { 0 };
    struct task_row row = { 0 };
    const char *uuid = NULL;
    int r = trigger(t, arguments, &in, &uuid, e);

    if (r == 0)
        r = wait_for_end(t, uuid, in.wait_s, &row, e);
    if (r == 0)
        write_outcome(t, &row, ret);
    return r;
}

int mcp_api_task_result(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                        struct mcp_api_result *ret, struct err *e)
{
    const char *uuid = json_cstr(json_get(arguments, "uuid"));
    struct task_row row = { 0 };
    int r;

    if (!uuid)
        return err_add_field(e, "uuid", "is required: a string");
    r = identity_require(t->req->api->identity, t->req->caller, PERM_TASK, e);
    if (r == 0)
        r = task_of_caller(t->req, uuid, &row, e);
    if (r == 0)
        write_outcome(t, &row, ret);
    return r;
}

/* ---- tasks of 2025-11-25 ---- */

const char *mcp_api_task_status(const char *status, const char *review)
{
    if (strcmp(status, "canceled") == 0)
        return "cancelled";
    if (mcp_api_task_is_final(status))
        return status;
    return review && strcmp(review, "waiting") == 0 ? "input_required" : "working";
}

void mcp_api_write_task(struct json_writer *w, const struct mcp_api_task *task)
{
    json_add_string(w, "taskId", task->uuid);
    json_add_string(w, "status", task->status);
    if (task->error)
        json_add_string(w, "statusMessage", task->error);
    json_add_string(w, "createdAt", task->created_at);
    json_add_string(w, "lastUpdatedAt", task->updated_at);
    json_add_null(w, "ttl"); /* a task stays until it is removed with the others of its age */
    json_add_int(w, "pollInterval", POLL_MS);
}

static void write_members(struct json_writer *w, const struct task_row *row)
{
    mcp_api_write_task(w, &(struct mcp_api_task){ .uuid = row->uuid,
                                                  .status =
                                                      mcp_api_task_status(row->status ? row->status : "", row->review),
                                                  .error = row->error,
                                                  .created_at = row->created_at,
                                                  .updated_at = row->updated_at });
}

int mcp_api_trigger_as_task(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    struct trigger in = { 0 };
    struct task_row row = { 0 };
    const char *uuid = NULL;
    int r = trigger(t, arguments, &in, &uuid, e);

    if (r == 0)
        r = task_of_caller(t->req, uuid, &row, e);
    if (r == 0) { /* a change before this line is in the answer, a later one is told */
        mcp_api_session_watch_task(t->req->api->mcp_api, t->session_id, uuid, row.created_at);
        r = task_of_caller(t->req, uuid, &row, e);
    }
    if (r < 0) {
        t->code = r == -EINVAL ? JSON_RPC_INVALID_PARAMS : MCP_API_REFUSED;
        return r;
    }
    json_begin_object_as(w, "task");
    write_members(w, &row);
    json_end(w);
    return 0;
}

/* The task that params.taskId names, if the caller has the permission. */
static int find_task(struct mcp_api_turn *t, const char *permission, struct task_row *ret, struct err *e)
{
    const char *uuid = json_cstr(json_get(t->frame->params, "taskId"));
    int r;

    if (!uuid)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`taskId` must be the id of a task");
    r = identity_require(t->req->api->identity, t->req->caller, permission, e);
    if (r == 0)
        r = task_of_caller(t->req, uuid, ret, e);
    if (r < 0)
        t->code = r == -ENOENT ? JSON_RPC_INVALID_PARAMS : MCP_API_REFUSED;
    return r;
}

int mcp_api_get_task(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    struct task_row row = { 0 };
    int r = find_task(t, PERM_TASK, &row, e);

    if (r == 0)
        write_members(w, &row);
    return r;
}

static int write_task_end(struct mcp_api_turn *t, const struct task_row *row, struct json_writer *w, struct err *e)
{
    struct mcp_api_result result = { 0 };
    int r;

    write_outcome(t, row, &result);
    r = mcp_api_write_result(t, w, &result, e);
    if (!has_status(row, "completed"))
        json_add_bool(w, "isError", true);
    json_begin_object_as(w, "_meta");
    json_begin_object_as(w, RELATED_TASK);
    json_add_string(w, "taskId", row->uuid);
    json_end(w);
    json_end(w);
    return r;
}

int mcp_api_get_task_result(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    struct task_row row = { 0 };
    int r = find_task(t, PERM_TASK, &row, e);

    if (r == 0)
        r = wait_for_end(t, row.uuid, LIMIT_MCP_WAIT_S, &row, e);
    if (r < 0)
        return r;
    if (!is_final(&row))
        return mcp_api_refuse(t, MCP_API_REFUSED, e, "The task has not ended yet; ask again.");
    return write_task_end(t, &row, w, e);
}

int mcp_api_cancel_task(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    struct task_row row = { 0 };
    int r = find_task(t, PERM_WEBHOOK_TRIGGER, &row, e);

    if (r < 0)
        return r;
    if (is_final(&row))
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "The task has ended already: %s", row.status);
    r = tasks_cancel(t->req->api->tasks, row.uuid, "cancelled by an MCP client", e);
    if (r == 0)
        r = task_of_caller(t->req, row.uuid, &row, e);
    if (r == 0)
        write_members(w, &row);
    return r;
}

int mcp_api_list_tasks(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    int64_t offset = 0;
    struct task_row *rows = NULL;
    size_t n = 0;
    int r = mcp_api_read_cursor(t, &offset, e);

    if (r == 0)
        r = identity_require(t->req->api->identity, t->req->caller, PERM_TASK, e);
    if (r == 0)
        r = mcp_api_tasks_page(t, offset, LIMIT_MCP_PAGE + 1, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(w, "tasks");
    for (size_t i = 0; i < MIN(n, (size_t)LIMIT_MCP_PAGE); i++) {
        json_begin_object(w);
        write_members(w, &rows[i]);
        json_end(w);
    }
    json_end(w);
    mcp_api_add_next(t, w, offset, n);
    return 0;
}
