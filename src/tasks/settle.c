/* Ends of attempts: first the backend's conditional update, then one transaction of the store. -ESTALE: the lease is
 * lost, nothing was written. -EALREADY: the backend accepted the end, but the store already holds another end of the
 * task. */
#include "tasks/private.h"

#include "base/log.h"

struct task_ref task_ref_of_run(struct tasks *t, const struct task_run *run)
{
    struct task_ref ref;

    pthread_mutex_lock(&t->mutex);
    ref = (struct task_ref){
        .uuid = run->uuid,
        .table = run->table,
        .row_id = run->row_id,
        .machine_id = t->machine_id,
        .attempt = run->attempt,
        .known_attempt = run->attempt,
        .run_id = run->id,
        .log = run->end.log,
    };
    pthread_mutex_unlock(&t->mutex);
    return ref;
}

struct task_ref task_ref_of_task(const struct task_row *task)
{
    return (struct task_ref){
        .uuid = task->uuid,
        .table = task->backend_table,
        .row_id = task->row_id,
        .machine_id = task->machine_id,
        .attempt = task->attempt,
        .known_attempt = task->attempt,
    };
}

struct backend_lease task_lease_of(const struct task_ref *ref)
{
    return (struct backend_lease){
        .table = ref->table, .row_id = ref->row_id, .machine_id = ref->machine_id, .attempt = ref->attempt
    };
}

/* ---- the store's side ---- */

struct settlement {
    const struct task_ref *ref;
    const char *status, *run_status, *dispatch_status;
    const char *result, *error, *run_error, *review, *attempted_by; /* run_error NULL: as error */
    int64_t retry_count;
    bool is_quarantined;
    bool is_forgotten; /* the run is removed too */
};

static int store_settlement(struct tasks *t, const struct settlement *s, struct err *e)
{
    const struct run_change run = {
        .id = s->ref->run_id,
        .status = s->run_status,
        .error = s->run_error ? s->run_error : s->error,
        .log = s->ref->log,
    };
    struct run_row outside = s->ref->outside ? *s->ref->outside : (struct run_row){ 0 };
    const struct task_step step = {
        .change = {
            .uuid = s->ref->uuid, .is_guarded = true, .if_attempt = s->ref->known_attempt, .if_unfinished = true,
            .status = s->status, .result = s->result, .error = s->error, .review = s->review, .attempted_by = s->attempted_by,
            .attempt = s->ref->attempt, .retry_count = s->retry_count, .is_quarantined = s->is_quarantined,
        },
        .run = run.id && !s->is_forgotten ? &run : NULL,
        .drop_run = s->is_forgotten ? run.id : 0,
        .new_run = s->ref->outside ? &outside : NULL,
        .dispatch_status = s->dispatch_status,
    };
    bool has_changed;
    int r;

    outside.status = run.status;
    outside.error = run.error;
    r = store_tasks_apply(t->config.store, &step, &has_changed, e);
    if (r < 0 || has_changed)
        return r;
    if (run.id)
        r = store_runs_update(t->config.store, &run, e);
    return r < 0 ? r : err_set(e, -EALREADY, "TASK_ALREADY_FINISHED", "The task has ended otherwise.");
}

/* ---- the ends ---- */

int task_settle_completed(struct tasks *t, const struct task_ref *ref, const char *result_json, struct err *e)
{
    const struct settlement s = {
        .ref = ref,
        .status = STATUS_COMPLETED,
        .run_status = "completed",
        .dispatch_status = DISPATCH_COMPLETED,
        .result = result_json ? result_json : "{}",
        .retry_count = -1,
    };
    const struct backend_lease lease = task_lease_of(ref);
    int r = ref->table ? backend_complete(t->config.backend, &lease, s.result, e) : 0;

    if (r == 0)
        r = store_settlement(t, &s, e);
    if (r == 0)
        task_notify(t, ref->uuid, s.status, "attempt %lld", (long long)ref->attempt);
    return r;
}

/* After the row has failed: reads which machines have tried it, and whether this was the last attempt. */
static int read_failed_row(struct tasks *t, struct settlement *s, struct arena *a, struct backend_row *row,
                           struct err *e)
{
    bool has_tried;
    int r = backend_get(t->config.backend, s->ref->table, s->ref->row_id, NULL, a, row, e);

    if (r < 0)
        return r;
    s->attempted_by = row->attempted_by;
    s->retry_count = row->retry_count;
    s->is_quarantined = (int64_t)backend_count_machines(row->attempted_by, t->machine_id, &has_tried) >=
                        settings_int(t->config.settings, SETTING_TASKS_MAX_MACHINES);
    s->dispatch_status = s->is_quarantined ? DISPATCH_QUARANTINED : DISPATCH_FAILED;
    return 0;
}

static int fail_row(struct tasks *t, struct settlement *s, struct arena *a, struct backend_row *row, struct err *e)
{
    const struct backend_lease lease = task_lease_of(s->ref);
    struct err why = { 0 };
    int r = backend_fail(t->config.backend, &lease, s->error, e);

    if (r == 0)
        r = read_failed_row(t, s, a, row, &why);
    if (r == -ENOENT && why.code[0]) {
        row->id = NULL; /* deleted just now: the attempt still counts as failed */
        return 0;
    }
    return r < 0 && why.code[0] ? err_set(e, r, why.code, "%s", why.text) : r;
}

int task_settle_failed(struct tasks *t, const struct task_ref *ref, const char *error, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct settlement s = {
        .ref = ref,
        .status = STATUS_FAILED,
        .run_status = "failed",
        .dispatch_status = DISPATCH_FAILED,
        .error = error && *error ? error : "The agent failed and did not say why.",
        .retry_count = -1,
    };
    struct backend_row row = { 0 };
    int r = ref->table ? fail_row(t, &s, a, &row, e) : 0;

    if (r == 0)
        r = store_settlement(t, &s, e);
    if (r == 0)
        task_notify(t, ref->uuid, s.status, "attempt %lld%s", (long long)ref->attempt,
                    s.is_quarantined ? ", quarantined" : "");
    if (r == 0 && row.id && !s.is_quarantined)
        task_retry_broadcast(t, &row, t->machine_id, NULL);
    return r;
}

/* The row's status is free text to its app; this status removes the row from every machine's work. The lease is checked
 * first. */
static int cancel_row(struct tasks *t, const struct task_ref *ref, const char *reason, struct err *e)
{
    const struct backend_patch patch = { .status = STATUS_CANCELED, .error_message = reason };
    const struct backend_update_request request = { .table = ref->table, .id = ref->row_id, .patch = &patch };
    const struct backend_lease lease = task_lease_of(ref);
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    int r = backend_heartbeat(t->config.backend, &lease, e);

    return r < 0 ? r : backend_update(t->config.backend, &request, a, &row, e);
}

int task_settle_canceled(struct tasks *t, const struct task_ref *ref, const char *reason, const char *review,
                         struct err *e)
{
    const struct settlement s = {
        .ref = ref,
        .status = STATUS_CANCELED,
        .run_status = "failed",
        .error = reason,
        .review = review,
        .retry_count = -1,
        .dispatch_status = review ? DISPATCH_REJECTED : DISPATCH_CANCELED,
    };
    int r = ref->table ? cancel_row(t, ref, reason, e) : 0;

    if (r == 0)
        r = store_settlement(t, &s, e);
    if (r == 0)
        task_notify(t, ref->uuid, s.status, "%s", review ? "rejected by a person" : "on request");
    return r;
}

static int release(struct tasks *t, const struct task_ref *ref, const char *why, bool is_forgotten, struct err *e)
{
    const struct settlement s = {
        .ref = ref,
        .status = STATUS_PENDING,
        .run_status = "failed",
        .run_error = why,
        .retry_count = -1,
        .dispatch_status = DISPATCH_WAITING,
        .is_forgotten = is_forgotten,
    };
    const struct backend_lease lease = task_lease_of(ref);
    int r = ref->table ? backend_release(t->config.backend, &lease, e) : 0;

    return r < 0 ? r : store_settlement(t, &s, e);
}

int task_settle_released(struct tasks *t, const struct task_ref *ref, const char *why, struct err *e)
{
    int r = release(t, ref, why, false, e);

    if (r == 0)
        task_notify(t, ref->uuid, STATUS_PENDING, "released");
    return r;
}

int task_settle_withdrawn(struct tasks *t, const struct task_ref *ref, struct err *e)
{
    int r = release(t, ref, NULL, true, e);

    if (r == 0)
        task_emit(t, ref->uuid, STATUS_PENDING);
    return r;
}

/* ---- an agent's end ---- */

static int settle_lost(struct tasks *t, const struct task_run *run, struct err *e)
{
    const struct run_change change = { .id = run->id, .status = "failed", .error = "lease lost", .log = run->end.log };
    int r = store_runs_update(t->config.store, &change, e);

    return r < 0 || !run->table ? r : task_follow_now(t, run->table, run->row_id, e);
}

static int settle_reported(struct tasks *t, const struct task_run *run, struct err *e)
{
    const struct run_change change = { .id = run->id, .log = run->end.log };

    return store_runs_update(t->config.store, &change, e);
}

/* A result that the backend can never accept is a failure; after other errors the end may be stored later. */
static int settle_success(struct tasks *t, const struct task_run *run, const struct task_ref *ref, struct err *e)
{
    struct err why = { 0 };
    int r = task_settle_completed(t, ref, run->end.result_json, &why);

    if (r == -EINVAL || r == -E2BIG || r == -EFBIG || r == -EMSGSIZE)
        return task_settle_failed(t, ref, why.text, e);
    return r < 0 ? err_set(e, r, why.code, "%s", why.text) : 0;
}

/* What the agent lacked is lacking on this machine now, and says nothing about the row. */
static int settle_crowded(struct tasks *t, const struct task_run *run, const struct task_ref *ref, struct err *e)
{
    int r = task_settle_withdrawn(t, ref, e);

    if (r == 0)
        log_info("tasks", NULL, "task %s waits again, its agent failed while no processes were left: %s", run->uuid,
                 LOG_Q(run->end.error));
    return r;
}

static int settle_end(struct tasks *t, struct task_run *run, enum task_fate fate, struct err *e)
{
    const struct task_ref ref = task_ref_of_run(t, run);

    if (fate == FATE_LEASE_LOST)
        return settle_lost(t, run, e);
    if (fate == FATE_SERVICE_STOPS && (run->end.was_stopped || !run->end.is_success))
        return task_settle_released(t, &ref, "The service stopped.", e);
    if (run->end.is_success)
        return settle_success(t, run, &ref, e);
    if (run->end.was_crowded && task_want_excuse(t, run))
        return settle_crowded(t, run, &ref, e);
    return task_settle_failed(t, &ref, run->end.error, e);
}

/* An end that cannot be stored now is tried again at the next heartbeat; until then the place stays taken. */
static void try_later(struct tasks *t, struct task_run *run, const struct err *e)
{
    log_warn("tasks", NULL, "the end of task %s is not stored yet: %s", run->uuid, LOG_Q(e->text));
    pthread_mutex_lock(&t->mutex);
    run->is_settling = false;
    pthread_mutex_unlock(&t->mutex);
}

void task_settle_run(void *arg)
{
    struct task_job *job = arg;
    struct tasks *t = job->tasks;
    struct task_run *run = job->run;
    struct err e = { 0 };
    enum task_fate fate;
    bool is_reported;
    int r;

    pthread_mutex_lock(&t->mutex);
    fate = run->fate;
    is_reported = run->is_reported;
    pthread_mutex_unlock(&t->mutex);
    r = is_reported ? settle_reported(t, run, &e) : settle_end(t, run, fate, &e);
    if (r == -ESTALE && fate != FATE_LEASE_LOST) {
        task_note_lost(t, run);
        r = settle_lost(t, run, &e);
    }
    if (r < 0 && r != -EALREADY && r != -ENOENT)
        try_later(t, run, &e);
    else
        task_run_leave(t, run);
    task_run_unref(t, run);
    free(job);
}
