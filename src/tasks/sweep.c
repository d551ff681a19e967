/* The heartbeat of running leases, and the sweep: events are hints, the sweep is authoritative. */
#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

/* ---- heartbeat ---- */

void task_note_lost(struct tasks *t, struct task_run *run)
{
    metric_add(t->meters.leases_lost, 1);
    log_info("tasks", NULL, "task %s lost its lease in attempt %lld", run->uuid, (long long)run->attempt);
}

static bool needs_heartbeat(struct tasks *t, const struct task_run *run)
{
    bool needs;

    pthread_mutex_lock(&t->mutex);
    needs =
        run->table && run->id && run->fate == FATE_NONE && !run->is_settling && !run->is_reported && !run->has_ended;
    pthread_mutex_unlock(&t->mutex);
    return needs;
}

static void beat(struct tasks *t, struct task_run *run)
{
    const struct task_ref ref = task_ref_of_run(t, run);
    const struct backend_lease lease = task_lease_of(&ref);
    struct err e = { 0 };
    int r = backend_heartbeat(t->config.backend, &lease, &e);

    if (r == -ESTALE && needs_heartbeat(t, run)) { /* the run has not just finished */
        task_note_lost(t, run);
        task_run_stop(t, run, FATE_LEASE_LOST);
    } else if (r < 0 && r != -ESTALE) {
        log_warn("tasks", NULL, "no heartbeat for task %s: %s", run->uuid, LOG_Q(e.text));
    }
}

void task_heartbeat_run(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    for (size_t i = 0; i < n; i++) {
        if (needs_heartbeat(t, runs[i]))
            beat(t, runs[i]);
        task_run_advance(t, runs[i]); /* settles an end that could not be stored before */
        task_run_unref(t, runs[i]);
    }
}

/* ---- sweep ---- */

static int recover_stale(struct tasks *t, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_rows rows = { 0 };
    int r = t->config.backend->ops->recover_stale(
        t->config.backend, table, settings_ms(t->config.settings, SETTING_TASKS_STALE_AFTER_S), a, &rows, e);

    for (size_t i = 0; r == 0 && i < rows.n; i++) {
        log_info("tasks", NULL, "row %s of %s had a stale lease and is free again", LOG_Q(rows.items[i].id), table);
        task_retry_broadcast(t, &rows.items[i], t->machine_id, "stale_lock");
    }
    return r;
}

static int find_claimable(struct tasks *t, const char *table, int64_t limit, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct backend_claim as = task_claim_of(t, table, NULL);
    struct backend_rows rows = { 0 };
    int r = t->config.backend->ops->claimable(t->config.backend, table, &as, limit, a, &rows, e);

    if (r == 0)
        task_intake_rows(t, &rows);
    return r;
}

void task_sweep_tables(struct tasks *t, int64_t limit)
{
    struct task_listening *l = task_listening_hold(t);

    for (size_t i = 0; i < l->n_tables; i++) {
        struct err e = { 0 };
        int r = recover_stale(t, l->tables[i], &e);

        if (r == 0)
            r = find_claimable(t, l->tables[i], limit, &e);
        if (r < 0)
            log_warn("tasks", NULL, "table %s cannot be swept: %s", LOG_Q(l->tables[i]), LOG_Q(e.text));
    }
    task_listening_drop(t, l);
}

static enum task_reconcile_depth take_gap(struct tasks *t)
{
    bool had_gap;

    pthread_mutex_lock(&t->mutex);
    had_gap = t->has_gap;
    t->has_gap = false;
    pthread_mutex_unlock(&t->mutex);
    return had_gap ? RECONCILE_GAP : RECONCILE_LEASED;
}

/* Renews our own leases first: after the machine has slept all of them look stale. */
void task_sweep_run(struct tasks *t, void *arg)
{
    struct err e = { 0 };

    task_heartbeat_run(t, NULL);
    task_apps_recount(t);
    task_sweep_tables(t, LIMIT_LIST);
    if (task_reconcile(t, take_gap(t), &e) < 0)
        log_warn("tasks", NULL, "tasks of other machines are not looked after: %s", LOG_Q(e.text));
    task_apps_dispatch(t);
}
