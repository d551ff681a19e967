/* A run that waits for a person keeps its lease and its place; its calendar event says "waiting" until it goes on. */
#include "tasks/private.h"

#include "base/log.h"

static int store_wait(struct tasks *t, const struct task_ref *ref, bool is_waiting, struct err *e)
{
    const struct task_step step = {
        .change = {
            .uuid = ref->uuid, .is_guarded = true, .if_attempt = ref->attempt, .if_unfinished = true,
            .attempt = -1, .retry_count = -1, .is_quarantined = -1,
        },
        .dispatch_status = is_waiting ? DISPATCH_WAITING : DISPATCH_RUNNING,
    };
    bool has_changed;

    return store_tasks_apply(t->config.store, &step, &has_changed, e);
}

static void note_wait(struct tasks *t, struct task_run *run)
{
    const struct task_runner *runner = &t->config.runner;
    const struct task_ref ref = task_ref_of_run(t, run);
    struct err e = { 0 };
    bool was_waiting, is_waiting;
    void *handle;

    pthread_mutex_lock(&t->mutex);
    handle = run->has_ended ? NULL : run->handle;
    was_waiting = run->is_waiting;
    pthread_mutex_unlock(&t->mutex);
    is_waiting = handle && runner->waits(runner->arg, handle);
    if (!handle || is_waiting == was_waiting)
        return;
    if (store_wait(t, &ref, is_waiting, &e) < 0) {
        log_warn("tasks", NULL, "the calendar does not show that task %s waits: %s", ref.uuid, LOG_Q(e.text));
        return;
    }
    pthread_mutex_lock(&t->mutex);
    run->is_waiting = is_waiting;
    pthread_mutex_unlock(&t->mutex);
    task_emit(t, ref.uuid, STATUS_CLAIMED);
}

void task_waits_run(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    for (size_t i = 0; i < n; i++) {
        note_wait(t, runs[i]);
        task_run_unref(t, runs[i]);
    }
}

void tasks_waits_changed(struct tasks *t)
{
    if (t->config.runner.waits)
        coalesced_job_request(&t->waits);
}
