/* The internals of tasks, shared by the files of this folder only.
 *
 * One mutex guards the members of struct tasks marked as guarded; it is never held during a call to backend, store,
 * runner or callbacks. Jobs of the pool do the work. A coalesced job runs at most once at the same time, and once more
 * when it was requested during its run.
 */
#pragma once

#include "tasks/tasks.h"

#include "backend/status.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "store/tables/tasks.h"

#include <pthread.h>

/* metadata.dispatch_status of the calendar event */
#define DISPATCH_WAITING "waiting"
#define DISPATCH_REVIEW "review"
#define DISPATCH_RUNNING "running"
#define DISPATCH_COMPLETED "completed"
#define DISPATCH_FAILED "failed"
#define DISPATCH_QUARANTINED "quarantined"
#define DISPATCH_CANCELED "canceled"
#define DISPATCH_REJECTED "rejected"

#define REVIEW_WAITING "waiting"
#define REVIEW_APPROVED "approved"
#define REVIEW_REJECTED "rejected"

/* ---- coalesced_job.c ---- */

struct coalesced_job {
    struct tasks *tasks;
    void (*fn)(struct tasks *t, void *arg);
    void *arg;
    bool is_wanted, is_running; /* guarded */
};
void coalesced_job_init(struct coalesced_job *d, struct tasks *t, void (*fn)(struct tasks *t, void *arg), void *arg);
/* Any thread, the loop too. Does nothing while tasks do not serve. */
void coalesced_job_request(struct coalesced_job *d);
/* Runs the job when it was requested before tasks served. */
void coalesced_job_resume(struct coalesced_job *d);

/* ---- listening.c: the listeners, as last read ---- */

struct task_listening {
    int n_refs;          /* guarded */
    uint64_t read;       /* number of the read that it came from; 0: none */
    struct arena *arena; /* owned */
    struct task_listeners list;
    const char **tables; /* each once; with the table of deletions when an app works on DELETE */
    size_t n_tables;
};
struct task_listening *task_listening_hold(struct tasks *t); /* never NULL */
void task_listening_drop(struct tasks *t, struct task_listening *l);
int task_listening_renew(struct tasks *t, struct err *e) MUST_CHECK;
bool task_listening_is_current(struct tasks *t, const struct task_listening *l);
bool task_listening_has_table(const struct task_listening *l, const char *table);
const struct task_listener *task_listening_find(const struct task_listening *l, const char *app_id);

/* ---- match.c: the app that a row is work for ---- */

struct task_match {
    const struct task_listener *listener;
    const struct task_handler *handler; /* NULL: no handler for the table, so a person decides */
    enum backend_op op;
    bool is_review;
};
bool task_match(const struct task_listeners *l, const struct backend_row *row, struct task_match *ret);
/* Does the app want this kind of event of the row, whatever the row's own event column says? */
bool task_match_op(const struct task_listeners *l, const struct backend_row *row, enum backend_op op,
                   struct task_match *ret);

/* ---- run.c: places that are taken ---- */

enum task_fate { FATE_NONE, FATE_SERVICE_STOPS, FATE_LEASE_LOST, FATE_CANCELED };

/* Exists from the moment a place is taken until the end of the place's agent is settled. */
struct task_run {
    struct task_run *next;
    int n_refs;                 /* guarded, like every member that may change */
    struct arena *arena;        /* owned: app, table, row_id, end */
    const char *app;            /* NULL: task of no app */
    const char *table, *row_id; /* NULL: triggered, no backend row */
    char uuid[UUID_SIZE];       /* "" until the task is stored */
    int64_t attempt;            /* 0 until claimed */
    int64_t id;                 /* of the runs table; 0 until stored */
    int64_t seen_us;            /* when the event came; 0: the task waited, so the time is not measured */
    void *handle;               /* of the runner */
    bool needs_app_lock;        /* its claim waits for the app that owns the table */
    bool is_brief;              /* occupies no place: a report or a decision is at work on a waiting task */
    bool is_probe;              /* tests whether agents can be started again */
    bool is_started, has_ended, is_settling, is_reported, has_news;
    bool is_excused;         /* task_want_excuse() was true */
    bool is_waiting;         /* the calendar says that the run waits for a person; written by waits.c only */
    int n_reporting;         /* reports being handled: the end waits for them */
    int64_t linger_until_ms; /* the agent has reported its end, but its process still runs; 0: no such wait */
    enum task_fate fate;
    struct task_run_end end;
};

struct task_run_key {
    const char *app, *table, *row_id, *uuid;
};
/* Takes a place and gives the caller a reference. NULL: no place is free, or the row is at work already. */
struct task_run *task_run_reserve(struct tasks *t, const struct task_run_key *key, int64_t max_concurrent);
/* Found by row (table not NULL), by uuid, or by id; a reference, or NULL. */
struct task_run *task_run_of_row(struct tasks *t, const char *table, const char *row_id);
struct task_run *task_run_of_uuid(struct tasks *t, const char *uuid);
void task_run_unref(struct tasks *t, struct task_run *run);
/* Gives the place back; quietly: without immediately looking for a task that may take the place. */
void task_run_leave(struct tasks *t, struct task_run *run);
void task_run_leave_quietly(struct tasks *t, struct task_run *run);
/* Places of an app that are taken. Called with the mutex held. */
int64_t task_run_count_locked(struct tasks *t, const char *app);
/* Asks the agent to end; only the first fate counts. */
void task_run_stop(struct tasks *t, struct task_run *run, enum task_fate fate);
/* All runs, each with a reference. */
struct task_run **task_runs_hold(struct tasks *t, struct arena *a, size_t *ret_n);
/* Settles the run's end once the end is known and nothing delays it. */
void task_run_advance(struct tasks *t, struct task_run *run);
/* For a report or a decision: the run at work on the task, whose end waits in the meantime, or a brief run of the
 * caller's own, which keeps others off the task. Waits while a run is about to claim the task: until the claim is
 * stored or has failed, neither the store nor the row tells which attempt the report is about. */
struct task_run *task_run_enter(struct tasks *t, const struct task_run_key *key);
void task_run_exit(struct tasks *t, struct task_run *run, bool has_taken);

/* ---- want.c: no task can be started now ---- */

struct task_want { /* guarded */
    bool is_resting, is_probing;
    bool is_logged; /* the log has a line about the rest */
    bool was_full;  /* a task waits for a place among all child processes */
    int64_t until_ms, delay_ms;
    struct task_crowded {
        char uuid[UUID_SIZE];
        int n;
    } crowded[LIMIT_CROWDED_TASKS]; /* a ring: the tasks whose agents failed without processes left */
    size_t n_crowded;               /* added so far */
};
/* Of a failed start or claim: was the cause a lack of resources, or our own database? */
bool task_is_want(int r, const struct err *why);
/* May one more row be claimed? room: number of child processes that can be started now. Called with the mutex held. */
bool task_want_admit_locked(struct tasks *t, int64_t room, bool *ret_is_probe);
void task_want_note(struct tasks *t, const char *why);
void task_want_note_room(struct tasks *t, const char *why); /* there is no room for a start, and no run that may end */
/* The run's agent failed while the machine had hardly a process left. Begins a rest, longer each time; false when the
 * task has had LIMIT_CROWDED_RUNS such runs: then the run has failed. */
bool task_want_excuse(struct tasks *t, struct task_run *run) MUST_CHECK;
void task_want_end(struct tasks *t); /* an agent was started */
void task_want_left(struct tasks *t, const struct task_run *run);
void task_want_retry(struct tasks *t, void *arg);

/* ---- away.c: apps in Custom Mode that do not answer ---- */

struct task_away {   /* guarded */
    bool is_waiting; /* for the next look */
    int64_t delay_ms;
};
void task_away_note(struct tasks *t);
void task_away_run(struct tasks *t, void *arg);
void task_away_reset(struct tasks *t); /* an app was registered, started or ended */

/* ---- waits.c: runs that wait for a person ---- */

void task_waits_run(struct tasks *t, void *arg);

/* ---- apps.c: waiting lists ---- */

struct task_app {
    struct task_app *next;
    char *id; /* owned; NULL: tasks of no app */
    struct coalesced_job dispatch;
    bool has_waiting, has_overflow; /* guarded, like all below */
    uint64_t n_added;
    int64_t n_pending; /* estimated number of pending tasks; -1: not counted */
    int n_unstored;    /* waiting tasks of the current batch */
};
struct task_app *task_app_of(struct tasks *t, const char *id);
void task_app_added(struct tasks *t, struct task_app *app); /* a task waits: look for a place */
void task_apps_recount(struct tasks *t);
void task_apps_dispatch(struct tasks *t);
struct task_app *task_apps_free(struct task_app *app);

/* ---- intake.c ---- */

struct task_intake_item;
void task_intake_event(void *tasks, const struct backend_event *event);
void task_intake_hint(struct tasks *t, const char *table, const char *row_id);
/* False: the queue is full, the last rows are left out. */
bool task_intake_rows(struct tasks *t, const struct backend_rows *rows);
void task_intake_run(struct tasks *t, void *arg);
void task_intake_clear(struct tasks *t);

/* ---- follow.c: our task of a row that is not (or no longer) ours follows the row ---- */

/* A row with an attempt before the task's is read again: it may be older than what was followed meanwhile. */
int task_follow(struct tasks *t, const struct backend_row *row, struct err *e) MUST_CHECK;
/* Reads the row first; a deleted row cancels the task. -EBUSY STORE_BUSY: the task changed during each look. */
int task_follow_now(struct tasks *t, const char *table, const char *row_id, struct err *e) MUST_CHECK;
/* Is a run of ours at work on the task, or a report or decision about it being handled? */
bool task_is_at_work(struct tasks *t, const char *uuid);

/* ---- outside.c: work done and reported by programs that we did not start ---- */

/* The run that is open; 0: none. */
int64_t task_open_run(struct tasks *t, struct arena *a, const struct task_row *task);
/* For one round of the sweep: tasks without a row that are at work; those without further reports wait again. */
void task_outside_look(struct tasks *t, const struct task_row *task);
void task_outside_end_round(struct tasks *t);
void task_outside_clear(struct tasks *t);

/* ---- dispatch.c, start.c ---- */

void task_dispatch_run(struct tasks *t, void *app);

struct task_start {
    struct tasks *tasks;
    struct task_run *run;   /* with a reference */
    struct arena *arena;    /* owned */
    struct task_row task;   /* of new work; uuid NULL: read the waiting task that the run names */
    bool is_stored;         /* the store has the task already */
    int64_t known_attempt;  /* the attempt that the store had before this one */
    struct backend_row row; /* after the claim */
    pid_t pid;
};
struct task_start *task_start_new(struct tasks *t, struct task_run *run);
void task_start_submit(struct task_start *s); /* takes it over */

/* ---- describe.c: rows of the store ---- */

/* Texts are in the arena, or borrowed from the trigger. */
void task_describe_row(struct tasks *t, struct arena *a, const struct task_match *m, const struct backend_row *row,
                       struct task_row *ret);
void task_describe_trigger(struct arena *a, const struct task_trigger *in, struct task_row *ret);
/* uuid NULL: a new one. */
struct calendar_row *task_describe_event(struct arena *a, const struct task_row *task, const char *dispatch_status,
                                         const char *uuid);
char *task_describe_activity(struct arena *a, const struct task_row *task, const struct backend_row *row);

/* ---- settle.c: ends of attempts ---- */

struct task_ref {
    const char *uuid, *table, *row_id, *machine_id; /* table NULL: no backend row */
    int64_t attempt;
    int64_t known_attempt;         /* as the store has it */
    int64_t run_id;                /* 0: no run */
    const struct run_row *outside; /* NULL, or the run to add for work from outside that has no run yet */
    const char *log;
};
struct task_ref task_ref_of_run(struct tasks *t, const struct task_run *run);
struct task_ref task_ref_of_task(const struct task_row *task);
struct backend_lease task_lease_of(const struct task_ref *ref);
/* Claims the row of a waiting task for a report or a decision. */
int task_take_row(struct tasks *t, struct arena *a, const struct task_row *task, struct task_ref *ret,
                  struct err *e) MUST_CHECK;
int task_settle_completed(struct tasks *t, const struct task_ref *ref, const char *result_json,
                          struct err *e) MUST_CHECK;
int task_settle_failed(struct tasks *t, const struct task_ref *ref, const char *error, struct err *e) MUST_CHECK;
/* No machine works on the row any more; review NULL: unchanged. */
int task_settle_canceled(struct tasks *t, const struct task_ref *ref, const char *reason, const char *review,
                         struct err *e) MUST_CHECK;
/* The lease is released; the task waits again. */
int task_settle_released(struct tasks *t, const struct task_ref *ref, const char *why, struct err *e) MUST_CHECK;
/* The same for an attempt that never began, or that lacked processes: its run is removed. */
int task_settle_withdrawn(struct tasks *t, const struct task_ref *ref, struct err *e) MUST_CHECK;
void task_settle_run(void *job); /* of a struct task_job */
void task_note_lost(struct tasks *t, struct task_run *run);

struct task_job {
    struct tasks *tasks;
    struct task_run *run;
};

/* ---- retry.c, presence.c, sweep.c, recover.c ---- */

void task_retry_broadcast(struct tasks *t, const struct backend_row *row, const char *failed_by, const char *reason);
void task_retry_listen(struct tasks *t, const struct task_listening *l);
/* -EADDRINUSE MACHINE_ID_TAKEN: another service works with this machine id. */
int task_presence_occupy(struct tasks *t, struct err *e) MUST_CHECK;
void task_presence_put(struct tasks *t, void *arg);
void task_presence_remove(struct tasks *t);
void task_sweep_run(struct tasks *t, void *arg);
/* Frees stale leases, and passes the newest `limit` claimable rows of each table to intake; with goes_on also the next
 * LIMIT_LIST of older ones, where the last such call stopped. */
void task_sweep_tables(struct tasks *t, int64_t limit, bool goes_on);
void task_sweep_clear(struct tasks *t);
void task_heartbeat_run(struct tasks *t, void *arg);
void task_linger_run(struct tasks *t, void *arg);
/* Compares our tasks with their rows: the claimed tasks; after a gap also the pending and the newest failed ones; at
 * the start also tasks without a row that were at work. */
enum task_reconcile_depth { RECONCILE_LEASED, RECONCILE_GAP, RECONCILE_START };
int task_reconcile(struct tasks *t, enum task_reconcile_depth depth, struct err *e) MUST_CHECK;
/* Where events may be lost without a gap, or do not arrive at all: a few of the pending and of the failed tasks, the
 * next ones each time. */
int task_reconcile_some(struct tasks *t, struct err *e) MUST_CHECK;
int task_recover(struct tasks *t, struct err *e) MUST_CHECK;

/* ---- tasks.c ---- */

/* Events were missed: the sweep looks for the changes. */
void task_note_gap(struct tasks *t);
/* r is what the look at a row or at tasks returned: after an error that may pass (backend_error_passes()) the next
 * sweep looks as after a gap. Never a sweep at once: the backend may be away for long. */
void task_note_missed(struct tasks *t, int r);

struct task_meters {
    struct metric *claims, *leases_lost, *event_to_start;
};

enum { TASK_OUTSIDE_BUCKETS = 4096 };

struct tasks {
    struct tasks_config config;
    struct arena *arena; /* owned: machine_id, deletions */
    const char *machine_id;
    const char *deletions; /* table of the work that DELETEs left */
    char started_at[25];
    struct pool *pool; /* owned; NULL while not serving */
    struct loop_timer *heartbeat_timer, *sweep_timer, *presence_timer, *linger_timer, *count_timer, *want_timer,
        *wait_timer, *away_timer; /* owned; loop thread */
    struct coalesced_job intake, sweep, heartbeat, linger, presence, relisten, count, retry, waits, away_look;
    struct task_meters meters;
    bool is_counting; /* loop thread */

    pthread_mutex_t mutex;      /* guards all below */
    pthread_cond_t has_changed; /* a run has left, or its claim is stored */
    struct task_listening *listening;
    uint64_t n_listening_reads; /* reads of the listeners that have begun */
    struct task_run *runs;
    struct task_app *apps;
    struct task_want want;
    struct task_away away;
    struct task_intake_item *first_item, **last_item;
    size_t n_items, n_item_bytes;
    struct task_outside *outside[TASK_OUTSIDE_BUCKETS]; /* not guarded: used by the sweep only */
    struct task_round *rounds;                          /* the same */
    int64_t n_agents_started;                           /* so far */
    int64_t pending_offset, failed_offset;              /* the same: where task_reconcile_some() goes on */
    int most_app_locks; /* half of the threads: claims that wait for apps to lock rows of their own tables */
    bool is_serving, is_stopping;
    bool may_lose_events;     /* of the backend's provider: a change may be lost without a gap that tells of it */
    bool is_waiting;          /* at the start: work begins when the rows are there and the other service is gone */
    bool is_waiting_for_rows; /* of these two causes */
    bool is_id_taken;         /* another service works with our machine id: this one takes up no work */
    bool has_gap;             /* events were missed: the next sweep looks deeper */
};

struct backend_claim task_claim_of(struct tasks *t, const char *table, const char *row_id);
/* After a transition is stored: writes a log line and notifies the stream of changes and the gauges. */
void task_notify(struct tasks *t, const char *uuid, const char *status, const char *fmt, ...) PRINTF_LIKE(4, 5);
void task_emit(struct tasks *t, const char *uuid, const char *status); /* without a line in the log */
/* False: the pool is stopping and fn will not run. */
bool task_submit(struct tasks *t, void (*fn)(void *arg), void *arg) MUST_CHECK;
bool task_needs_person(const struct task_row *task); /* may not run (again) yet: no person has approved it */
/* -EALREADY with that code and a sentence that states the task's status and what can be done with the task. */
int task_refuse_state(const struct task_row *task, const char *code, struct err *e);
