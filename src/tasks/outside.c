/* Work of programs that Hearth did not start. For a row the backend keeps the lease; a task without a row is kept at
 * work by its reports. This file watches such tasks by this process's monotonic clock, so that a step of the wall clock
 * does not end their work. */
#include "tasks/private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

/* A task without a row that is at work outside, and since when no report about it came. */
struct task_outside {
    struct task_outside *next;
    char uuid[UUID_SIZE], updated_at[TIME_TEXT_SIZE];
    int64_t since_ms;
    bool is_seen; /* in this round of the sweep */
};

int64_t task_open_run(struct tasks *t, struct arena *a, const struct task_row *task)
{
    struct run_row *runs;
    size_t n = 0;

    if (!status_is_leased(task->status) || store_runs_list(t->config.store, a, task->uuid, &runs, &n, NULL) < 0)
        return 0;
    return n && strcmp(runs[n - 1].status, "running") == 0 ? runs[n - 1].id : 0;
}

static struct task_outside *watch(struct tasks *t, const struct task_row *task)
{
    struct task_outside **bucket = &t->outside[hash_fast(slice_of(task->uuid)) % TASK_OUTSIDE_BUCKETS], *o = *bucket;

    while (o && strcmp(o->uuid, task->uuid) != 0)
        o = o->next;
    if (!o) {
        o = xcalloc(1, sizeof(*o));
        snprintf(o->uuid, sizeof(o->uuid), "%s", task->uuid);
        o->next = *bucket;
        *bucket = o;
    }
    return o;
}

static void give_up(struct tasks *t, const struct task_row *task, int64_t silent_ms)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_ref ref = task_ref_of_task(task);
    struct err e = { 0 };
    int r;

    ref.run_id = task_open_run(t, a, task);
    r = task_settle_released(t, &ref, arena_printf(a, "No report came for %lld s.", (long long)(silent_ms / 1000)), &e);
    if (r < 0 && r != -EALREADY)
        log_warn("tasks", NULL, "task %s is not taken back: %s", task->uuid, LOG_Q(e.text));
    else
        task_app_added(t, task_app_of(t, task->source_app));
}

void task_outside_look(struct tasks *t, const struct task_row *task)
{
    int64_t now_ms = clock_mono_ms(), stale_ms = settings_ms(t->config.settings, SETTING_TASKS_STALE_AFTER_S);
    struct task_outside *o;

    if (task_is_at_work(t, task->uuid))
        return;
    o = watch(t, task);
    o->is_seen = true;
    if (strcmp(o->updated_at, task->updated_at) != 0) {
        snprintf(o->updated_at, sizeof(o->updated_at), "%s", task->updated_at);
        o->since_ms = now_ms;
    } else if (now_ms - o->since_ms > stale_ms) {
        o->is_seen = false;
        give_up(t, task, now_ms - o->since_ms);
    }
}

static void end_round_of(struct task_outside **at)
{
    for (struct task_outside *o; (o = *at);) {
        if (o->is_seen) {
            o->is_seen = false;
            at = &o->next;
            continue;
        }
        *at = o->next;
        free(o);
    }
}

void task_outside_end_round(struct tasks *t)
{
    for (size_t i = 0; i < TASK_OUTSIDE_BUCKETS; i++)
        end_round_of(&t->outside[i]);
}

void task_outside_clear(struct tasks *t)
{
    task_outside_end_round(t); /* the first one forgets which tasks were seen, the second one frees them */
    task_outside_end_round(t);
}
