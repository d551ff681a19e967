#include "tasks/private.h"

#include "base/clock.h"
#include "base/limits.h"

enum { LINGER_MS = 3000 }; /* how long a process may take to exit after it has reported */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Called with the mutex held. */
static struct task_run *find_locked(struct tasks *t, const struct task_run_key *key)
{
    for (struct task_run *run = t->runs; run; run = run->next) {
        if (key->table && run->table && is_same(run->table, key->table) && is_same(run->row_id, key->row_id))
            return run;
        if (key->uuid && strcmp(run->uuid, key->uuid) == 0)
            return run;
    }
    return NULL;
}

int64_t task_run_count_locked(struct tasks *t, const char *app)
{
    int64_t n = 0;

    for (struct task_run *run = t->runs; run; run = run->next)
        n += !run->is_brief && is_same(run->app, app);
    return n;
}

static bool needs_app_lock(struct tasks *t, const char *table)
{
    struct backend *b = t->config.backend;

    return table && b->ops->needs_app_lock && b->ops->needs_app_lock(b, table);
}

/* Apps that are slow to lock their rows hold up some of the threads, never all of them. The app's next claim begins
 * when one of its claims has ended; where others hold the places, the sweep comes soon. */
static bool has_lock_place_locked(const struct tasks *t, const char *app, bool *ret_is_crowded)
{
    int n = 0, n_of_app = 0;

    for (const struct task_run *run = t->runs; run; run = run->next) {
        bool is_locking = run->needs_app_lock && !run->is_brief && run->id == 0;

        n += is_locking;
        n_of_app += is_locking && is_same(run->app, app);
    }
    *ret_is_crowded = n >= t->most_app_locks && n_of_app == 0;
    return n < t->most_app_locks && n_of_app < LIMIT_TASK_LOCKS_OF_APP;
}

static bool has_runs_locked(const struct tasks *t)
{
    bool has = false;

    for (const struct task_run *run = t->runs; run && !has; run = run->next)
        has = !run->is_brief;
    return has;
}

static struct task_run *run_new(const struct task_run_key *key)
{
    struct task_run *run = xcalloc(1, sizeof(*run));

    run->n_refs = 2; /* one for the list, one for the caller */
    run->arena = arena_new();
    run->app = arena_strdup(run->arena, key->app);
    run->table = arena_strdup(run->arena, key->table);
    run->row_id = arena_strdup(run->arena, key->row_id);
    if (key->uuid)
        snprintf(run->uuid, sizeof(run->uuid), "%s", key->uuid);
    return run;
}

/* Takes the mutex. An agent that was started since the runner was asked may need a part of the room it has named. */
static int64_t find_room_and_lock(struct tasks *t, struct err *why)
{
    const struct task_runner *runner = &t->config.runner;
    int64_t room, n_started;

    pthread_mutex_lock(&t->mutex);
    n_started = t->n_agents_started;
    pthread_mutex_unlock(&t->mutex);
    room = runner->room ? runner->room(runner->arg, why) : INT64_MAX;
    pthread_mutex_lock(&t->mutex);
    return room - (t->n_agents_started - n_started);
}

struct task_run *task_run_reserve(struct tasks *t, const struct task_run_key *key, int64_t max_concurrent)
{
    struct task_run *run = NULL;
    bool is_probe = false, needs_lock = needs_app_lock(t, key->table), is_crowded = false, has_to_rest, may_claim;
    struct err why;
    int64_t room;

    err_init(&why);
    room = find_room_and_lock(t, &why);
    may_claim = !needs_lock || has_lock_place_locked(t, key->app, &is_crowded);
    if (may_claim && !t->is_stopping && !t->is_id_taken && !find_locked(t, key) &&
        task_run_count_locked(t, key->app) < max_concurrent && task_want_admit_locked(t, room, &is_probe)) {
        run = run_new(key);
        run->is_probe = is_probe;
        run->needs_app_lock = needs_lock;
        run->next = t->runs;
        t->runs = run;
    }
    has_to_rest = room < 1 && !t->is_stopping && !has_runs_locked(t);
    pthread_mutex_unlock(&t->mutex);
    if (is_crowded)
        task_away_note(t);
    if (has_to_rest)
        task_want_note_room(t, why.text);
    return run;
}

static struct task_run *hold(struct tasks *t, const struct task_run_key *key)
{
    struct task_run *run;

    pthread_mutex_lock(&t->mutex);
    run = find_locked(t, key);
    if (run)
        run->n_refs++;
    pthread_mutex_unlock(&t->mutex);
    return run;
}

struct task_run *task_run_of_row(struct tasks *t, const char *table, const char *row_id)
{
    return hold(t, &(struct task_run_key){ .table = table, .row_id = row_id });
}

struct task_run *task_run_of_uuid(struct tasks *t, const char *uuid)
{
    return hold(t, &(struct task_run_key){ .uuid = uuid });
}

struct task_run **task_runs_hold(struct tasks *t, struct arena *a, size_t *ret_n)
{
    struct task_run **list;
    size_t n = 0;

    pthread_mutex_lock(&t->mutex);
    for (struct task_run *run = t->runs; run; run = run->next)
        n++;
    list = arena_array(a, n + 1, sizeof(struct task_run *));
    *ret_n = n;
    for (struct task_run *run = t->runs; run; run = run->next) {
        run->n_refs++;
        list[--n] = run; /* oldest first */
    }
    pthread_mutex_unlock(&t->mutex);
    return list;
}

void task_run_unref(struct tasks *t, struct task_run *run)
{
    bool is_last;

    if (!run)
        return;
    pthread_mutex_lock(&t->mutex);
    is_last = --run->n_refs == 0;
    pthread_mutex_unlock(&t->mutex);
    if (!is_last)
        return;
    if (run->handle)
        t->config.runner.release(t->config.runner.arg, run->handle);
    arena_free(run->arena);
    free(run);
}

void task_run_leave_quietly(struct tasks *t, struct task_run *run)
{
    struct task_run **at;
    bool has_news;

    pthread_mutex_lock(&t->mutex);
    for (at = &t->runs; *at && *at != run; at = &(*at)->next)
        ;
    if (*at)
        *at = run->next;
    has_news = run->has_news && run->table;
    pthread_cond_broadcast(&t->has_changed);
    pthread_mutex_unlock(&t->mutex);
    if (has_news)
        task_intake_hint(t, run->table, run->row_id);
    if (!run->is_brief)
        task_want_left(t, run);
    task_run_unref(t, run);
}

void task_run_leave(struct tasks *t, struct task_run *run)
{
    struct task_app *app = task_app_of(t, run->app);

    task_run_leave_quietly(t, run);
    coalesced_job_request(&app->dispatch);
}

/* ---- ending ---- */

void task_run_stop(struct tasks *t, struct task_run *run, enum task_fate fate)
{
    void *handle;

    pthread_mutex_lock(&t->mutex);
    if (run->fate == FATE_NONE)
        run->fate = fate;
    handle = run->handle;
    pthread_mutex_unlock(&t->mutex);
    if (handle)
        t->config.runner.stop(t->config.runner.arg, handle);
}

void task_run_advance(struct tasks *t, struct task_run *run)
{
    struct task_job *job;
    bool is_due;

    pthread_mutex_lock(&t->mutex);
    is_due = run->has_ended && run->is_started && !run->n_reporting && !run->is_settling && t->pool;
    run->is_settling = run->is_settling || is_due;
    run->n_refs += is_due;
    pthread_mutex_unlock(&t->mutex);
    if (!is_due)
        return;
    job = xcalloc(1, sizeof(*job));
    *job = (struct task_job){ t, run };
    if (task_submit(t, task_settle_run, job))
        return;
    free(job); /* tasks_close() releases the run */
    task_run_unref(t, run);
}

static const char *end_of(const char *text, size_t max)
{
    size_t n = text ? strlen(text) : 0;

    return n > max ? text + (n - max) : text;
}

static struct task_run *note_end_locked(struct tasks *t, int64_t run_id, const struct task_run_end *end)
{
    struct task_run *run = t->runs;

    while (run && run->id != run_id)
        run = run->next;
    if (!run || run->has_ended)
        return NULL;
    run->end = (struct task_run_end){
        .is_success = end->is_success,
        .was_stopped = end->was_stopped,
        .was_crowded = end->was_crowded,
        .result_json = arena_strdup(run->arena, end->result_json),
        .error = arena_strdup(run->arena, end->error),
        .log = arena_strdup(run->arena, end_of(end->log, LIMIT_RUN_LOG_BYTES)),
    };
    run->has_ended = true;
    run->n_refs++;
    return run;
}

void tasks_run_ended(struct tasks *t, int64_t run_id, const struct task_run_end *end)
{
    struct task_run *run;

    pthread_mutex_lock(&t->mutex);
    run = note_end_locked(t, run_id, end);
    pthread_mutex_unlock(&t->mutex);
    if (!run)
        return;
    task_run_advance(t, run);
    task_run_unref(t, run);
}

/* ---- reports ---- */

/* Nobody can tell yet what the task's attempt is: a report is being handled, or the claim is not stored. */
static bool is_undecided(const struct task_run *run)
{
    return run->is_brief || !run->attempt;
}

struct task_run *task_run_enter(struct tasks *t, const struct task_run_key *key)
{
    struct task_run *run;

    pthread_mutex_lock(&t->mutex);
    while ((run = find_locked(t, key)) && is_undecided(run))
        pthread_cond_wait(&t->has_changed, &t->mutex);
    if (run) {
        run->n_refs++;
    } else {
        run = run_new(key);
        run->is_brief = true;
        run->next = t->runs;
        t->runs = run;
    }
    run->n_reporting++;
    pthread_mutex_unlock(&t->mutex);
    return run;
}

static void start_linger(void *arg)
{
    struct tasks *t = arg;

    if (t->linger_timer)
        loop_timer_set(t->linger_timer, LINGER_MS);
}

static void end_report(struct tasks *t, struct task_run *run, bool has_taken)
{
    bool has_to_linger;

    pthread_mutex_lock(&t->mutex);
    run->n_reporting--;
    run->is_reported = run->is_reported || has_taken;
    has_to_linger = has_taken && !run->has_ended && !run->linger_until_ms && t->is_serving && !t->is_stopping;
    if (has_to_linger)
        run->linger_until_ms = clock_mono_ms() + LINGER_MS;
    pthread_mutex_unlock(&t->mutex);
    if (has_to_linger)
        loop_post(t->config.loop, start_linger, t);
    task_run_advance(t, run);
}

void task_run_exit(struct tasks *t, struct task_run *run, bool has_taken)
{
    if (run->is_brief)
        task_run_leave(t, run);
    else
        end_report(t, run, has_taken);
    task_run_unref(t, run);
}

/* Stops processes that have reported their end but do not exit. */
void task_linger_run(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int64_t now_ms = clock_mono_ms();
    bool is_left = false;
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    for (size_t i = 0; i < n; i++) {
        int64_t until_ms;

        pthread_mutex_lock(&t->mutex);
        until_ms = runs[i]->has_ended ? 0 : runs[i]->linger_until_ms;
        pthread_mutex_unlock(&t->mutex);
        if (until_ms && until_ms <= now_ms)
            task_run_stop(t, runs[i], FATE_NONE);
        is_left = is_left || until_ms > now_ms;
        task_run_unref(t, runs[i]);
    }
    if (is_left)
        loop_post(t->config.loop, start_linger, t);
}

char *tasks_live_log(struct tasks *t, const char *task_uuid, struct arena *a)
{
    struct task_run *run = task_run_of_uuid(t, task_uuid);
    char *log = NULL;
    void *handle;

    if (!run)
        return NULL;
    pthread_mutex_lock(&t->mutex);
    handle = run->handle;
    pthread_mutex_unlock(&t->mutex);
    if (handle && t->config.runner.log)
        log = t->config.runner.log(t->config.runner.arg, handle, a);
    task_run_unref(t, run);
    return log;
}
