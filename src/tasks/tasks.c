/* The life cycle of the tasks: open, start, stop, close. */
#include "tasks/private.h"

#include "backend/backend_providers.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/few_files.h"
#include "os/files.h"
#include "store/meta.h"

#include <stdarg.h>

#ifdef __APPLE__
#define MACHINE_PREFIX "mac-"
#else
#define MACHINE_PREFIX "lin-"
#endif

enum {
    MACHINE_RANDOM_BYTES = 4,
    MACHINE_ID_FILE_BYTES = 256,
    MACHINE_ID_FILE_LEAST = 16,
    COUNT_AFTER_MS = 500,
    NOTIFY_BYTES = 300,
    BEGIN_AGAIN_MS = 1000 /* at most, while work cannot begin */
};

/* ---- notifications ---- */

static void start_counting(void *arg)
{
    struct tasks *t = arg;

    if (t->count_timer && !t->is_counting) {
        t->is_counting = true;
        loop_timer_set(t->count_timer, COUNT_AFTER_MS);
    }
}

void task_emit(struct tasks *t, const char *uuid, const char *status)
{
    bool is_serving;

    if (t->config.on_change)
        t->config.on_change(t->config.arg, uuid, status);
    pthread_mutex_lock(&t->mutex);
    is_serving = t->is_serving && !t->is_stopping;
    pthread_mutex_unlock(&t->mutex);
    if (is_serving)
        loop_post(t->config.loop, start_counting, t);
}

void task_notify(struct tasks *t, const char *uuid, const char *status, const char *fmt, ...)
{
    char text[NOTIFY_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_info("tasks", NULL, "task %s %s: %s", uuid, status, text);
    task_emit(t, uuid, status);
}

static struct metric *gauge_of(const char *status)
{
    char label[40];

    snprintf(label, sizeof(label), "status=\"%s\"", status);
    return metric_gauge("hearth_tasks", "Tasks by status", label);
}

/* Called at most twice a second, however many changes there are. */
static void count_tasks(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_count *counts;
    const char *status;
    size_t n;

    if (store_tasks_counts(t->config.store, a, &counts, &n, NULL) < 0)
        return;
    for (size_t i = 0; (status = status_word(STATUSES_ALL, i)); i++) {
        double value = 0;

        for (size_t j = 0; j < n; j++)
            if (strcmp(counts[j].status, status) == 0)
                value = (double)counts[j].n;
        metric_set(gauge_of(status), value);
    }
}

/* ---- helpers for all files ---- */

bool task_submit(struct tasks *t, void (*fn)(void *arg), void *arg)
{
    int r = pool_submit(t->pool, fn, arg);

    if (r == -EAGAIN)
        log_error("tasks", NULL, "more than %d jobs wait", LIMIT_TASK_JOBS);
    return r == 0;
}

struct backend_claim task_claim_of(struct tasks *t, const char *table, const char *row_id)
{
    return (struct backend_claim){
        .table = table,
        .row_id = row_id,
        .machine_id = t->machine_id,
        .stale_after_ms = settings_ms(t->config.settings, SETTING_TASKS_STALE_AFTER_S),
        .max_machines = settings_int(t->config.settings, SETTING_TASKS_MAX_MACHINES),
    };
}

const char *tasks_machine_id(const struct tasks *t)
{
    return t->machine_id;
}

/* ---- listeners ---- */

static void wake_listeners(struct tasks *t)
{
    struct task_listening *l = task_listening_hold(t);

    task_retry_listen(t, l);
    for (size_t i = 0; i < l->list.n; i++)
        coalesced_job_request(&task_app_of(t, l->list.items[i].app_id)->dispatch);
    task_listening_drop(t, l);
}

static void renew_listening(struct tasks *t, void *arg)
{
    struct err e = { 0 };

    if (task_listening_renew(t, &e) < 0) {
        log_error("tasks", NULL, "who listens cannot be read, so it stays as it was: %s", LOG_Q(e.text));
        return;
    }
    task_away_reset(t);
    wake_listeners(t);
    coalesced_job_request(&t->presence);
    coalesced_job_request(&t->sweep);
}

void tasks_listeners_changed(struct tasks *t)
{
    coalesced_job_request(&t->relisten);
}

/* Reads the listeners only; the job that tasks_listeners_changed() requests wakes the listeners and the sweep. */
void tasks_listen_now(struct tasks *t)
{
    struct err e = { 0 };

    if (t->config.is_serving && task_listening_renew(t, &e) < 0)
        log_error("tasks", NULL, "who listens cannot be read, so it stays as it was: %s", LOG_Q(e.text));
}

static void set_gap(struct tasks *t)
{
    pthread_mutex_lock(&t->mutex);
    t->has_gap = true;
    pthread_mutex_unlock(&t->mutex);
}

void task_note_gap(struct tasks *t)
{
    set_gap(t);
    coalesced_job_request(&t->sweep);
}

void task_note_missed(struct tasks *t, int r)
{
    if (backend_error_passes(r))
        set_gap(t);
}

void tasks_sweep_now(struct tasks *t)
{
    coalesced_job_request(&t->sweep);
}

/* ---- open ---- */

static char *new_machine_id(struct arena *a)
{
    unsigned char bytes[MACHINE_RANDOM_BYTES];
    char hex[2 * MACHINE_RANDOM_BYTES + 1];

    random_bytes(bytes, sizeof(bytes));
    hash_hex(bytes, sizeof(bytes), hex);
    return arena_printf(a, MACHINE_PREFIX "%s", hex);
}

/* The identity of this host, as a hash of its machine-id(5); "" where the host has none. */
static void read_host(char out[HASH_HEX_SIZE])
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = { 0 };

    out[0] = '\0';
    if (file_read(a, "/etc/machine-id", MACHINE_ID_FILE_BYTES, &text, NULL) == 0 && text.n >= MACHINE_ID_FILE_LEAST)
        hash_text_hex(text, out);
}

/* A data folder that came from another host (a restored backup, a copied disk) gets a new machine id. */
static int forget_foreign_id(struct tasks *t, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char host[HASH_HEX_SIZE], *kept;
    int r;

    read_host(host);
    r = *host ? store_meta_keep(t->config.store, a, META_MACHINE_HOST, host, &kept, e) : 0;
    if (r < 0 || !*host || strcmp(kept, host) == 0)
        return r;
    log_warn("tasks", NULL, "this data folder comes from another host: it gets a machine id of its own");
    r = store_meta_set(t->config.store, META_MACHINE_HOST, host, e);
    return r < 0 ? r : store_meta_set(t->config.store, META_MACHINE_ID, new_machine_id(a), e);
}

/* The machine id is made once per host and then stays, unless the setting names one. */
static int find_machine_id(struct tasks *t, struct err *e)
{
    char *kept;
    int r;

    t->machine_id = settings_string(t->config.settings, t->arena, SETTING_IDENTITY_MACHINE_ID);
    if (*t->machine_id)
        return 0;
    r = forget_foreign_id(t, e);
    if (r == 0)
        r = store_meta_keep(t->config.store, t->arena, META_MACHINE_ID, new_machine_id(t->arena), &kept, e);
    if (r == 0)
        t->machine_id = kept;
    return r;
}

static void init_coalesced_jobs(struct tasks *t)
{
    coalesced_job_init(&t->intake, t, task_intake_run, NULL);
    coalesced_job_init(&t->sweep, t, task_sweep_run, NULL);
    coalesced_job_init(&t->heartbeat, t, task_heartbeat_run, NULL);
    coalesced_job_init(&t->linger, t, task_linger_run, NULL);
    coalesced_job_init(&t->presence, t, task_presence_put, NULL);
    coalesced_job_init(&t->relisten, t, renew_listening, NULL);
    coalesced_job_init(&t->count, t, count_tasks, NULL);
    coalesced_job_init(&t->retry, t, task_want_retry, NULL);
    coalesced_job_init(&t->waits, t, task_waits_run, NULL);
    coalesced_job_init(&t->away_look, t, task_away_run, NULL);
}

int tasks_open(const struct tasks_config *c, struct tasks **ret, struct err *e)
{
    struct tasks *t = xcalloc(1, sizeof(*t));
    int r;

    t->config = *c;
    t->arena = arena_new();
    t->last_item = &t->first_item;
    t->may_lose_events = backend_provider_of(c->settings)->may_lose_events;
    pthread_mutex_init(&t->mutex, NULL);
    cond_init(&t->has_changed);
    clock_now_text(t->started_at);
    t->deletions =
        arena_printf(t->arena, "%s_deletions", settings_string(c->settings, t->arena, SETTING_IDENTITY_ABBR));
    t->meters = (struct task_meters){
        .claims = metric_counter("hearth_task_claims_total", "Tasks this machine began to work on", ""),
        .leases_lost = metric_counter("hearth_task_lease_lost_total", "Runs that lost their lease", ""),
        .event_to_start =
            metric_histogram("hearth_event_to_start_seconds", "From a row's event to its agent's start", ""),
    };
    init_coalesced_jobs(t);
    r = find_machine_id(t, e);
    if (r < 0) {
        tasks_close(t);
        return r;
    }
    *ret = t;
    return 0;
}

/* ---- start ---- */

static void on_gap(void *tasks)
{
    task_note_gap(tasks);
}

static void on_timer(void *job)
{
    coalesced_job_request(job);
}

static void on_count_timer(void *tasks)
{
    struct tasks *t = tasks;

    t->is_counting = false;
    coalesced_job_request(&t->count);
}

static struct loop_timer *start_timer(struct tasks *t, struct coalesced_job *job, enum setting_id every)
{
    struct loop_timer *timer = loop_timer_new(t->config.loop, on_timer, job);

    loop_timer_every(timer, settings_ms(t->config.settings, every));
    return timer;
}

static void start_timers(void *tasks)
{
    struct tasks *t = tasks;

    t->heartbeat_timer = start_timer(t, &t->heartbeat, SETTING_TASKS_HEARTBEAT_S);
    t->sweep_timer = start_timer(t, &t->sweep, SETTING_TASKS_SWEEP_S);
    t->presence_timer = start_timer(t, &t->presence, SETTING_TASKS_PRESENCE_S);
    t->linger_timer = loop_timer_new(t->config.loop, on_timer, &t->linger);
    t->count_timer = loop_timer_new(t->config.loop, on_count_timer, t);
    t->want_timer = loop_timer_new(t->config.loop, on_timer, &t->retry);
    t->away_timer = loop_timer_new(t->config.loop, on_timer, &t->away_look);
}

static void stop_timers(void *tasks)
{
    struct tasks *t = tasks;

    t->heartbeat_timer = loop_timer_free(t->heartbeat_timer);
    t->sweep_timer = loop_timer_free(t->sweep_timer);
    t->presence_timer = loop_timer_free(t->presence_timer);
    t->linger_timer = loop_timer_free(t->linger_timer);
    t->count_timer = loop_timer_free(t->count_timer);
    t->want_timer = loop_timer_free(t->want_timer);
    t->wait_timer = loop_timer_free(t->wait_timer);
    t->away_timer = loop_timer_free(t->away_timer);
}

static void end_store_thread(void *store)
{
    store_thread_end(store);
}

static int start_pool(struct tasks *t, struct err *e)
{
    struct pool_config c = {
        .name = "tasks",
        .n_min = 2,
        .n_max = LIMIT_TASK_THREADS,
        .max_waiting = LIMIT_TASK_JOBS,
        .on_thread_end = end_store_thread,
        .arg = t->config.store,
    };

    few_files_adapt(&c);
    t->most_app_locks = MAX((int)c.n_max / 2, 1);
    return pool_start(&c, &t->pool, e);
}

/* From here on events, timers and people may start work. */
static void serve(struct tasks *t)
{
    pthread_mutex_lock(&t->mutex);
    t->is_serving = true;
    pthread_mutex_unlock(&t->mutex);
    loop_call(t->config.loop, start_timers, t);
    wake_listeners(t);
    task_sweep_tables(t, settings_int(t->config.settings, SETTING_TASKS_RECOVERY_ROWS), false);
    task_apps_dispatch(t);
    coalesced_job_resume(&t->intake);
    coalesced_job_resume(&t->relisten);
    coalesced_job_request(&t->presence);
    coalesced_job_request(&t->count);
}

static int begin_work(struct tasks *t, struct err *e)
{
    struct backend *b = t->config.backend;
    int r = b->ops->subscribe(b, task_intake_event, on_gap, t, e);

    if (r < 0)
        return r;
    r = task_recover(t, e); /* changes during recovery are queued */
    if (r < 0) {
        b->ops->unsubscribe(b, t);
        return r;
    }
    serve(t);
    log_info("tasks", NULL, "machine %s listens", LOG_Q(t->machine_id));
    return 0;
}

/* ---- while the rows cannot be reached, or another service has our machine id ---- */

/* What a killed service left is released before new work begins, so no work begins without the rows. */
static bool has_rows(struct tasks *t)
{
    struct err e = { 0 };
    int r = t->config.backend->ops->is_ready(t->config.backend, &e);
    bool was_waiting;

    pthread_mutex_lock(&t->mutex);
    was_waiting = t->is_waiting_for_rows;
    t->is_waiting_for_rows = r < 0;
    pthread_mutex_unlock(&t->mutex);
    if (r < 0 && !was_waiting)
        log_warn("tasks", NULL, "no work is taken up until the rows can be reached: %s", LOG_Q(e.text));
    return r == 0;
}

/* *ret_began: work has begun; false: it has to wait. */
static int try_to_begin(struct tasks *t, bool *ret_began, struct err *e)
{
    int r;

    *ret_began = false;
    if (!has_rows(t))
        return 0;
    r = task_listening_renew(t, e);
    if (r < 0)
        return r;
    task_presence_put(t, NULL);
    if (tasks_is_id_taken(t))
        return 0;
    r = begin_work(t, e);
    *ret_began = r == 0;
    return r;
}

static void begin_when_free(void *tasks)
{
    struct tasks *t = tasks;
    struct err e = { 0 };
    bool has_begun;

    if (try_to_begin(t, &has_begun, &e) < 0)
        log_error("tasks", NULL, "tasks did not start: %s", LOG_Q(e.text));
    pthread_mutex_lock(&t->mutex);
    t->is_waiting = !t->is_serving;
    pthread_mutex_unlock(&t->mutex);
}

static void on_wait_timer(void *tasks)
{
    struct tasks *t = tasks;
    bool is_due;

    pthread_mutex_lock(&t->mutex);
    is_due = t->is_waiting && !t->is_stopping;
    t->is_waiting = t->is_waiting && !is_due;
    pthread_mutex_unlock(&t->mutex);
    if (is_due && !task_submit(t, begin_when_free, t))
        log_debug("tasks", NULL, "no worker is free to look whether work can begin");
}

static void start_wait_timer(void *tasks)
{
    struct tasks *t = tasks;

    t->wait_timer = loop_timer_new(t->config.loop, on_wait_timer, t);
    loop_timer_every(t->wait_timer,
                     MIN(settings_ms(t->config.settings, SETTING_TASKS_PRESENCE_S), (int64_t)BEGIN_AGAIN_MS));
}

static void wait_to_begin(struct tasks *t)
{
    pthread_mutex_lock(&t->mutex);
    t->is_waiting = true;
    pthread_mutex_unlock(&t->mutex);
    loop_call(t->config.loop, start_wait_timer, t);
}

int tasks_start(struct tasks *t, struct err *e)
{
    bool has_begun = false;
    int r;

    if (!t->config.is_serving)
        return 0;
    r = start_pool(t, e);
    if (r == 0)
        r = try_to_begin(t, &has_begun, e);
    if (r == 0 && !has_begun)
        wait_to_begin(t);
    return r;
}

/* ---- stop ---- */

static void stop_runs(struct tasks *t)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    for (size_t i = 0; i < n; i++) {
        task_run_stop(t, runs[i], FATE_SERVICE_STOPS);
        task_run_unref(t, runs[i]);
    }
}

static void wait_for_runs(struct tasks *t, int64_t deadline_ms)
{
    pthread_mutex_lock(&t->mutex);
    while (t->runs && cond_wait_until(&t->has_changed, &t->mutex, deadline_ms * 1000))
        ;
    pthread_mutex_unlock(&t->mutex);
}

static bool take_over(struct tasks *t, struct task_run *run)
{
    bool is_free;

    pthread_mutex_lock(&t->mutex);
    is_free = run->id && !run->is_settling && !run->is_reported;
    run->is_settling = run->is_settling || is_free;
    pthread_mutex_unlock(&t->mutex);
    return is_free;
}

/* The processes of these runs did not end in time and are about to be killed: their rows are released now, for other
 * machines. */
static void release_the_rest(struct tasks *t)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    struct task_run **runs = task_runs_hold(t, a, &n);

    for (size_t i = 0; i < n; i++) {
        const struct task_ref ref = task_ref_of_run(t, runs[i]);
        struct err e = { 0 };

        if (take_over(t, runs[i]) && task_settle_released(t, &ref, "The service stopped before the agent did.", &e) < 0)
            log_warn("tasks", NULL, "task %s is not released: %s", runs[i]->uuid, LOG_Q(e.text));
        task_run_unref(t, runs[i]);
    }
}

void tasks_stop(struct tasks *t, int64_t deadline_ms)
{
    struct backend *b = t->config.backend;
    bool was_serving;

    pthread_mutex_lock(&t->mutex);
    was_serving = t->is_serving && !t->is_stopping;
    t->is_stopping = true;
    pthread_mutex_unlock(&t->mutex);
    if (t->pool)
        loop_call(t->config.loop, stop_timers, t);
    if (was_serving) {
        b->ops->unsubscribe(b, t);
        b->ops->unlisten(b, t);
        stop_runs(t);
        wait_for_runs(t, deadline_ms);
        release_the_rest(t);
        task_presence_remove(t);
    }
    if (t->pool)
        pool_finish(t->pool); /* the pool stays until tasks_close(): a worker of the service may still submit */
}

struct tasks *tasks_close(struct tasks *t)
{
    if (!t)
        return NULL;
    t->pool = pool_stop(t->pool);
    task_intake_clear(t);
    while (t->runs)
        task_run_leave_quietly(t, t->runs);
    t->apps = task_apps_free(t->apps);
    task_outside_clear(t);
    task_sweep_clear(t);
    task_listening_drop(t, t->listening);
    pthread_cond_destroy(&t->has_changed);
    pthread_mutex_destroy(&t->mutex);
    arena_free(t->arena);
    free(t);
    return NULL;
}
