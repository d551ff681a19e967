/* Decisions of a person (calendar and command line), and tasks that an app's webhook triggers. */
#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

/* The state of a task and what can be done with it, for a person whose request does not fit that state. */
static const struct {
    const char *status;
    bool is_for_person;
    const char *text;
} states[] = {
    { STATUS_PENDING, true,
      "The task waits for a person: `hearth task run UUID` starts it, `hearth task reject UUID` ends it." },
    { STATUS_PENDING, false,
      "The task waits for a place of its app and starts by itself; `hearth task reject UUID` ends it." },
    { STATUS_CLAIMED, false, "The task is being worked on; `hearth task cancel UUID` stops it." },
    { STATUS_PROCESSING, false, "The task is being worked on; `hearth task cancel UUID` stops it." },
    { STATUS_COMPLETED, false, "The task is completed: nothing is left to do." },
    { STATUS_FAILED, false, "The task has failed; `hearth task replay UUID` does it again." },
    { STATUS_CANCELED, false, "The task was canceled; `hearth task replay UUID` does it again." },
};

static bool is_waiting_for_person(const struct task_row *task)
{
    return strcmp(task->status, STATUS_PENDING) == 0 && task->review && strcmp(task->review, REVIEW_WAITING) == 0;
}

int task_refuse_state(const struct task_row *task, const char *code, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i].status, task->status) == 0 && states[i].is_for_person == is_waiting_for_person(task))
            return err_set(e, -EALREADY, code, "%s", states[i].text);
    return err_set(e, -EALREADY, code, "The task is %s.", task->status);
}

static int refuse_not_waiting(const struct task_row *task, struct err *e)
{
    return task_refuse_state(task, "TASK_NOT_WAITING", e);
}

/* Checked before anything changes: a mistyped name must not cost the task an attempt. */
static int check_agent(struct tasks *t, const char *name, struct err *e)
{
    const struct task_runner *runner = &t->config.runner;

    return name && *name && runner->check ? runner->check(runner->arg, name, e) : 0;
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
    bundle.event = task_describe_event(a, &task, in->is_auto_run ? DISPATCH_WAITING : DISPATCH_REVIEW,
                                       in->ids ? in->ids->calendar_uuid : NULL);
    r = store_tasks_add(t->config.store, &bundle, &is_new, ret->task_uuid, e);
    if (r < 0)
        return r;
    snprintf(ret->calendar_uuid, sizeof(ret->calendar_uuid), "%s", bundle.event->uuid);
    task_notify(t, ret->task_uuid, STATUS_PENDING, "triggered%s", in->is_auto_run ? "" : ", for a person to decide");
    if (in->is_auto_run)
        task_app_added(t, task_app_of(t, in->app_id));
    return 0;
}

/* ---- run now ---- */

struct choice {
    const char *agent_name, *workspace_slug, *thread_slug, *prompt;
};

/* The person's choices in the calendar event. */
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

static int choose_agent(const struct task_row *task, const char *requested, struct choice *c, struct err *e)
{
    if (requested && *requested)
        c->agent_name = requested;
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
    if (r == 0)
        r = check_agent(t, c.agent_name, e);
    if (r < 0)
        return r;
    const struct task_step step = {
        .change = {
            .uuid = task.uuid, .if_status = STATUS_PENDING, .review = REVIEW_APPROVED, .agent_name = c.agent_name,
            .workspace_slug = c.workspace_slug, .thread_slug = c.thread_slug, .prompt = c.prompt,
            .attempt = -1, .retry_count = -1, .is_quarantined = -1,
        },
        .dispatch_status = DISPATCH_WAITING,
    };
    r = apply(t, &step, &task, e);
    if (r < 0)
        return r;
    task_notify(t, task.uuid, STATUS_PENDING, "approved by a person");
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
    if (strcmp(task.status, STATUS_PENDING) != 0)
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
    run = task_run_enter(
        t, &(struct task_run_key){
               .app = task.source_app, .table = task.backend_table, .row_id = task.row_id, .uuid = task.uuid });
    r = reject(t, a, task_uuid, reason, e);
    task_run_exit(t, run, false);
    return r;
}

/* ---- replay ---- */

static bool may_replay(const struct task_row *task)
{
    return strcmp(task->status, STATUS_FAILED) == 0 || strcmp(task->status, STATUS_CANCELED) == 0;
}

/* The row first: work on a deleted row cannot be repeated. */
static int replay_row(struct tasks *t, const struct task_row *task, struct err *e)
{
    int r = task->backend_table
                ? t->config.backend->ops->replay(t->config.backend, task->backend_table, task->row_id, e)
                : 0;

    return r == -ENOENT ? err_set(e, r, "NOT_FOUND", "The row of this task was deleted, so nothing can be done again.")
                        : r;
}

static int replay(struct tasks *t, const struct task_row *task, const char *agent_name, struct err *e)
{
    bool is_review = task_needs_person(task), has_changed = false;
    const struct task_step step = {
        .change = {
            .uuid = task->uuid, .is_guarded = true, .if_attempt = task->attempt, .if_status = task->status, .clears_outcome = true,
            .status = STATUS_PENDING, .review = is_review ? REVIEW_WAITING : NULL, .attempted_by = "[]", .agent_name = agent_name,
            .attempt = -1, .retry_count = 0, .is_quarantined = 0,
        },
        .dispatch_status = is_review ? DISPATCH_REVIEW : DISPATCH_WAITING,
    };
    int r;

    if (!may_replay(task))
        return task_refuse_state(task, "TASK_NOT_FAILED", e);
    r = agent_name || !is_review ? check_agent(t, agent_name ? agent_name : task->agent_name, e) : 0;
    if (r == 0)
        r = replay_row(t, task, e);
    if (r == 0)
        r = store_tasks_apply(t->config.store, &step, &has_changed, e);
    if (r < 0)
        return r;
    if (has_changed) /* else the row's event came first and the task is at work */
        task_notify(t, task->uuid, STATUS_PENDING, "to be run again");
    task_app_added(t, task_app_of(t, task->source_app));
    return 0;
}

int tasks_replay(struct tasks *t, const char *task_uuid, const char *agent_name, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row task;
    int r = store_tasks_get(t->config.store, a, task_uuid, &task, e);

    return r < 0 ? r : replay(t, &task, agent_name && *agent_name ? agent_name : NULL, e);
}

/* ---- several tasks in one request ---- */

/* An action on one task of a list. */
typedef int each_task(struct tasks *t, const struct task_row *task, const char *why, struct err *e);

/* Tasks that stay unchanged, for a reason that is logged, are skipped on the next page. */
static int act_on_page(struct tasks *t, struct task_filter *filter, each_task *act, const char *why,
                       struct task_sum *sum, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row *tasks;
    size_t n = 0;
    int r = store_tasks_list(t->config.store, a, filter, &tasks, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct err reported = { 0 };
        bool is_done = act(t, &tasks[i], why, &reported) == 0;

        sum->n_done += is_done;
        sum->n_left += !is_done;
        filter->offset += !is_done;
        if (!is_done)
            log_info("tasks", NULL, "task %s stays as it is: %s", tasks[i].uuid, LOG_Q(reported.text));
    }
    return r < 0 ? r : n == LIMIT_LIST;
}

static int act_on_all(struct tasks *t, struct task_filter *filter, each_task *act, const char *why,
                      struct task_sum *ret, struct err *e)
{
    int r;

    *ret = (struct task_sum){ 0 };
    filter->limit = LIMIT_LIST;
    while ((r = act_on_page(t, filter, act, why, ret, e)) > 0)
        ;
    return r;
}

static int replay_one(struct tasks *t, const struct task_row *task, const char *why, struct err *e)
{
    return replay(t, task, NULL, e);
}

int tasks_replay_all(struct tasks *t, const char *app_id, const char *status, struct task_sum *ret, struct err *e)
{
    struct task_filter filter = { .status = status, .source_app = app_id };

    return act_on_all(t, &filter, replay_one, NULL, ret, e);
}

static int reject_one(struct tasks *t, const struct task_row *task, const char *why, struct err *e)
{
    return tasks_reject(t, task->uuid, why, e);
}

int tasks_reject_app(struct tasks *t, const char *app_id, const char *reason, struct task_sum *ret, struct err *e)
{
    struct task_filter filter = { .status = STATUS_PENDING, .source_app = app_id };

    return act_on_all(t, &filter, reject_one, reason, ret, e);
}
