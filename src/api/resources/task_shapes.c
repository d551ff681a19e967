#include "api/resources/task_shapes.h"

#include "api/api.h"

/* clang-format off */
#define LISTED_MEMBERS \
    SHAPE_STRING("uuid", .format = "uuid"), \
    SHAPE_STRING("title"), \
    SHAPE_STRING("status", .help = "pending, claimed, processing, completed, failed, canceled"), \
    SHAPE_STRING("action_type", .help = "SDK_TRIGGER, INSERT, UPDATE, DELETE"), \
    SHAPE_STRING("source_app", .flags = FIELD_NULLABLE), \
    SHAPE_STRING("sourceAppName", .flags = FIELD_NULLABLE), \
    SHAPE_STRING("agent_name", .flags = FIELD_NULLABLE), \
    SHAPE_STRING("table_name", .flags = FIELD_NULLABLE, .help = "where the row stands; null for a webhook's task"), \
    SHAPE_STRING("row_id", .flags = FIELD_NULLABLE), \
    SHAPE_STRING("machine_id", .flags = FIELD_NULLABLE), \
    SHAPE_INT("attempt"), \
    SHAPE_STRINGS("attempted_by"), \
    SHAPE_INT("retry_count"), \
    SHAPE_BOOL("quarantined", .help = "too many machines failed it; a person has to look"), \
    SHAPE_STRING("review", .flags = FIELD_NULLABLE, .help = "waiting, approved or rejected when a person decides"), \
    SHAPE_STRING("waits_for", .flags = FIELD_NULLABLE, .help = "of a pending task: person, or place (a free one of its app)"), \
    SHAPE_STRING("calendar_event_uuid", .flags = FIELD_NULLABLE), \
    SHAPE_STRING("error", .flags = FIELD_NULLABLE), \
    SHAPE_TIME("created_at"), \
    SHAPE_TIME("updated_at"), \
    SHAPE_TIME("completed_at", .flags = FIELD_NULLABLE)
/* clang-format on */

const struct field listed_task_shape[] = { LISTED_MEMBERS, FIELD_END };
const struct field task_shape[] = { LISTED_MEMBERS, SHAPE_ANY("result"), FIELD_END };

const struct field run_shape[] = {
    SHAPE_INT("id"),
    SHAPE_STRING("agent_name", .flags = FIELD_NULLABLE),
    SHAPE_STRING("workspace_slug", .flags = FIELD_NULLABLE),
    SHAPE_STRING("thread_slug", .flags = FIELD_NULLABLE),
    SHAPE_STRING("status", .help = "pending, running, completed, failed"),
    SHAPE_TIME("started_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("completed_at", .flags = FIELD_NULLABLE),
    SHAPE_STRING("error", .flags = FIELD_NULLABLE),
    SHAPE_INT("attempt"),
    SHAPE_STRING("machine_id", .flags = FIELD_NULLABLE),
    SHAPE_INT("pid", .flags = FIELD_NULLABLE, .help = "of the agent process while it runs"),
    FIELD_END,
};

const struct field task_run_fields[] = {
    FIELD_STRING(struct task_run_body, agent_name, "agent_name", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "who does it, when the task names nobody"),
    FIELD_END,
};

const struct field task_reject_fields[] = {
    FIELD_STRING(struct task_reject_body, reason, "reason", .max = LIMIT_TEXT_CHARS, .def_str = "rejected by a person"),
    FIELD_END,
};

const struct field task_cancel_fields[] = {
    FIELD_STRING(struct task_reject_body, reason, "reason", .max = LIMIT_TEXT_CHARS,
                 .help = "kept as the error of task and row"),
    FIELD_END,
};

static const char *waits_for(const struct task_row *row)
{
    if (strcmp(row->status, "pending") != 0)
        return NULL;
    return row->review && strcmp(row->review, "waiting") == 0 ? "person" : "place";
}

static void write_members(struct json_writer *w, const struct task_row *row)
{
    json_add_string(w, "uuid", row->uuid);
    json_add_string(w, "title", row->title);
    json_add_string(w, "status", row->status);
    json_add_string(w, "action_type", row->action_type);
    json_add_string(w, "source_app", row->source_app);
    json_add_string(w, "sourceAppName", row->source_app_name);
    json_add_string(w, "agent_name", row->agent_name);
    json_add_string(w, "table_name", row->backend_table);
    json_add_string(w, "row_id", row->row_id);
    json_add_string(w, "machine_id", row->machine_id);
    json_add_int(w, "attempt", row->attempt);
    json_add_raw(w, "attempted_by", row->attempted_by);
    json_add_int(w, "retry_count", row->retry_count);
    json_add_bool(w, "quarantined", row->is_quarantined);
    json_add_string(w, "review", row->review);
    json_add_string(w, "waits_for", waits_for(row));
    json_add_string(w, "calendar_event_uuid", row->calendar_event_uuid);
    json_add_string(w, "error", row->error);
    json_add_string(w, "created_at", row->created_at);
    json_add_string(w, "updated_at", row->updated_at);
    json_add_string(w, "completed_at", row->completed_at);
}

void write_listed_task(struct json_writer *w, const struct task_row *row)
{
    json_begin_object(w);
    write_members(w, row);
    json_end(w);
}

void write_task(struct json_writer *w, const char *name, const struct task_row *row)
{
    json_begin_object_as(w, name);
    write_members(w, row);
    json_add_raw(w, "result", row->result);
    json_end(w);
}

static void write_pid(struct json_writer *w, const struct run_row *row)
{
    if (row->pid && strcmp(row->status, "running") == 0)
        json_add_int(w, "pid", row->pid);
    else
        json_add_null(w, "pid");
}

static void write_run(struct json_writer *w, const struct run_row *row)
{
    json_begin_object(w);
    json_add_int(w, "id", row->id);
    json_add_string(w, "agent_name", row->agent_name);
    json_add_string(w, "workspace_slug", row->workspace_slug);
    json_add_string(w, "thread_slug", row->thread_slug);
    json_add_string(w, "status", row->status);
    json_add_string(w, "started_at", row->started_at);
    json_add_string(w, "completed_at", row->completed_at);
    json_add_string(w, "error", row->error);
    json_add_int(w, "attempt", row->attempt);
    json_add_string(w, "machine_id", row->machine_id);
    write_pid(w, row);
    json_end(w);
}

void write_runs(struct json_writer *w, const char *name, const struct run_row *rows, size_t n)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++)
        write_run(w, &rows[i]);
    json_end(w);
}

int task_of_caller(struct request *req, const char *uuid, struct task_row *ret, struct err *e)
{
    const struct caller *caller = req->caller;
    bool sees_all = caller->kind == CALLER_ADMIN || caller->kind == CALLER_KEY;
    struct task_row row;
    int r;

    r = store_tasks_get(req->api->store, req->arena, uuid, &row, e);
    if (r < 0)
        return r;
    if (!sees_all && (!row.source_app || strcmp(row.source_app, caller->app_id) != 0))
        return err_set(e, -ENOENT, "TASK_NOT_FOUND", "There is no task %.60s.", uuid);
    *ret = row;
    return 0;
}
