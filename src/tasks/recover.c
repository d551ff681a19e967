/* Repairs the state that a killed service left behind, before any new work begins. */
#include "tasks/private.h"

#include "backend/monitor.h"
#include "base/limits.h"
#include "base/log.h"

enum { RECONCILE_SOME = 25 };

/* Only this service uses the machine id, so no agent works under these leases. */
static void release_rows(struct tasks *t)
{
    struct task_listening *l = task_listening_hold(t);

    for (size_t i = 0; i < l->n_tables; i++) {
        struct err e = { 0 };
        size_t n = 0;

        if (t->config.backend->ops->release_machine(t->config.backend, l->tables[i], t->machine_id, &n, &e) < 0)
            log_warn("tasks", NULL, "table %s: leases of an earlier run stay: %s", LOG_Q(l->tables[i]), LOG_Q(e.text));
        else if (n > 0)
            log_info("tasks", NULL, "table %s: released %zu leases of an earlier run", LOG_Q(l->tables[i]), n);
    }
    task_listening_drop(t, l);
}

/* A task without a row is run again with the next attempt, unless a program outside works on it: such a program is
 * given time to report. */
static int reconcile_triggered(struct tasks *t, const struct task_row *task, enum task_reconcile_depth depth,
                               struct err *e)
{
    const struct task_ref ref = task_ref_of_task(task);

    if (depth == RECONCILE_START && task->machine_id && strcmp(task->machine_id, t->machine_id) == 0)
        return task_settle_released(t, &ref, NULL, e);
    task_outside_look(t, task);
    return 0;
}

static void reconcile(struct tasks *t, const struct task_row *task, enum task_reconcile_depth depth)
{
    struct err e = { 0 };
    int r = 0;

    if (task->backend_table)
        r = task_follow_now(t, task->backend_table, task->row_id, &e);
    else if (status_is_leased(task->status))
        r = reconcile_triggered(t, task, depth, &e);
    if (r < 0)
        log_warn("tasks", NULL, "task %s: %s", task->uuid, LOG_Q(e.text));
    if (depth > RECONCILE_LEASED) /* leased ones are looked at by every sweep */
        task_note_missed(t, r);
}

static int has_status(struct tasks *t, const char *uuid, const char *status, bool *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new(); /* its own: tasks have megabytes, and a page has many */
    struct task_row now;
    int r = store_tasks_get(t->config.store, a, uuid, &now, e);

    if (r == 0)
        *ret = strcmp(now.status, status) == 0;
    return r;
}

/* Tasks that stay unchanged are skipped on the next page. */
static int reconcile_page(struct tasks *t, const char *status, enum task_reconcile_depth depth, int64_t limit,
                          int64_t *offset, size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct task_filter filter = { .status = status, .limit = limit, .offset = *offset };
    struct task_row *tasks;
    bool is_unchanged = false;
    int r = store_tasks_list(t->config.store, a, &filter, &tasks, ret_n, e);

    for (size_t i = 0; r == 0 && i < *ret_n; i++) {
        reconcile(t, &tasks[i], depth);
        r = has_status(t, tasks[i].uuid, status, &is_unchanged, e);
        *offset += r == 0 && is_unchanged;
    }
    return r;
}

static int reconcile_all(struct tasks *t, const char *status, enum task_reconcile_depth depth, struct err *e)
{
    int64_t offset = 0;
    size_t n = LIMIT_LIST;
    int r = 0;

    while (r == 0 && n == LIMIT_LIST)
        r = reconcile_page(t, status, depth, LIMIT_LIST, &offset, &n, e);
    return r;
}

/* Failed tasks accumulate over the years; the newest may have been retried elsewhere while no service ran here. */
int task_reconcile(struct tasks *t, enum task_reconcile_depth depth, struct err *e)
{
    int64_t offset = 0;
    size_t n;
    int r = reconcile_all(t, STATUS_CLAIMED, depth, e);

    if (r == 0)
        r = reconcile_all(t, STATUS_PROCESSING, depth, e);
    if (r == 0)
        task_outside_end_round(t);
    if (r == 0 && depth > RECONCILE_LEASED)
        r = reconcile_all(t, STATUS_PENDING, depth, e);
    if (r == 0 && depth > RECONCILE_LEASED)
        r = reconcile_page(t, STATUS_FAILED, depth, LIMIT_LIST, &offset, &n, e);
    if (depth > RECONCILE_LEASED)
        task_note_missed(t, r);
    return r;
}

static int reconcile_some(struct tasks *t, const char *status, int64_t *offset, struct err *e)
{
    size_t n = 0;
    int r = reconcile_page(t, status, RECONCILE_LEASED, RECONCILE_SOME, offset, &n, e);

    if (n < RECONCILE_SOME)
        *offset = 0;
    return r;
}

/* Changes that do not arrive at all (a pooler, no right of replication) leave no gap either. */
static bool may_lose_events(struct tasks *t)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_monitor monitor;

    t->config.backend->ops->monitor(t->config.backend, a, &monitor);
    return t->may_lose_events || monitor.state != BACKEND_LINK_LIVE;
}

int task_reconcile_some(struct tasks *t, struct err *e)
{
    int r;

    if (!may_lose_events(t))
        return 0;
    r = reconcile_some(t, STATUS_PENDING, &t->pending_offset, e);
    return r < 0 ? r : reconcile_some(t, STATUS_FAILED, &t->failed_offset, e);
}

/* Makes apps with waiting tasks known; their lists are read when a place is first looked for. */
static int wake_apps(struct tasks *t, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char **apps;
    size_t n;
    int r = store_tasks_waiting_apps(t->config.store, a, &apps, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++)
        task_app_of(t, apps[i]);
    return r;
}

int task_recover(struct tasks *t, struct err *e)
{
    int64_t n_runs = 0;
    int r = store_runs_abandon(t->config.store, t->machine_id, "The service ended while this ran.", &n_runs, e);

    release_rows(t);
    if (r == 0)
        r = task_reconcile(t, RECONCILE_START, e);
    return r < 0 ? r : wake_apps(t, e);
}
