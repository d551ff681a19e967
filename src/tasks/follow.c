#include "tasks/private.h"

enum { LOOKS = 3 };

bool task_needs_person(const struct task_row *task)
{
    return task->review ? strcmp(task->review, REVIEW_APPROVED) != 0 : !task->auto_run;
}

/* The next functions translate the row's state into our task's state. */
static void read_failed(struct tasks *t, const struct backend_row *row, struct task_step *step)
{
    bool has_tried, is_quarantined;

    is_quarantined = (int64_t)backend_count_machines(row->attempted_by, t->machine_id, &has_tried) >=
                     settings_int(t->config.settings, SETTING_TASKS_MAX_MACHINES);
    step->change.status = STATUS_FAILED;
    step->change.error = row->error_message;
    step->change.is_quarantined = is_quarantined;
    step->dispatch_status = is_quarantined ? DISPATCH_QUARANTINED : DISPATCH_FAILED;
}

static void read_pending(struct tasks *t, const struct backend_row *row, struct task_step *step)
{
    bool has_tried, is_quarantined;

    is_quarantined = (int64_t)backend_count_machines(row->attempted_by, t->machine_id, &has_tried) >=
                     settings_int(t->config.settings, SETTING_TASKS_MAX_MACHINES);
    if (is_quarantined) {
        read_failed(t, row, step);
        return;
    }
    step->change.status = has_tried ? STATUS_FAILED : STATUS_PENDING;
    step->change.error = has_tried ? "This machine has failed it; it waits for another one." : NULL;
    step->dispatch_status = has_tried ? DISPATCH_FAILED : DISPATCH_WAITING;
}

/* A report of progress makes the task "processing"; the row of that attempt still says "claimed". */
static const char *leased_status(const struct task_row *task, const struct backend_row *row)
{
    bool is_reported = strcmp(task->status, STATUS_PROCESSING) == 0 && task->attempt == row->attempt;

    return is_reported ? STATUS_PROCESSING : row->status;
}

static void read_leased(const struct task_row *task, const struct backend_row *row, struct task_step *step)
{
    step->change.status = leased_status(task, row);
    step->change.machine_id = row->locked_by;
    step->dispatch_status = DISPATCH_RUNNING;
}

static void read_completed(const struct backend_row *row, struct task_step *step)
{
    step->change.status = STATUS_COMPLETED;
    step->change.result = row->result;
    step->dispatch_status = DISPATCH_COMPLETED;
}

static void read_other(const struct backend_row *row, struct arena *a, struct task_step *step)
{
    bool is_canceled = strcmp(row->status, STATUS_CANCELED) == 0;

    step->change.status = STATUS_CANCELED;
    step->change.error =
        is_canceled ? row->error_message : arena_printf(a, "The row's status was set to \"%s\".", row->status);
    step->dispatch_status = DISPATCH_CANCELED;
}

static void read_row(struct tasks *t, const struct task_row *task, const struct backend_row *row, struct arena *a,
                     struct task_step *step)
{
    if (strcmp(row->status, STATUS_PENDING) == 0)
        read_pending(t, row, step);
    else if (strcmp(row->status, STATUS_FAILED) == 0)
        read_failed(t, row, step);
    else if (strcmp(row->status, STATUS_COMPLETED) == 0)
        read_completed(row, step);
    else if (status_is_leased(row->status))
        read_leased(task, row, step);
    else
        read_other(row, a, step);
}

/* Only a new beginning or another end of the row changes a task's end; a status of the app's own does not. */
static bool keeps_its_end(const struct task_row *task, const struct backend_row *row)
{
    bool is_end = strcmp(row->status, STATUS_COMPLETED) == 0 || strcmp(row->status, STATUS_FAILED) == 0;
    bool is_beginning =
        strcmp(row->status, STATUS_PENDING) == 0 || (status_is_leased(row->status) && row->attempt > task->attempt);

    return status_is_finished(task->status) && !is_end && !is_beginning;
}

bool task_is_at_work(struct tasks *t, const char *uuid)
{
    struct task_run *run = task_run_of_uuid(t, uuid);
    bool is;

    if (!run)
        return false;
    pthread_mutex_lock(&t->mutex);
    is = run->is_brief || (run->attempt > 0 && !run->is_settling);
    pthread_mutex_unlock(&t->mutex);
    task_run_unref(t, run);
    return is;
}

static bool says_the_same(const struct task_row *task, const struct task_change *c)
{
    bool is_same_machine = !c->machine_id || (task->machine_id && strcmp(task->machine_id, c->machine_id) == 0);

    return strcmp(task->status, c->status) == 0 && task->attempt >= c->attempt && is_same_machine &&
           task->is_quarantined == (c->is_quarantined == 1);
}

/* ---- attempts of other machines, as far as they are seen here ---- */

/* The last entry of attempted_by is the machine that failed last. */
static const char *last_machine(struct arena *a, const char *attempted_by)
{
    struct json_value list = { 0 }, item;
    const char *last = NULL;

    if (!attempted_by || json_parse(a, slice_of(attempted_by), &list, NULL) < 0)
        return NULL;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        last = json_cstr(item);
    return last;
}

static bool is_known_attempt(struct tasks *t, struct arena *a, const struct task_row *task, int64_t attempt)
{
    struct run_row *runs;
    size_t n;

    if (store_runs_list(t->config.store, a, task->uuid, &runs, &n, NULL) < 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (runs[i].attempt == attempt)
            return true;
    return false;
}

/* A run row for an attempt that ended elsewhere; NULL: none is missing. */
static const struct run_row *run_of_other(struct tasks *t, struct arena *a, const struct task_row *task,
                                          const struct backend_row *row, const struct task_step *step)
{
    bool is_failed = strcmp(row->status, STATUS_FAILED) == 0;
    bool is_seen_completion =
        strcmp(row->status, STATUS_COMPLETED) == 0 && status_is_leased(task->status) && task->attempt == row->attempt;
    struct run_row *run;

    if ((!is_failed && !is_seen_completion) || row->attempt == 0 || is_known_attempt(t, a, task, row->attempt))
        return NULL;
    run = ARENA_NEW(a, struct run_row);
    *run = (struct run_row){
        .agent_name = task->agent_name,
        .workspace_slug = task->workspace_slug,
        .thread_slug = task->thread_slug,
        .status = is_failed ? "failed" : "completed",
        .attempt = row->attempt,
        .error = step->change.error,
        .machine_id = is_failed ? last_machine(a, row->attempted_by) : task->machine_id,
    };
    return run;
}

/* The row ended work from outside, so the work's run ends too. NULL: no run is open, or the run goes on. */
static const struct run_change *end_of_open_run(struct tasks *t, struct arena *a, const struct task_row *task,
                                                const struct task_step *step)
{
    bool is_completed = strcmp(step->change.status, STATUS_COMPLETED) == 0;
    struct run_change *end = ARENA_NEW(a, struct run_change);

    *end = (struct run_change){
        .id = task_open_run(t, a, task),
        .status = is_completed ? "completed" : "failed",
        .error = is_completed         ? NULL
                 : step->change.error ? step->change.error
                                      : "The row was taken from it.",
    };
    return end->id && !status_is_leased(step->change.status) ? end : NULL;
}

/* Writes nothing when our task has that state already, or when a run of ours is at work: the run settles the task.
 * *ret_again: the task has changed since it was read, so nothing was written. */
static int follow(struct tasks *t, const struct task_row *task, struct task_step *step, bool *ret_again, struct err *e)
{
    bool is_news = !task_is_at_work(t, task->uuid), has_changed = false;
    int r = 0;

    if (strcmp(step->change.status, STATUS_PENDING) == 0 && task_needs_person(task)) {
        step->change.review = REVIEW_WAITING;
        step->dispatch_status = DISPATCH_REVIEW;
    }
    step->change.uuid = task->uuid;
    step->change.is_guarded = true;
    step->change.if_attempt = task->attempt;
    step->change.if_status = task->status;
    is_news = is_news && !says_the_same(task, &step->change);
    if (is_news)
        r = store_tasks_apply(t->config.store, step, &has_changed, e);
    *ret_again = is_news && !has_changed;
    if (has_changed)
        task_notify(t, task->uuid, step->change.status, "as its row says");
    return r;
}

/* *ret_again: nothing was written, because the task changed meanwhile, or because its attempt is newer than the row's
 * and the row is not `is_certain`. */
static int follow_row(struct tasks *t, const struct backend_row *row, bool is_certain, bool *ret_again, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_step step = { .change = { .clears_outcome = true,
                                          .attempt = row->attempt,
                                          .retry_count = row->retry_count,
                                          .attempted_by = row->attempted_by,
                                          .is_quarantined = 0 } };
    struct task_row task;
    int r = store_tasks_get_by_row(t->config.store, a, row->table, row->id, &task, e);

    if (r == -ENOENT)
        return 0;
    *ret_again = r == 0 && !is_certain && row->attempt < task.attempt;
    if (r < 0 || *ret_again || keeps_its_end(&task, row))
        return r;
    read_row(t, &task, row, a, &step);
    step.new_run = run_of_other(t, a, &task, row, &step);
    step.run = end_of_open_run(t, a, &task, &step);
    return follow(t, &task, &step, ret_again, e);
}

static int follow_gone(struct tasks *t, struct arena *a, const char *table, const char *row_id, bool *ret_again,
                       struct err *e)
{
    struct task_step step = { .change = { .status = STATUS_CANCELED,
                                          .error = "The row was deleted.",
                                          .attempt = -1,
                                          .retry_count = -1,
                                          .is_quarantined = 0 },
                              .dispatch_status = DISPATCH_CANCELED };
    struct task_row task;
    int r = store_tasks_get_by_row(t->config.store, a, table, row_id, &task, e);

    if (r == -ENOENT || (r == 0 && status_is_finished(task.status)))
        return 0;
    if (r < 0)
        return r;
    step.run = end_of_open_run(t, a, &task, &step);
    return follow(t, &task, &step, ret_again, e);
}

static int look(struct tasks *t, const char *table, const char *row_id, bool is_last, bool *ret_again, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    struct err why = { 0 };
    int r = backend_get(t->config.backend, table, row_id, NULL, a, &row, &why);

    *ret_again = false;
    if (r == -ENOENT)
        return follow_gone(t, a, table, row_id, ret_again, e);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    return follow_row(t, &row, is_last, ret_again, e);
}

/* The answer to a read may come after the events of what happened since. What the last look reads is believed, also an
 * attempt that somebody set back. */
int task_follow_now(struct tasks *t, const char *table, const char *row_id, struct err *e)
{
    bool again = true;
    int r = 0;

    for (int i = 1; r == 0 && again && i <= LOOKS; i++)
        r = look(t, table, row_id, i == LOOKS, &again, e);
    return r == 0 && again ? err_set(e, -EBUSY, "STORE_BUSY", "The task changes at the same time.") : r;
}

int task_follow(struct tasks *t, const struct backend_row *row, struct err *e)
{
    bool again = false;
    int r = follow_row(t, row, false, &again, e);

    return r == 0 && again ? task_follow_now(t, row->table, row->id, e) : r;
}
