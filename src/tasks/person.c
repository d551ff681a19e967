/* What a person decides (calendar and command line), and what an app's webhook triggers. */
#include "tasks/private.h"

static int refuse_not_waiting(const struct task_row *task, struct err *e)
{
    return err_set(e, -EALREADY, "TASK_NOT_WAITING", "The task does not wait for a person: it is %s.", task->status);
}

static int apply(struct tasks *t, const struct task_step *step, const struct task_row *task, struct err *e)
{
    bool has_changed;
    int r = store_tasks_apply(t->config.store, step, &has_changed, e);

    return r == 0 && !has_changed ? refuse_not_waiting(task, e) : r;
}

/* ---- trigger ---- */

int tasks_trigger(struct tasks *t, const struct task_trigger *in, struct task_ids *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row task;
    struct task_bundle bundle = { .task = &task, .delivery = in->delivery };
    bool is_new;
    int r;

    task_describe_trigger(a, in, &task);
    bundle.event = task_describe_event(a, &task, in->is_auto_run ? DISPATCH_WAITING : DISPATCH_REVIEW, in->ids ? in->ids->calendar_uuid : NULL);
    r = store_tasks_add(t->config.store, &bundle, &is_new, ret->task_uuid, e);
    if (r < 0)
        return r;
    snprintf(ret->calendar_uuid, sizeof(ret->calendar_uuid), "%s", bundle.event->uuid);
    task_tell(t, ret->task_uuid, TASK_PENDING, "triggered%s", in->is_auto_run ? "" : ", for a person to decide");
    if (in->is_auto_run)
        task_app_added(t, task_app_of(t, in->app_id));
    return 0;
}

/* ---- run now ---- */

struct choice { const char *agent_name, *workspace_slug, *thread_slug, *prompt; };

static bool is_waiting_for_person(const struct task_row *task)
{
    return strcmp(task->status, TASK_PENDING) == 0 && task->review && strcmp(task->review, REVIEW_WAITING) == 0;
}

/* What the person wrote into the calendar event. */
static int read_choice(struct tasks *t, struct arena *a, const struct task_row *task, struct choice *ret, struct err *e)
{
    struct calendar_row event;
    struct json_value metadata = { 0 };
    int r;

    if (!task->calendar_event_uuid)
        return 0;
    r = store_calendar_get(t->config.store, a, task->calendar_event_uuid, &event, e);
    if (r == 0)
        r = json_parse(a, slice_of(event.metadata), &metadata, e);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    *ret = (struct choice){
        .agent_name = json_cstr(json_get(metadata, "agent_name")),
        .workspace_slug = json_cstr(json_get(metadata, "workspace_slug")),
        .thread_slug = json_cstr(json_get(metadata, "thread_slug")),
        .prompt = json_cstr(json_get(metadata, "prompt")),
    };
    return 0;
}

static int choose_agent(const struct task_row *task, const char *asked, struct choice *c, struct err *e)
{
    if (asked && *asked)
        c->agent_name = asked;
    if (!c->agent_name || !*c->agent_name)
        c->agent_name = task->agent_name;
    if (!c->agent_name || !*c->agent_name)
        return err_add_field(e, "agent_name", "is required: no agent is named for this task");
    return 0;
}

int tasks_run_now(struct tasks *t, const char *task_uuid, const char *agent_name, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct choice c = { 0 };
    struct task_row task;
    int r = store_tasks_get(t->config.store, a, task_uuid, &task, e);

    if (r < 0)
        return r;
    if (!is_waiting_for_person(&task))
        return refuse_not_waiting(&task, e);
    r = read_choice(t, a, &task, &c, e);
    if (r == 0)
        r = choose_agent(&task, agent_name, &c, e);
    if (r < 0)
        return r;
    const struct task_step step = {
        .change = {
            .uuid = task.uuid, .if_status = TASK_PENDING, .review = REVIEW_APPROVED, .agent_name = c.agent_name,
            .workspace_slug = c.workspace_slug, .thread_slug = c.thread_slug, .prompt = c.prompt,
            .attempt = -1, .retry_count = -1, .is_quarantined = -1,
        },
        .dispatch_status = DISPATCH_WAITING,
    };
    r = apply(t, &step, &task, e);
    if (r < 0)
        return r;
    task_tell(t, task.uuid, TASK_PENDING, "approved by a person");
    task_app_added(t, task_app_of(t, task.source_app));
    return 0;
}

/* ---- reject ---- */

static int reject(struct tasks *t, struct arena *a, const char *task_uuid, const char *reason, struct err *e)
{
    struct task_row task;
    struct task_ref ref;
    int r = store_tasks_get(t->config.store, a, task_uuid, &task, e);

    if (r < 0)
        return r;
    if (strcmp(task.status, TASK_PENDING) != 0)
        return refuse_not_waiting(&task, e);
    ref = task_ref_of_task(&task);
    if (task.backend_table)
        r = task_take_row(t, a, &task, &ref, e);
    if (r < 0)
        return r;
    return task_settle_canceled(t, &ref, reason && *reason ? reason : "Rejected by a person.", REVIEW_REJECTED, e);
}

int tasks_reject(struct tasks *t, const char *task_uuid, const char *reason, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_run *run;
    struct task_row task;
    int r = store_tasks_get(t->config.store, a, task_uuid, &task, e);

    if (r < 0)
        return r;
    run = task_run_enter(t, &(struct task_run_key){ .app = task.source_app, .table = task.backend_table, .row_id = task.row_id,
                                                    .uuid = task.uuid });
    r = reject(t, a, task_uuid, reason, e);
    task_run_exit(t, run, false);
    return r;
}

/* ---- replay ---- */

static bool may_replay(const struct task_row *task)
{
    return strcmp(task->status, TASK_FAILED_STATUS) == 0 || strcmp(task->status, TASK_CANCELED_STATUS) == 0;
}

int tasks_replay(struct tasks *t, const char *task_uuid, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row task;
    bool is_review, has_changed;
    int r = store_tasks_get(t->config.store, a, task_uuid, &task, e);

    if (r < 0)
        return r;
    if (!may_replay(&task))
        return err_set(e, -EALREADY, "TASK_NOT_FAILED", "Only a failed or canceled task is run again; this one is %s.", task.status);
    if (task.backend_table)
        r = t->config.backend->ops->replay(t->config.backend, task.backend_table, task.row_id, e);
    if (r < 0)
        return r;
    is_review = task_needs_person(&task);
    const struct task_step step = {
        .change = {
            .uuid = task.uuid, .is_guarded = true, .if_attempt = task.attempt, .if_status = task.status, .clears_outcome = true,
            .status = TASK_PENDING, .review = is_review ? REVIEW_WAITING : NULL, .attempted_by = "[]",
            .attempt = -1, .retry_count = 0, .is_quarantined = 0,
        },
        .dispatch_status = is_review ? DISPATCH_REVIEW : DISPATCH_WAITING,
    };
    r = store_tasks_apply(t->config.store, &step, &has_changed, e);
    if (r < 0)
        return r;
    if (has_changed)                    /* else the row's event was faster and it is at work */
        task_tell(t, task.uuid, TASK_PENDING, "to be run again");
    task_app_added(t, task_app_of(t, task.source_app));
    return 0;
}
