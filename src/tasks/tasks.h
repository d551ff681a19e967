/* From a row event to a claim, a run and its end. The event is a hint, the sweep is authoritative (architecture section
 * 4).
 *
 * `listeners` names the apps that work on each table; `runner` carries out a run: service/ fills in both, so that tasks
 * knows neither apps nor agents. All work happens on tasks' own pool; callbacks from the backend and the loop only
 * queue. A row is claimed only when its app has a free place (max_concurrent_tasks); until then its task waits, oldest
 * first, as a pending task with a calendar event, and another machine with a free place may take it. A row for review
 * is claimed when a person runs it.
 */
#pragma once

#include "backend/backend.h"
#include "backend/filter.h"
#include "base/loop.h"
#include "base/pool.h"
#include "base/uuid.h"
#include "settings/settings.h"
#include "store/store.h"

struct task_handler {
    const char *table, *agent_name, *workspace_slug, *thread_slug, *prompt;
    unsigned events;
    bool is_review;
};

/* One app that listens (its backend block). */
struct task_listener {
    const char *app_id, *app_name, *display_name;
    const char *const *tables;
    const unsigned *table_events;
    size_t n_tables; /* table names as the backend has them; mask of enum backend_op */
    struct filter *filter;
    const struct task_handler *handlers;
    size_t n_handlers;
    int64_t max_concurrent;
};
struct task_listeners {
    const struct task_listener *items;
    size_t n;
};

struct task_run_order {
    const char *task_uuid, *agent_name, *workspace_slug, *thread_slug, *prompt, *table_name, *activity_json,
        *machine_id;
    const char *app_id, *app_name; /* the app that the task belongs to; NULL: no app */
    int64_t attempt;
};
struct task_run_end {
    bool is_success, was_stopped;
    bool was_crowded; /* the agent failed while the machine had hardly a process left: no failure of the machine */
    const char *result_json, *error, *log;
};

struct task_runner {
    void *arg;
    /* -ENOENT AGENT_NOT_FOUND; NULL: every name is valid. */
    int (*check)(void *arg, const char *agent_name, struct err *e);
    /* How many more agents can be started now; below 1, why says the reason. NULL: any number. */
    int64_t (*room)(void *arg, struct err *why);
    /* Starts the agent; later tasks_run_ended(tasks, run_id, end) is called once, from any thread. *ret_handle is for
     * stop(). */
    int (*start)(void *arg, int64_t run_id, const struct task_run_order *order, void **ret_handle, pid_t *ret_pid,
                 struct err *e);
    void (*stop)(void *arg, void *handle);
    void (*release)(void *arg, void *handle);               /* the handle is not used any more */
    char *(*log)(void *arg, void *handle, struct arena *a); /* the agent's output so far */
    bool (*waits)(void *arg, void *handle);                 /* for a person's answer; NULL: no run ever does */
};

/* A machine that did not report itself for so many of tasks.presence_s is not there. */
enum { TASK_MISSED_SIGNS = 3 };

struct tasks;
struct tasks_config {
    struct loop *loop;
    struct store *store;
    struct settings *settings;
    struct backend *backend;
    struct task_runner runner;
    /* Parsed listeners, in the arena; read again after tasks_listeners_changed(). */
    int (*listeners)(void *arg, struct arena *a, struct task_listeners *ret, struct err *e);
    void (*on_change)(void *arg, const char *task_uuid, const char *status); /* any thread: for GET /api/events */
    void *arg;
    const char *instance; /* of this data folder, see struct backend_presence; NULL: ids are not compared */
    bool is_serving;      /* false: no intake, no timers (command line without a service) */
};

int tasks_open(const struct tasks_config *c, struct tasks **ret, struct err *e) MUST_CHECK;
/* Recovery at start (50 newest of each table, pending and failed), subscription, heartbeat and sweep timers, presence.
 */
int tasks_start(struct tasks *t, struct err *e) MUST_CHECK;
/* Stops intake, ends runs (they have until deadline_ms of clock_mono_ms()), releases their leases. Not to be called on
 * the loop thread, which keeps running. */
void tasks_stop(struct tasks *t, int64_t deadline_ms);
struct tasks *tasks_close(struct tasks *t);
void tasks_listeners_changed(struct tasks *t);
/* Like tasks_listeners_changed(), but the listeners are read when it returns; any worker. */
void tasks_listen_now(struct tasks *t);
void tasks_run_ended(struct tasks *t, int64_t run_id, const struct task_run_end *end);
/* A run began or ceased to wait for a person. Any thread, the loop as well. */
void tasks_waits_changed(struct tasks *t);
/* The apps that listen now, read anew; any worker. */
int tasks_read_listeners(struct tasks *t, struct arena *a, struct task_listeners *ret, struct err *e) MUST_CHECK;
const char *tasks_machine_id(const struct tasks *t);

/* trigger-agent of the webhook (D5). */
struct task_ids {
    char task_uuid[UUID_SIZE], calendar_uuid[UUID_SIZE];
};
struct task_trigger {
    const char *app_id, *app_name; /* either may be NULL */
    const char *raw_data;          /* JSON object text */
    bool is_auto_run;
    int64_t depth; /* 0: by a program or a person; else of task_row.trigger_depth */
    const char *agent_name, *workspace_slug, *thread_slug, *prompt;
    const struct task_ids *ids;          /* chosen by the caller; NULL: made here */
    const struct delivery_row *delivery; /* answered in the transaction that stores the task; NULL: none */
};
int tasks_trigger(struct tasks *t, const struct task_trigger *in, struct task_ids *ret, struct err *e) MUST_CHECK;

/* Reports of an agent or an app. */
enum task_report { TASK_STARTED, TASK_CLAIMED, TASK_COMPLETED, TASK_FAILED, TASK_CANCELED };
struct tasks_report_request {
    const char *uuid; /* of the task */
    enum task_report what;
    const char *machine_id;  /* of the machine that runs the task; NULL: not given */
    int64_t attempt;         /* 0: not given, the newest run is meant */
    const char *result_json; /* of TASK_COMPLETED; NULL: {} */
    const char *error;       /* of TASK_FAILED and TASK_CANCELED; NULL: not given */
};
int tasks_report(struct tasks *t, const struct tasks_report_request *request, const char **ret_status,
                 struct err *e) MUST_CHECK;

/* Runs a task that awaits review; agent_name NULL: the agent the task names. -EALREADY TASK_NOT_WAITING when the task
 * does not wait for a person. */
int tasks_run_now(struct tasks *t, const char *task_uuid, const char *agent_name, struct err *e) MUST_CHECK;
int tasks_reject(struct tasks *t, const char *task_uuid, const char *reason, struct err *e) MUST_CHECK;
/* Runs a failed, canceled or quarantined task again; agent_name NULL: the agent the task names. -EALREADY
 * TASK_NOT_FAILED, -ENOENT AGENT_NOT_FOUND. */
int tasks_replay(struct tasks *t, const char *task_uuid, const char *agent_name, struct err *e) MUST_CHECK;
/* A person ends the task in any state: waiting, at work here, outside or on another machine. -EALREADY
 * TASK_ALREADY_FINISHED. */
int tasks_cancel(struct tasks *t, const char *task_uuid, const char *reason, struct err *e) MUST_CHECK;
struct task_sum {
    int64_t n_done, n_left;
};
/* All tasks of that status (failed or canceled), of one app or of all apps (NULL). */
int tasks_replay_all(struct tasks *t, const char *app_id, const char *status, struct task_sum *ret,
                     struct err *e) MUST_CHECK;
/* Rejects all waiting tasks of an app that is removed. */
int tasks_reject_app(struct tasks *t, const char *app_id, const char *reason, struct task_sum *ret,
                     struct err *e) MUST_CHECK;
/* Output of the current run, or NULL. */
char *tasks_live_log(struct tasks *t, const char *task_uuid, struct arena *a);
void tasks_sweep_now(struct tasks *t);
/* Another service works with our machine id, so this one takes up no work until the other is gone. */
bool tasks_is_id_taken(struct tasks *t);
