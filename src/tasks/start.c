/* Starts an agent in a reserved place: claim, one transaction of the store, start. */
#include "tasks/private.h"

#include "base/clock.h"
#include "base/log.h"

struct task_start *task_start_new(struct tasks *t, struct task_run *run)
{
    struct task_start *s = xcalloc(1, sizeof(*s));

    s->tasks = t;
    s->run = run;
    s->arena = arena_new();
    return s;
}

static void start_free(struct task_start *s)
{
    task_run_unref(s->tasks, s->run);
    arena_free(s->arena);
    free(s);
}

/* ---- the claim ---- */

static bool is_stopping(struct tasks *t)
{
    bool is;

    pthread_mutex_lock(&t->mutex);
    is = t->is_stopping;
    pthread_mutex_unlock(&t->mutex);
    return is;
}

/* A waiting task may have been canceled or finished since it was chosen. */
static int load_waiting(struct task_start *s, struct err *e)
{
    int r;

    if (s->task.uuid)
        return 0;
    s->is_stored = true;
    r = store_tasks_get(s->tasks->config.store, s->arena, s->run->uuid, &s->task, e);
    if (r == 0 && strcmp(s->task.status, STATUS_PENDING) != 0)
        return err_set(e, -EALREADY, "TASK_NOT_WAITING", "The task does not wait any more.");
    return r;
}

static int claim_row(struct task_start *s, struct err *e)
{
    struct backend *b = s->tasks->config.backend;
    const struct backend_claim claim = task_claim_of(s->tasks, s->run->table, s->run->row_id);
    struct backend_lease lease;
    int r = backend_claim(b, &claim, s->arena, &s->row, &lease, e);

    if (r < 0)
        return r;
    s->known_attempt = s->task.attempt;
    s->task.attempt = lease.attempt;
    s->task.raw_data = s->row.raw_data;
    if (s->row.old_data) /* an app's own table does not keep it: the event had it */
        s->task.old_data = s->row.old_data;
    s->task.attempted_by = s->row.attempted_by;
    s->task.retry_count = s->row.retry_count;
    return 0;
}

static void count_attempt(struct task_start *s)
{
    s->known_attempt = s->task.attempt;
    s->task.attempt++;
}

/* ---- the transaction ---- */

static struct run_row describe_run(const struct task_start *s)
{
    return (struct run_row){
        .agent_name = s->task.agent_name,
        .workspace_slug = s->task.workspace_slug,
        .thread_slug = s->task.thread_slug,
        .status = "running",
        .attempt = s->task.attempt,
        .machine_id = s->tasks->machine_id,
    };
}

static int add_task(struct task_start *s, int64_t *ret_run_id, bool *ret_is_new, struct err *e)
{
    const struct run_row run = describe_run(s);
    const struct task_bundle bundle = {
        .task = &s->task,
        .run = &run,
        .ret_run_id = ret_run_id,
        .event = task_describe_event(s->arena, &s->task, DISPATCH_RUNNING, NULL),
    };
    char *uuid = arena_alloc(s->arena, UUID_SIZE);
    int r;

    s->task.status = STATUS_CLAIMED;
    s->task.machine_id = s->tasks->machine_id;
    r = store_tasks_add(s->tasks->config.store, &bundle, ret_is_new, uuid, e);
    s->task.uuid = uuid;
    return r;
}

/* Guarded only where the store decides: the lease of a row was won already. */
static int take_up_task(struct task_start *s, int64_t *ret_run_id, struct err *e)
{
    const struct run_row run = describe_run(s);
    const struct task_step step = {
        .change = {
            .uuid = s->task.uuid, .clears_outcome = true, .status = STATUS_CLAIMED, .machine_id = s->tasks->machine_id,
            .is_guarded = !s->run->table, .if_attempt = s->known_attempt, .if_status = s->run->table ? NULL : STATUS_PENDING,
            .attempt = s->task.attempt, .attempted_by = s->task.attempted_by, .retry_count = s->task.retry_count,
            .is_quarantined = 0, .raw_data = s->task.raw_data, .old_data = s->task.old_data,
            .action_type = s->task.action_type, .agent_name = s->task.agent_name,
            .workspace_slug = s->task.workspace_slug, .prompt = s->task.prompt,
        },
        .new_run = &run,
        .ret_run_id = ret_run_id,
        .dispatch_status = DISPATCH_RUNNING,
    };
    bool has_changed;
    int r = store_tasks_apply(s->tasks->config.store, &step, &has_changed, e);

    if (r == 0 && !has_changed)
        return err_set(e, -EALREADY, "TASK_NOT_WAITING", "The task does not wait any more.");
    return r;
}

static int store_claim(struct task_start *s, struct err *e)
{
    bool is_new = false;
    int64_t run_id = 0;
    int r = 0;

    if (!s->is_stored)
        r = add_task(s, &run_id, &is_new, e);
    if (r == 0 && !is_new)
        r = take_up_task(s, &run_id, e);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->tasks->mutex);
    if (!s->run->uuid[0])
        snprintf(s->run->uuid, sizeof(s->run->uuid), "%s", s->task.uuid);
    s->run->attempt = s->task.attempt;
    s->run->id = run_id;
    pthread_cond_broadcast(&s->tasks->has_changed);
    pthread_mutex_unlock(&s->tasks->mutex);
    if (s->run->needs_app_lock) /* the next lock may be requested */
        coalesced_job_request(&task_app_of(s->tasks, s->run->app)->dispatch);
    metric_add(s->tasks->meters.claims, 1);
    if (s->run->is_probe)
        task_emit(s->tasks, s->task.uuid, STATUS_CLAIMED);
    else
        task_notify(s->tasks, s->task.uuid, STATUS_CLAIMED, "attempt %lld by agent %s", (long long)s->task.attempt,
                    LOG_Q(s->task.agent_name));
    return 0;
}

/* A claim that could not be stored must leave nothing in the backend. */
static void give_row_back(struct task_start *s)
{
    const struct backend_lease lease = { s->run->table, s->run->row_id, s->tasks->machine_id, s->task.attempt };
    struct err e = { 0 };

    if (s->run->table && backend_release(s->tasks->config.backend, &lease, &e) < 0)
        log_warn("tasks", NULL, "row %s cannot be released: %s", LOG_Q(s->run->row_id), LOG_Q(e.text));
}

static int take(struct task_start *s, struct err *e)
{
    int r = is_stopping(s->tasks) ? err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.")
                                  : load_waiting(s, e);

    if (r < 0)
        return r;
    if (!s->run->table)
        count_attempt(s);
    else if ((r = claim_row(s, e)) < 0)
        return r;
    r = store_claim(s, e);
    if (r < 0)
        give_row_back(s);
    return r;
}

/* ---- the agent ---- */

static int run_agent(struct task_start *s, struct err *e)
{
    const struct task_runner *runner = &s->tasks->config.runner;
    const struct task_run_order order = {
        .task_uuid = s->task.uuid,
        .agent_name = s->task.agent_name,
        .workspace_slug = s->task.workspace_slug,
        .thread_slug = s->task.thread_slug,
        .prompt = s->task.prompt,
        .table_name = s->row.source_table ? s->row.source_table : s->run->table,
        .activity_json = task_describe_activity(s->arena, &s->task, s->run->table ? &s->row : NULL),
        .machine_id = s->tasks->machine_id,
        .app_id = s->task.source_app,
        .app_name = s->task.source_app_name,
        .attempt = s->task.attempt,
    };
    void *handle = NULL;
    pid_t pid = 0;
    int r;

    if (!order.agent_name)
        return err_set(e, -ENOENT, "AGENT_NOT_FOUND", "No agent is named for this task.");
    r = runner->start(runner->arg, s->run->id, &order, &handle, &pid, e);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->tasks->mutex);
    s->run->handle = handle;
    s->tasks->n_agents_started++;
    pthread_mutex_unlock(&s->tasks->mutex);
    s->pid = pid;
    return 0;
}

/* The agent may have ended, or been asked to stop, while it was being started. */
static void note_started(struct task_start *s)
{
    struct tasks *t = s->tasks;
    const struct run_change change = { .id = s->run->id, .pid = s->pid };
    struct err e = { 0 };
    bool has_to_stop;

    task_want_end(t);
    if (s->run->seen_us)
        metric_observe(t->meters.event_to_start, (double)(clock_mono_us() - s->run->seen_us) / 1e6);
    pthread_mutex_lock(&t->mutex);
    has_to_stop = s->run->fate != FATE_NONE;
    pthread_mutex_unlock(&t->mutex);
    if (has_to_stop)
        task_run_stop(t, s->run, FATE_NONE);
    if (store_runs_update(t->config.store, &change, &e) < 0)
        log_warn("tasks", NULL, "the process of task %s is not noted: %s", s->task.uuid, LOG_Q(e.text));
    pthread_mutex_lock(&t->mutex);
    s->run->is_started = true;
    pthread_mutex_unlock(&t->mutex);
    if (t->config.runner.waits && t->config.runner.waits(t->config.runner.arg, s->run->handle))
        tasks_waits_changed(t); /* it asked while it was being started */
    task_run_advance(t, s->run);
}

/* A lack of resources is no failure of the attempt; every other error is a failure of this machine. */
static void note_not_started(struct task_start *s, int r, const struct err *why)
{
    const struct task_ref ref = task_ref_of_run(s->tasks, s->run);
    struct err e = { 0 };

    pthread_mutex_lock(&s->tasks->mutex);
    s->run->is_settling = true;
    pthread_mutex_unlock(&s->tasks->mutex);
    if (task_is_want(r, why))
        task_want_note(s->tasks, why->text);
    if (task_is_want(r, why) || is_stopping(s->tasks))
        r = task_settle_withdrawn(s->tasks, &ref, &e);
    else
        r = task_settle_failed(s->tasks, &ref, why->text, &e);
    if (r < 0 && r != -ESTALE && r != -EALREADY)
        log_warn("tasks", NULL, "the end of task %s is not stored: %s", s->task.uuid, LOG_Q(e.text));
    task_run_leave(s->tasks, s->run);
}

/* A row with invalid content may say that it waits and still not be claimable. Its task must not be tried forever: the
 * task ends, and a change of the row starts it anew. */
static int give_up_task(struct task_start *s, int r_claim, const struct err *why, struct err *e)
{
    const struct task_step step = {
        .change = {
            .uuid = s->task.uuid, .is_guarded = true, .if_attempt = s->task.attempt, .if_status = STATUS_PENDING, .status = STATUS_FAILED,
            .error = why->text, .attempt = -1, .retry_count = -1, .is_quarantined = r_claim == -EDQUOT,
        },
        .dispatch_status = DISPATCH_FAILED,
    };
    bool has_changed = false;
    int r = s->is_stored && s->task.uuid ? store_tasks_apply(s->tasks->config.store, &step, &has_changed, e) : 0;

    if (has_changed)
        task_notify(s->tasks, s->task.uuid, STATUS_FAILED, "its row cannot be taken: %s", LOG_Q(why->text));
    return r;
}

/* The row is held by another machine, or deleted: our task, if there is one, follows the row. */
static void note_not_taken(struct task_start *s, int r, const struct err *why)
{
    bool is_of_row = r == -EBUSY || r == -EPERM || r == -EDQUOT || r == -ENOENT || r == -EINVAL ||
                     (r == -EEXIST && strcmp(why->code, "STORE_ERROR") == 0);
    struct err e = { 0 };
    int r_claim = r;

    if (is_of_row && s->run->table)
        r = task_follow_now(s->tasks, s->run->table, s->run->row_id, &e);
    else
        e = *why;
    if (r == 0)
        r = give_up_task(s, r_claim, why, &e);
    if (r == 0 || r == -EALREADY || r == -ECANCELED) {
        task_run_leave(s->tasks, s->run);
        return;
    }
    if (task_is_want(r, &e))
        task_want_note(s->tasks, e.text);
    else
        log_warn("tasks", NULL, "work of app %s cannot be taken up: %s", LOG_Q(s->run->app), LOG_Q(e.text));
    if (r == -EHOSTUNREACH || r == -EPROTO || r == -EIO)
        task_away_note(s->tasks);
    task_run_leave_quietly(s->tasks, s->run); /* the sweep tries again */
}

static void start_job(void *arg)
{
    struct task_start *s = arg;
    struct err e = { 0 };
    int r = take(s, &e);

    if (r < 0) {
        note_not_taken(s, r, &e);
    } else {
        r = run_agent(s, &e);
        if (r < 0)
            note_not_started(s, r, &e);
        else
            note_started(s);
    }
    start_free(s);
}

void task_start_submit(struct task_start *s)
{
    if (task_submit(s->tasks, start_job, s))
        return;
    task_run_leave_quietly(s->tasks, s->run);
    start_free(s);
}
