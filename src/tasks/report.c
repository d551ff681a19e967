#include "tasks/private.h"

struct report {
    struct tasks *t;
    struct arena *arena;
    const char *uuid;
    enum task_report what;
    const char *machine_id, *result_json, *error;
    int64_t attempt; /* 0: not named */
    bool is_person;  /* a person cancels the task, also work of another machine */
    struct task_row task;
    struct task_run *run; /* brief: none of our agents is working on the task */
};

static const char *const ends[] = {
    [TASK_COMPLETED] = STATUS_COMPLETED,
    [TASK_FAILED] = STATUS_FAILED,
    [TASK_CANCELED] = STATUS_CANCELED,
};

static bool is_end(enum task_report what)
{
    return what == TASK_COMPLETED || what == TASK_FAILED || what == TASK_CANCELED;
}

static const char *status_of(struct report *rp)
{
    if (is_end(rp->what))
        return ends[rp->what];
    if (rp->what == TASK_CLAIMED && status_is_leased(rp->task.status))
        return strcmp(rp->task.status, STATUS_PROCESSING) == 0 ? STATUS_PROCESSING : STATUS_CLAIMED;
    return rp->what == TASK_CLAIMED ? STATUS_CLAIMED : STATUS_PROCESSING;
}

static int refuse_lost(struct report *rp, struct err *e)
{
    return err_set(e, -ESTALE, "LEASE_LOST", "This machine does not hold task %s in that attempt any more.", rp->uuid);
}

/* A repeated report of the same end succeeds; another end, or a start, changes nothing. */
static int answer_finished(struct report *rp, const char *status, struct err *e)
{
    if (is_end(rp->what) && strcmp(ends[rp->what], status) == 0)
        return 0;
    if (rp->is_person)
        return task_refuse_state(&rp->task, "TASK_ALREADY_FINISHED", e);
    return err_set(e, -EALREADY, "TASK_ALREADY_FINISHED", "The task is %s already; nothing was changed.", status);
}

static int read_task(struct report *rp, struct err *e)
{
    return store_tasks_get(rp->t->config.store, rp->arena, rp->uuid, &rp->task, e);
}

/* ---- the lease that a report writes through ---- */

int task_take_row(struct tasks *t, struct arena *a, const struct task_row *task, struct task_ref *ret, struct err *e)
{
    const struct backend_claim claim = task_claim_of(t, task->backend_table, task->row_id);
    struct backend_row row;
    struct backend_lease lease;
    int r = backend_claim(t->config.backend, &claim, a, &row, &lease, e);

    if (r < 0)
        return r;
    *ret = task_ref_of_task(task);
    ret->machine_id = t->machine_id;
    ret->attempt = lease.attempt;
    return 0;
}

/* The lease of another machine, for a person who cancels that machine's work. */
static int find_holder(struct report *rp, struct task_ref *ret, struct err *e)
{
    struct backend_row row;
    int r = backend_get(rp->t->config.backend, ret->table, ret->row_id, NULL, rp->arena, &row, e);

    if (r < 0)
        return r;
    if (!status_is_leased(row.status) || !row.locked_by)
        return refuse_lost(rp, e);
    ret->machine_id = row.locked_by;
    ret->attempt = row.attempt;
    return 0;
}

static int find_lease(struct report *rp, struct task_ref *ret, struct err *e)
{
    const struct task_row *task = &rp->task;
    bool is_waiting = strcmp(task->status, STATUS_PENDING) == 0;

    if (!task->backend_table) {
        ret->attempt += is_waiting && rp->what != TASK_CANCELED;
        return 0;
    }
    if (is_waiting)
        return task_take_row(rp->t, rp->arena, task, ret, e);
    if (task->machine_id && strcmp(task->machine_id, rp->t->machine_id) == 0)
        return 0;
    return rp->is_person ? find_holder(rp, ret, e) : refuse_lost(rp, e);
}

static struct run_row *describe_outside(struct report *rp, const struct task_ref *ref)
{
    struct run_row *run = ARENA_NEW(rp->arena, struct run_row);

    *run = (struct run_row){
        .status = "running",
        .attempt = ref->attempt,
        .machine_id = rp->machine_id && *rp->machine_id ? rp->machine_id : rp->t->machine_id,
        .agent_name = rp->task.agent_name,
        .workspace_slug = rp->task.workspace_slug,
        .thread_slug = rp->task.thread_slug,
    };
    return run;
}

/* A waiting task may be worked on from outside: its row is claimed for that work, and the work gets a run. */
static int find_ref(struct report *rp, struct task_ref *ret, struct err *e)
{
    int r;

    *ret = task_ref_of_run(rp->t, rp->run);
    if (ret->attempt)
        return 0;
    *ret = task_ref_of_task(&rp->task);
    r = find_lease(rp, ret, e);
    if (r < 0)
        return r;
    ret->run_id = task_open_run(rp->t, rp->arena, &rp->task);
    if (!ret->run_id && rp->what != TASK_CANCELED)
        ret->outside = describe_outside(rp, ret);
    return 0;
}

/* ---- progress ---- */

static int store_progress(struct report *rp, const struct task_ref *ref, const char *status, struct err *e)
{
    const struct task_step step = {
        .change = {
            .uuid = rp->uuid, .is_guarded = true, .if_attempt = ref->known_attempt, .if_unfinished = true, .status = status,
            .machine_id = ref->table ? ref->machine_id : rp->task.machine_id ? NULL : rp->machine_id,
            .attempt = ref->attempt, .retry_count = -1, .is_quarantined = -1,
        },
        .new_run = ref->outside,
        .dispatch_status = DISPATCH_RUNNING,
    };
    bool has_changed;
    int r = store_tasks_apply(rp->t->config.store, &step, &has_changed, e);

    if (r == 0 && !has_changed)
        return refuse_lost(rp, e);
    if (r == 0 && strcmp(status, rp->task.status) != 0)
        task_notify(rp->t, rp->uuid, status, "as reported");
    return r;
}

/* Work from outside keeps its lease by its own reports; our agents keep theirs by the heartbeat. */
static int report_progress(struct report *rp, struct err *e)
{
    bool was_leased = status_is_leased(rp->task.status);
    struct backend_lease lease;
    struct task_ref ref;
    int r = find_ref(rp, &ref, e);

    if (r < 0)
        return r;
    lease = task_lease_of(&ref);
    if (ref.table && was_leased && rp->run->is_brief)
        r = backend_heartbeat(rp->t->config.backend, &lease, e);
    return r < 0 ? r : store_progress(rp, &ref, status_of(rp), e);
}

/* ---- ends ---- */

/* Judges by the row itself when the store does not know the end yet. */
static int judge_lost(struct report *rp, const struct task_ref *ref, struct err *e)
{
    struct backend_row row;

    if (!ref->table || backend_get(rp->t->config.backend, ref->table, ref->row_id, NULL, rp->arena, &row, NULL) < 0)
        return refuse_lost(rp, e);
    if (row.attempt == ref->attempt && status_is_finished(row.status))
        return answer_finished(rp, row.status, e);
    return refuse_lost(rp, e);
}

static int settle(struct report *rp, const struct task_ref *ref, struct err *e)
{
    if (rp->what == TASK_COMPLETED)
        return task_settle_completed(rp->t, ref, rp->result_json, e);
    if (rp->what == TASK_FAILED)
        return task_settle_failed(rp->t, ref, rp->error && *rp->error ? rp->error : "The agent reported a failure.", e);
    return task_settle_canceled(rp->t, ref, rp->error && *rp->error ? rp->error : "Canceled on request.", NULL, e);
}

static int report_end(struct report *rp, struct err *e)
{
    struct err why = { 0 };
    struct task_ref ref;
    int r = find_ref(rp, &ref, e);

    if (r < 0)
        return r;
    r = settle(rp, &ref, &why);
    if (r == 0)
        return 0;
    if (r != -ESTALE && r != -EALREADY)
        return err_set(e, r, why.code, "%s", why.text);
    r = read_task(rp, e);
    if (r < 0)
        return r;
    return status_is_finished(rp->task.status) ? answer_finished(rp, rp->task.status, e) : judge_lost(rp, &ref, e);
}

/* ---- a report ---- */

static int act(struct report *rp, struct err *e)
{
    int r = read_task(rp, e);

    if (r < 0)
        return r;
    if (rp->attempt && (rp->attempt != rp->task.attempt || strcmp(rp->task.status, STATUS_PENDING) == 0))
        return refuse_lost(rp, e);
    if (status_is_finished(rp->task.status))
        return answer_finished(rp, rp->task.status, e);
    return is_end(rp->what) ? report_end(rp, e) : report_progress(rp, e);
}

/* While a report is being handled, the end of the agent's process waits: the report counts, not the exit. */
static int handle(struct report *rp, struct err *e)
{
    struct tasks *t = rp->t;
    int r = read_task(rp, e);

    if (r < 0)
        return r;
    rp->run = task_run_enter(t, &(struct task_run_key){ .app = rp->task.source_app,
                                                        .table = rp->task.backend_table,
                                                        .row_id = rp->task.row_id,
                                                        .uuid = rp->task.uuid });
    r = act(rp, e);
    if (rp->what == TASK_CANCELED && r == 0)
        task_run_stop(t, rp->run, FATE_CANCELED);
    task_run_exit(t, rp->run, r == 0 && is_end(rp->what));
    if (r == -ESTALE)
        coalesced_job_request(&t->heartbeat); /* stops an agent without a lease */
    return r;
}

int tasks_report(struct tasks *t, const struct tasks_report_request *request, const char **ret_status, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct report rp = {
        .t = t,
        .arena = a,
        .uuid = request->uuid,
        .what = request->what,
        .machine_id = request->machine_id,
        .result_json = request->result_json,
        .error = request->error,
        .attempt = request->attempt,
    };
    int r = handle(&rp, e);

    if (r == 0)
        *ret_status = status_of(&rp);
    return r;
}

int tasks_cancel(struct tasks *t, const char *uuid, const char *reason, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct report rp = {
        .t = t,
        .arena = a,
        .uuid = uuid,
        .what = TASK_CANCELED,
        .error = reason && *reason ? reason : "Canceled by a person.",
        .is_person = true,
    };

    return handle(&rp, e);
}
