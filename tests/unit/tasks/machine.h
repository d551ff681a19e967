/* Machines for the tests of tasks: each has its own store, loop and `struct tasks`; all machines of a world share one
 * backend file. The agents are a double: a run starts, is recorded, and ends when the test says so. */
#pragma once

#include "../wait.h"

#include "backend/embedded/embedded_open.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "os/files.h"
#include "store/sql.h"
#include "store/tables/tasks.h"
#include "tasks/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#define TABLE "svc_activities"
#define APP "a0000000-0000-4000-8000-000000000001"
enum { ALL_EVENTS = BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE, MAX_RUNS = 700, MAX_FLAGS = 12 };

struct machine;

/* One run of the double. */
struct fake_run {
    struct machine *machine;
    int64_t id, attempt;
    char task_uuid[UUID_SIZE];
    char agent[64], prompt[64], table[64];
    char *activity; /* owned */
    atomic_bool was_requested, is_released, has_ended;
    atomic_bool waits; /* for a person */
};

struct world {
    char dir[64];
    struct arena *arena;
    struct machine *machines;
    pthread_mutex_t mutex;
    struct fake_run runs[MAX_RUNS]; /* of all machines, in order of their start */
    size_t n_runs;
};

enum { OTHERS_MAX = 8 };

struct machine {
    struct machine *next;
    struct world *world;
    char id[32], dir[96];
    struct arena *arena;
    struct loop *loop;
    pthread_t thread;
    struct store *store;
    struct settings *settings;
    struct backend *backend;
    struct tasks *tasks;
    bool is_started;
    struct task_handler handlers[4];
    struct task_listener listener;           /* changed before the start, or followed by tasks_listeners_changed() */
    struct task_listener others[OTHERS_MAX]; /* of more apps */
    size_t n_others;
    atomic_bool is_deaf;         /* no app listens */
    atomic_bool holds_read;      /* the next read of the listeners returns what it has read when read_ends is posted */
    sem_t read_holds, read_ends; /* set up by the test that sets holds_read */
    atomic_int start_result;     /* the runner's result for a start; 0: it starts */
    atomic_int n_requested;      /* starts that were requested from the runner */
    atomic_int room;             /* children the runner has room for; 0: any number, -1: none */
    atomic_int n_looked;         /* questions for room */
    atomic_bool holds_room;      /* the next question for room is answered, as things were, when room_ends is posted */
    sem_t room_holds, room_ends; /* set up by the test that sets holds_room */
    atomic_bool ends_in_start;   /* the end is reported before start() has returned */
    atomic_bool ignores_stop;
    atomic_bool waits_in_start; /* a run waits for a person before start() has returned */
    atomic_int n_changes;
};

/* ---- the double ---- */

static inline void fake_end_as(struct fake_run *run, struct task_run_end end)
{
    if (!atomic_exchange(&run->has_ended, true))
        tasks_run_ended(run->machine->tasks, run->id, &end);
}

static inline void fake_succeed(struct fake_run *run, const char *result)
{
    fake_end_as(run, (struct task_run_end){ .is_success = true, .result_json = result, .log = "out" });
}

static inline void fake_fail(struct fake_run *run, const char *error)
{
    fake_end_as(run, (struct task_run_end){ .error = error, .log = "err" });
}

static inline int fake_start(void *arg, int64_t run_id, const struct task_run_order *order, void **ret_handle,
                             pid_t *ret_pid, struct err *e)
{
    struct machine *m = arg;
    struct world *w = m->world;
    struct fake_run *run;
    int r = atomic_load(&m->start_result);

    atomic_fetch_add(&m->n_requested, 1);
    if (r < 0)
        return err_set(e, r, "AGENT_NOT_FOUND", "There is no agent named \"%s\".", order->agent_name);
    pthread_mutex_lock(&w->mutex);
    assert_true(w->n_runs < MAX_RUNS);
    run = &w->runs[w->n_runs];
    run->machine = m;
    run->id = run_id;
    run->attempt = order->attempt;
    snprintf(run->task_uuid, sizeof(run->task_uuid), "%s", order->task_uuid);
    snprintf(run->agent, sizeof(run->agent), "%s", order->agent_name);
    snprintf(run->prompt, sizeof(run->prompt), "%s", order->prompt ? order->prompt : "");
    snprintf(run->table, sizeof(run->table), "%s", order->table_name ? order->table_name : "");
    run->activity = xstrdup(order->activity_json);
    atomic_store(&run->waits, atomic_load(&m->waits_in_start));
    w->n_runs++;
    pthread_mutex_unlock(&w->mutex);
    *ret_handle = run;
    *ret_pid = 4711;
    if (atomic_load(&m->ends_in_start))
        fake_succeed(run, "{\"quick\":true}");
    return 0;
}

static inline int64_t fake_room(void *arg, struct err *why)
{
    struct machine *m = arg;
    struct world *w = m->world;
    int64_t n = 0;

    atomic_fetch_add(&m->n_looked, 1);
    pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < w->n_runs; i++)
        n += w->runs[i].machine == m && !atomic_load(&w->runs[i].has_ended);
    pthread_mutex_unlock(&w->mutex);
    if (atomic_exchange(&m->holds_room, false)) {
        sem_post(&m->room_holds);
        sem_wait(&m->room_ends);
    }
    err_set(why, -EMFILE, "TOO_FEW_FILES", "no room");
    return atomic_load(&m->room) < 0 ? 0 : atomic_load(&m->room) == 0 ? INT64_MAX : atomic_load(&m->room) - n;
}

static inline void fake_stop(void *arg, void *handle)
{
    struct fake_run *run = handle;

    atomic_store(&run->was_requested, true);
    if (!atomic_load(&run->machine->ignores_stop))
        fake_end_as(run, (struct task_run_end){ .was_stopped = true, .error = "ended by signal 15 (Terminated)" });
}

static inline void fake_release(void *arg, void *handle)
{
    struct fake_run *run = handle;

    assert_false(atomic_exchange(&run->is_released, true));
}

static inline bool fake_waits(void *arg, void *handle)
{
    struct fake_run *run = handle;

    return atomic_load(&run->waits);
}

static inline char *fake_log(void *arg, void *handle, struct arena *a)
{
    struct fake_run *run = handle;

    return arena_printf(a, "log of run %lld", (long long)run->id);
}

/* ---- a machine ---- */

static inline void machine_wait(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        ;
}

static inline int machine_listeners(void *arg, struct arena *a, struct task_listeners *ret, struct err *e)
{
    struct machine *m = arg;

    struct task_listener *copies = arena_array(a, 1 + OTHERS_MAX, sizeof(*copies));

    copies[0] = m->listener;
    memcpy(&copies[1], m->others, m->n_others * sizeof(*copies));
    *ret = (struct task_listeners){ copies, atomic_load(&m->is_deaf) ? 0 : 1 + m->n_others };
    if (atomic_exchange(&m->holds_read, false)) {
        sem_post(&m->read_holds);
        machine_wait(&m->read_ends);
    }
    return 0;
}

static inline void machine_changed(void *arg, const char *task_uuid, const char *status)
{
    struct machine *m = arg;

    atomic_fetch_add(&m->n_changes, 1);
}

static inline void *machine_loop(void *arg)
{
    struct machine *m = arg;

    assert_int_equal(loop_run(m->loop, NULL), 0);
    return NULL;
}

static inline void machine_loop_runs(void *runs)
{
    sem_post(runs);
}

/* Until the loop runs, loop_call() takes the thread that made it for its own. */
static inline void machine_run_loop(struct machine *m)
{
    sem_t runs;

    sem_init(&runs, 0, 0);
    assert_int_equal(pthread_create(&m->thread, NULL, machine_loop, m), 0);
    loop_post(m->loop, machine_loop_runs, &runs);
    machine_wait(&runs);
    sem_destroy(&runs);
}

static inline void machine_load_settings(struct machine *m, const char *const *flags)
{
    const char *all[MAX_FLAGS] = {
        arena_printf(m->arena, "identity.machine_id=%s", m->id),
        "tasks.heartbeat_s=3600",
        "tasks.stale_after_s=7200",
        "tasks.sweep_s=3600",
        "tasks.presence_s=3600",
        "backend.poll_ms=10",
    };
    struct settings_sources from = { .flags = all, .n_flags = 6 };
    struct err e = { 0 };

    for (; flags && *flags; flags++)
        all[from.n_flags++] = *flags;
    if (settings_load(&from, &m->settings, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void machine_open_modules(struct machine *m, const char *const *flags)
{
    struct backend_embedded_config b = { .path = arena_printf(m->arena, "%s/backend.db", m->world->dir),
                                         .abbr = "svc",
                                         .poll_ms = 10 };
    struct err e = { 0 };

    machine_load_settings(m, flags);
    assert_int_equal(dir_make(m->dir, NULL), 0);
    assert_int_equal(store_open(m->dir, &m->store, NULL), 0);
    if (backend_embedded_open(&b, &m->backend, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(loop_new(&m->loop, NULL), 0);
    machine_run_loop(m);
}

static inline void machine_open_tasks(struct machine *m, bool is_serving)
{
    const struct tasks_config c = {
        .loop = m->loop,
        .store = m->store,
        .settings = m->settings,
        .backend = m->backend,
        .runner = { .arg = m,
                    .room = fake_room,
                    .start = fake_start,
                    .stop = fake_stop,
                    .release = fake_release,
                    .log = fake_log,
                    .waits = fake_waits },
        .listeners = machine_listeners,
        .on_change = machine_changed,
        .arg = m,
        .is_serving = is_serving,
    };
    struct err e = { 0 };

    if (tasks_open(&c, &m->tasks, &e) < 0)
        fail_msg("%s", e.text);
}

/* One app, one handler for every event of the activities table, one place. */
static inline struct machine *machine_open(struct world *w, const char *id, const char *const *flags)
{
    static const char *const tables[] = { TABLE };
    static const unsigned events[] = { ALL_EVENTS };
    struct machine *m = xcalloc(1, sizeof(*m));

    m->world = w;
    m->arena = arena_new();
    snprintf(m->id, sizeof(m->id), "%s", id);
    snprintf(m->dir, sizeof(m->dir), "%s/%s", w->dir, id);
    m->handlers[0] = (struct task_handler){
        .table = TABLE, .agent_name = "sorter", .workspace_slug = "default", .prompt = "sort it", .events = ALL_EVENTS
    };
    m->listener = (struct task_listener){
        .app_id = APP,
        .app_name = "triage",
        .display_name = "Triage",
        .tables = tables,
        .table_events = events,
        .n_tables = 1,
        .handlers = m->handlers,
        .n_handlers = 1,
        .max_concurrent = 1,
    };
    machine_open_modules(m, flags);
    machine_open_tasks(m, true);
    m->next = w->machines;
    w->machines = m;
    return m;
}

static inline void machine_start(struct machine *m)
{
    struct err e = { 0 };

    if (tasks_start(m->tasks, &e) < 0)
        fail_msg("%s", e.text);
    m->is_started = true;
}

static inline struct machine *machine_new(struct world *w, const char *id, const char *const *flags)
{
    struct machine *m = machine_open(w, id, flags);

    machine_start(m);
    return m;
}

static inline void machine_stop(struct machine *m)
{
    if (m->is_started)
        tasks_stop(m->tasks, clock_mono_ms() + WAIT_MS);
    m->is_started = false;
}

/* Restarts the machine on the same data: the double's earlier runs are over. */
static inline void machine_restart(struct machine *m)
{
    machine_stop(m);
    m->tasks = tasks_close(m->tasks);
    machine_open_tasks(m, true);
    machine_start(m);
}

static inline void machine_close(struct machine *m)
{
    machine_stop(m);
    loop_stop(m->loop);
    assert_int_equal(pthread_join(m->thread, NULL), 0);
    tasks_close(m->tasks);
    backend_close(m->backend);
    loop_free(m->loop);
    settings_free(m->settings);
    store_close(m->store);
    arena_free(m->arena);
    free(m);
}

/* ---- the world ---- */

static inline int world_set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));

    assert_int_equal(hash_init(NULL), 0);
    snprintf(w->dir, sizeof(w->dir), "/tmp/hearth-tasks-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->arena = arena_new();
    pthread_mutex_init(&w->mutex, NULL);
    *state = w;
    return 0;
}

static inline int world_tear_down(void **state)
{
    struct world *w = *state;

    while (w->machines) {
        struct machine *next = w->machines->next;

        machine_close(w->machines);
        w->machines = next;
    }
    for (size_t i = 0; i < w->n_runs; i++) {
        if (!atomic_load(&w->runs[i].is_released))
            fail_msg("the handle of run %zu was never released", i);
        free(w->runs[i].activity);
    }
    pthread_mutex_destroy(&w->mutex);
    assert_int_equal(dir_remove(w->dir, NULL), 0);
    arena_free(w->arena);
    free(w);
    return 0;
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

static inline size_t world_n_runs(struct world *w)
{
    size_t n;

    pthread_mutex_lock(&w->mutex);
    n = w->n_runs;
    pthread_mutex_unlock(&w->mutex);
    return n;
}

struct run_wait {
    struct world *w;
    size_t n;
};

static inline bool has_n_runs(void *arg)
{
    struct run_wait *wait = arg;

    return world_n_runs(wait->w) >= wait->n;
}

/* The n-th run that was started (from 0), after waiting for it. */
static inline struct fake_run *wait_run(struct world *w, size_t n)
{
    struct run_wait wait = { w, n + 1 };

    if (!wait_until(has_n_runs, &wait))
        fail_msg("run %zu was not started; there are %zu", n, world_n_runs(w));
    return &w->runs[n];
}

#include "machine_rows.h"
