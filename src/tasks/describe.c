#include "tasks/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/tables/workspaces.h"

static char *new_uuid(struct arena *a)
{
    char *uuid = arena_alloc(a, UUID_SIZE);

    uuid_v4(uuid);
    return uuid;
}

static char *title_of(struct arena *a, const char *display_name)
{
    return arena_printf(a, "[%s] New Activity", display_name);
}

/* ---- the calendar ---- */

static char *describe_metadata(struct arena *a, const struct task_row *task, const char *dispatch_status)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "source_app", task->source_app);
    json_add_string(&w, "source_app_name", task->source_app_name);
    json_add_string(&w, "task_uuid", task->uuid);
    json_add_string(&w, "action_type", task->action_type);
    json_add_string(&w, "table_name", task->backend_table);
    json_add_string(&w, "row_id", task->row_id);
    json_add_string(&w, "agent_name", task->agent_name);
    json_add_string(&w, "workspace_slug", task->workspace_slug);
    json_add_string(&w, "thread_slug", task->thread_slug);
    json_add_string(&w, "prompt", task->prompt);
    json_add_string(&w, "dispatch_status", dispatch_status);
    json_end(&w);
    return buf_to_arena(&out, a);
}

struct calendar_row *task_describe_event(struct arena *a, const struct task_row *task, const char *dispatch_status,
                                         const char *uuid)
{
    struct calendar_row *event = ARENA_NEW(a, struct calendar_row);
    char *now = arena_alloc(a, TIME_TEXT_SIZE);

    clock_now_text(now);
    event->uuid = uuid ? uuid : new_uuid(a);
    event->title = task->title;
    event->description = task->backend_table ? arena_printf(a, "%s on %s", task->action_type, task->backend_table)
                                             : "Triggered by webhook";
    event->start_date = now;
    event->metadata = describe_metadata(a, task, dispatch_status);
    return event;
}

/* ---- tasks ---- */

/* The workspace for the runs of an app's row events when the handler names none: one thread per app. */
#define DEFAULT_WORKSPACE "default"

static int make_thread(struct tasks *t, const struct task_listener *l, int64_t workspace_id, const char *slug)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *name = l->display_name && *l->display_name ? l->display_name : l->app_name;
    const struct thread_row thread = {
        .workspace_id = workspace_id, .slug = slug, .name = arena_printf(a, "Tasks of %s", name), .owner = l->app_id
    };

    return store_threads_insert(t->config.store, &thread, NULL, NULL);
}

/* NULL when the workspace does not exist or is full of threads: the task is done anyway. */
static const char *thread_of(struct tasks *t, struct arena *a, const struct task_match *m, const char *workspace_slug)
{
    const char *slug = arena_printf(a, "tasks-%s", m->listener->app_id);
    struct workspace_row workspace = { .id = 0 };
    struct thread_row thread;
    int r;

    if (m->handler && m->handler->thread_slug)
        return arena_strdup(a, m->handler->thread_slug);
    r = store_workspaces_get(t->config.store, a, workspace_slug, &workspace, NULL);
    if (r == 0)
        r = store_threads_get(t->config.store, a, workspace.id, slug, &thread, NULL);
    if (r == -ENOENT && workspace.id)
        r = make_thread(t, m->listener, workspace.id, slug);
    return r == 0 || r == -EEXIST ? slug : NULL;
}

void task_describe_row(struct tasks *t, struct arena *a, const struct task_match *m, const struct backend_row *row,
                       struct task_row *ret)
{
    const struct task_listener *l = m->listener;
    const struct task_handler *handler = m->handler;
    const char *display_name = l->display_name && *l->display_name ? l->display_name : l->app_name;
    const char *workspace_slug =
        handler && handler->workspace_slug ? arena_strdup(a, handler->workspace_slug) : DEFAULT_WORKSPACE;

    *ret = (struct task_row){
        .uuid = new_uuid(a),
        .title = title_of(a, display_name),
        .action_type = backend_op_name(m->op),
        .source_app = arena_strdup(a, l->app_id),
        .source_app_name = arena_strdup(a, display_name),
        .backend_table = arena_strdup(a, row->table),
        .row_id = arena_strdup(a, row->id),
        .agent_name = handler ? arena_strdup(a, handler->agent_name) : NULL,
        .workspace_slug = workspace_slug,
        .thread_slug = thread_of(t, a, m, workspace_slug),
        .prompt = handler ? arena_strdup(a, handler->prompt) : NULL,
        .raw_data = arena_strdup(a, row->raw_data),
        .old_data = arena_strdup(a, row->old_data),
        .auto_run = !m->is_review,
        .review = m->is_review ? REVIEW_WAITING : NULL,
        .attempted_by = arena_strdup(a, row->attempted_by),
        .retry_count = row->retry_count,
    };
}

void task_describe_trigger(struct arena *a, const struct task_trigger *in, struct task_row *ret)
{
    *ret = (struct task_row){
        .uuid = in->ids ? in->ids->task_uuid : new_uuid(a),
        .title = title_of(a, in->app_name && *in->app_name ? in->app_name : "Developer"),
        .action_type = "SDK_TRIGGER",
        .trigger_depth = in->depth,
        .source_app = in->app_id,
        .source_app_name = in->app_name,
        .agent_name = in->agent_name,
        .workspace_slug = in->workspace_slug,
        .thread_slug = in->thread_slug,
        .prompt = in->prompt,
        .raw_data = in->raw_data,
        .auto_run = in->is_auto_run,
        .review = in->is_auto_run ? NULL : REVIEW_WAITING,
    };
}

/* ---- the agent's input ---- */

static void add_row(struct json_writer *w, const struct backend_row *row)
{
    json_add_string(w, "id", row->id);
    json_add_string(w, "status", row->status);
    json_add_string(w, "user_id", row->user_id);
    json_add_string(w, "created_at", row->created_at);
    json_add_int(w, "retry_count", row->retry_count);
}

char *task_describe_activity(struct arena *a, const struct task_row *task, const struct backend_row *row)
{
    const char *table = row && row->source_table ? row->source_table : task->backend_table;
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    if (row)
        add_row(&w, row);
    else
        json_add_string(&w, "id", task->uuid);
    json_add_string(&w, "task_uuid", task->uuid);
    json_add_string(&w, "table_name", table);
    json_add_string(&w, "event", task->action_type);
    json_add_int(&w, "attempt", task->attempt);
    json_add_string(&w, "app_id", row && row->app_id ? row->app_id : task->source_app);
    json_add_string(&w, "app_name", task->source_app_name);
    json_add_string(&w, "workspace_slug", task->workspace_slug);
    json_add_string(&w, "thread_slug", task->thread_slug);
    json_add_string(&w, "prompt", task->prompt);
    json_add_raw(&w, "raw_data", task->raw_data);
    json_add_raw(&w, "old_data", task->old_data);
    json_end(&w);
    return buf_to_arena(&out, a);
}
