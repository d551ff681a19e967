#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

enum { PLACES_OF_OTHERS = 1 }; /* an app that does not listen works on one trigger at a time (specification, Limits) */

/* One pass over an app's waiting list. */
struct round {
    struct tasks *t;
    struct task_app *app;
    struct task_listening *listening;
    const struct task_listener *listener;
    struct arena *arena;
    int64_t max_concurrent;
    size_t n_started;
};

static bool start_waiting(struct round *round, const struct task_row *task)
{
    const struct task_run_key key = {
        .app = round->app->id,
        .table = task->backend_table,
        .row_id = task->row_id,
        .uuid = task->uuid,
    };
    struct task_run *run;

    if (task->backend_table && !round->listener)
        return false; /* the app does not listen any more */
    run = task_run_reserve(round->t, &key, round->max_concurrent);
    if (!run)
        return false;
    task_start_submit(task_start_new(round->t, run));
    return true;
}

/* Oldest first. Tasks already at work are skipped: they stay pending until their claim is stored. */
static int start_oldest(struct round *round, struct err *e)
{
    struct task_row *waiting;
    size_t n;
    int r = store_tasks_waiting(round->t->config.store, round->arena, round->app->id,
                                round->listener ? round->max_concurrent : LIMIT_LIST, &waiting, &n, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        round->n_started += start_waiting(round, &waiting[i]);
    return 0;
}

/* Tasks that did not fit into the list are still in the backend: the sweep brings them. */
static void note_empty(struct round *round, uint64_t n_added)
{
    struct tasks *t = round->t;
    bool had_overflow = false;

    pthread_mutex_lock(&t->mutex);
    if (round->app->n_added == n_added) {
        round->app->has_waiting = false;
        had_overflow = round->app->has_overflow;
        round->app->has_overflow = false;
    }
    pthread_mutex_unlock(&t->mutex);
    if (had_overflow)
        coalesced_job_request(&t->sweep);
}

static bool has_place(struct round *round, uint64_t *ret_n_added)
{
    struct tasks *t = round->t;
    bool has;

    pthread_mutex_lock(&t->mutex);
    has = task_run_count_locked(t, round->app->id) < round->max_concurrent;
    *ret_n_added = round->app->n_added;
    pthread_mutex_unlock(&t->mutex);
    return has;
}

void task_dispatch_run(struct tasks *t, void *app)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct round round = { .t = t, .app = app, .listening = task_listening_hold(t), .arena = a };
    struct err e = { 0 };
    uint64_t n_added;
    int r = 0;

    round.listener = task_listening_find(round.listening, round.app->id);
    round.max_concurrent = round.listener ? round.listener->max_concurrent : PLACES_OF_OTHERS;
    if (has_place(&round, &n_added)) {
        r = start_oldest(&round, &e);
        if (r == 0 && round.n_started == 0)
            note_empty(&round, n_added);
    }
    if (r < 0)
        log_warn("tasks", NULL, "waiting tasks cannot be read: %s", LOG_Q(e.text));
    task_listening_drop(t, round.listening);
}
