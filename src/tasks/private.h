/* The insides of tasks, shared by the files of this folder only.
 *
 * One mutex guards what struct tasks marks as guarded; it is never held over a call to backend, store, runner or callbacks. Work is
 * done by jobs of the pool. A `duty` is a job that runs at most once at a time and once more when it was wanted meanwhile.
 */
#pragma once

#include "tasks/tasks.h"

#include "base/metrics.h"
#include "store/tasks.h"

#include <pthread.h>

#define TASK_PENDING "pending"
#define TASK_CLAIMED_STATUS "claimed"
#define TASK_PROCESSING "processing"
#define TASK_COMPLETED_STATUS "completed"
#define TASK_FAILED_STATUS "failed"
#define TASK_CANCELED_STATUS "canceled"

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

/* ---- duty.c ---- */

struct task_duty {
    struct tasks *tasks;
    void (*fn)(struct tasks *t, void *arg);
    void *arg;
    bool is_wanted, is_running;         /* guarded */
};
void task_duty_init(struct task_duty *d, struct tasks *t, void (*fn)(struct tasks *t, void *arg), void *arg);
/* Any thread, the loop too. Does nothing while tasks do not serve. */
void task_duty_want(struct task_duty *d);
/* Runs it when it was wanted before tasks served. */
void task_duty_resume(struct task_duty *d);

/* ---- listening.c: who listens, as asked last ---- */

struct task_listening {
    int n_refs;                         /* guarded */
    struct arena *arena;                /* owned */
    struct task_listeners list;
    const char **tables;                /* each once; with the deletions when somebody works on DELETE */
    size_t n_tables;
};
struct task_listening *task_listening_hold(struct tasks *t);           /* never NULL */
void task_listening_drop(struct tasks *t, struct task_listening *l);
int task_listening_renew(struct tasks *t, struct err *e) MUST_CHECK;
bool task_listening_has_table(const struct task_listening *l, const char *table);
const struct task_listener *task_listening_find(const struct task_listening *l, const char *app_id);

/* ---- match.c: whose work is a row ---- */

struct task_match {
    const struct task_listener *listener;
    const struct task_handler *handler; /* NULL: none for the table, so a person decides */
    enum backend_op op;
    bool is_review;
};
bool task_match(const struct task_listeners *l, const struct backend_row *row, struct task_match *ret);
/* Does the app want this kind of event of the row, whatever the row's own says? */
bool task_match_op(const struct task_listeners *l, const struct backend_row *row, enum backend_op op, struct task_match *ret);

/* ---- run.c: places that are taken ---- */

enum task_fate { FATE_NONE, FATE_SERVICE_STOPS, FATE_LEASE_LOST, FATE_CANCELED };

/* From the moment a place is taken until its agent's end is settled. */
struct task_run {
    struct task_run *next;
    int n_refs;                         /* guarded, like all that may change */
    struct arena *arena;                /* owned: app, table, row_id, end */
    const char *app;                    /* NULL: task of no app */
    const char *table, *row_id;         /* NULL: triggered, no backend row */
    char uuid[UUID_SIZE];               /* "" until the task is stored */
    int64_t attempt;                    /* 0 until claimed */
    int64_t id;                         /* of the runs table; 0 until stored */
    int64_t seen_us;                    /* when the event came; 0: it waited, not measured */
    void *handle;                       /* of the runner */
    bool is_brief;                      /* no place: a report or a decision is at work on a waiting task */
    bool is_probe;                      /* tries whether agents can be started again */
    bool is_started, has_ended, is_settling, is_reported, has_news;
    int n_reporting;                    /* reports that are at work: the end waits for them */
    int64_t linger_until_ms;            /* reported, but its process goes on; 0: not so */
    enum task_fate fate;
    struct task_run_end end;
};

struct task_run_key { const char *app, *table, *row_id, *uuid; };
/* Takes a place and gives it a reference of the caller's. NULL: none is free or the row is at work already. */
struct task_run *task_run_reserve(struct tasks *t, const struct task_run_key *key, int64_t max_concurrent);
/* By row (table not NULL), by uuid, or by id; a reference, or NULL. */
struct task_run *task_run_of_row(struct tasks *t, const char *table, const char *row_id);
struct task_run *task_run_of_uuid(struct tasks *t, const char *uuid);
void task_run_unref(struct tasks *t, struct task_run *run);
/* Gives the place back; quietly: without looking at once for who may have it. */
void task_run_leave(struct tasks *t, struct task_run *run);
void task_run_leave_quietly(struct tasks *t, struct task_run *run);
/* Places of an app that are taken. Called with the mutex held. */
int64_t task_run_count_locked(struct tasks *t, const char *app);
/* Asks the agent to end; the first fate counts. */
void task_run_stop(struct tasks *t, struct task_run *run, enum task_fate fate);
/* All runs, each with a reference. */
struct task_run **task_runs_hold(struct tasks *t, struct arena *a, size_t *ret_n);
/* Settles its end once it is known and nothing stands against it. */
void task_run_advance(struct tasks *t, struct task_run *run);
/* For a report or a decision: the run at work on the task, whose end waits meanwhile, or a brief one of the caller's alone, which
 * keeps others off the task. */
struct task_run *task_run_enter(struct tasks *t, const struct task_run_key *key);
void task_run_exit(struct tasks *t, struct task_run *run, bool has_taken);

/* ---- want.c: nothing can be started just now ---- */

struct task_want {                      /* guarded */
    bool is_resting, is_probing;
    bool was_full;                      /* somebody waits for a place among all children */
    int64_t until_ms, delay_ms;
};
bool task_is_want(int r, const struct err *why);        /* of a start or claim that failed: for want of resources, or of our own database */
/* May one more be claimed? room: children that can be started now. Called with the mutex held. */
bool task_want_admit_locked(struct tasks *t, int64_t room, bool *ret_is_probe);
void task_want_note(struct tasks *t, const char *why);
void task_want_end(struct tasks *t);    /* an agent was started */
void task_want_left(struct tasks *t, const struct task_run *run);
void task_want_retry(struct tasks *t, void *arg);

/* ---- apps.c: waiting lists ---- */

struct task_app {
    struct task_app *next;
    char *id;                           /* owned; NULL: tasks of no app */
    struct task_duty dispatch;
    bool has_waiting, has_overflow;     /* guarded, like all below */
    uint64_t n_added;
    int64_t n_pending;                  /* about as many pending tasks; -1: not counted */
    int n_unstored;                     /* waiting ones of the batch at hand */
};
struct task_app *task_app_of(struct tasks *t, const char *id);
void task_app_added(struct tasks *t, struct task_app *app);        /* something waits: look for a place */
void task_apps_recount(struct tasks *t);
void task_apps_dispatch(struct tasks *t);
struct task_app *task_apps_free(struct task_app *app);

/* ---- intake.c ---- */

struct task_intake_item;
void task_intake_event(void *tasks, const struct backend_event *event);
void task_intake_hint(struct tasks *t, const char *table, const char *row_id);
void task_intake_rows(struct tasks *t, const struct backend_rows *rows);
void task_intake_run(struct tasks *t, void *arg);
void task_intake_clear(struct tasks *t);

/* ---- follow.c: our task of a row that is not (or no longer) ours follows the row ---- */

int task_follow(struct tasks *t, const struct backend_row *row, struct err *e) MUST_CHECK;
/* Reads the row first; one that is gone cancels the task. */
int task_follow_now(struct tasks *t, const char *table, const char *row_id, struct err *e) MUST_CHECK;
/* Is a run of ours at work on it, or a report or decision being handled? */
bool task_is_at_work(struct tasks *t, const char *uuid);

/* ---- outside.c: work that is done and reported by programs we did not start ---- */

/* The run that goes on, 0: none. */
int64_t task_open_run(struct tasks *t, struct arena *a, const struct task_row *task);
/* Of one round of the sweep: tasks without a row that are at work; those that nobody reports on any more wait again. */
void task_outside_look(struct tasks *t, const struct task_row *task);
void task_outside_end_round(struct tasks *t);
void task_outside_clear(struct tasks *t);

/* ---- dispatch.c, start.c ---- */

void task_dispatch_run(struct tasks *t, void *app);

struct task_start {
    struct tasks *tasks;
    struct task_run *run;               /* with a reference */
    struct arena *arena;                /* owned */
    struct task_row task;               /* of new work; uuid NULL: read the waiting task that the run names */
    bool is_stored;                     /* the store has the task already */
    int64_t known_attempt;              /* the store's before this one */
    struct backend_row row;             /* after the claim */
    pid_t pid;
};
struct task_start *task_start_new(struct tasks *t, struct task_run *run);
void task_start_submit(struct task_start *s);           /* takes it over */

/* ---- describe.c: rows of the store ---- */

/* Texts land in the arena, or are borrowed from the trigger. */
void task_describe_row(struct tasks *t, struct arena *a, const struct task_match *m, const struct backend_row *row, struct task_row *ret);
void task_describe_trigger(struct arena *a, const struct task_trigger *in, struct task_row *ret);
/* uuid NULL: a new one. */
struct calendar_row *task_describe_event(struct arena *a, const struct task_row *task, const char *dispatch_status, const char *uuid);
char *task_describe_activity(struct arena *a, const struct task_row *task, const struct backend_row *row);

/* ---- settle.c: ends of attempts ---- */

struct task_ref {
    const char *uuid, *table, *row_id, *machine_id;     /* table NULL: no backend row */
    int64_t attempt;
    int64_t known_attempt;              /* as the store has it */
    int64_t run_id;                     /* 0: no run */
    const struct run_row *outside;      /* NULL, or the run to add for work from outside that has none yet */
    const char *log;
};
struct task_ref task_ref_of_run(struct tasks *t, const struct task_run *run);
struct task_ref task_ref_of_task(const struct task_row *task);
struct backend_lease task_lease_of(const struct task_ref *ref);
/* Claims the row of a waiting task for a report or a decision. */
int task_take_row(struct tasks *t, struct arena *a, const struct task_row *task, struct task_ref *ret, struct err *e) MUST_CHECK;
int task_settle_completed(struct tasks *t, const struct task_ref *ref, const char *result_json, struct err *e) MUST_CHECK;
int task_settle_failed(struct tasks *t, const struct task_ref *ref, const char *error, struct err *e) MUST_CHECK;
/* The row is work of nobody any more; review NULL: stays. */
int task_settle_canceled(struct tasks *t, const struct task_ref *ref, const char *reason, const char *review, struct err *e) MUST_CHECK;
/* The lease goes back; the task waits again. */
int task_settle_released(struct tasks *t, const struct task_ref *ref, const char *why, struct err *e) MUST_CHECK;
/* The same for an attempt that never began: its run is forgotten. */
int task_settle_withdrawn(struct tasks *t, const struct task_ref *ref, struct err *e) MUST_CHECK;
void task_settle_run(void *job);        /* of a struct task_job */
void task_note_lost(struct tasks *t, struct task_run *run);

struct task_job { struct tasks *tasks; struct task_run *run; };

/* ---- retry.c, presence.c, sweep.c, recover.c ---- */

void task_retry_broadcast(struct tasks *t, const struct backend_row *row, const char *failed_by, const char *reason);
void task_retry_listen(struct tasks *t, const struct task_listening *l);
/* -EADDRINUSE MACHINE_ID_TAKEN: another service is at work with this machine id. */
int task_presence_occupy(struct tasks *t, struct err *e) MUST_CHECK;
void task_presence_put(struct tasks *t, void *arg);
void task_presence_remove(struct tasks *t);
void task_sweep_run(struct tasks *t, void *arg);
/* Stale leases are freed, and the newest `limit` rows of each table that could be claimed go to intake. */
void task_sweep_tables(struct tasks *t, int64_t limit);
void task_heartbeat_run(struct tasks *t, void *arg);
void task_linger_run(struct tasks *t, void *arg);
/* Our tasks compared with their rows: those that are claimed; after a gap the pending and the newest failed too; at start also those
 * without a row, which were at work. */
enum task_reconcile_depth { RECONCILE_LEASED, RECONCILE_GAP, RECONCILE_START };
int task_reconcile(struct tasks *t, enum task_reconcile_depth depth, struct err *e) MUST_CHECK;
int task_recover(struct tasks *t, struct err *e) MUST_CHECK;

/* ---- tasks.c ---- */

/* Events were missed: the sweep looks for what happened. */
void task_note_gap(struct tasks *t);

struct task_meters { struct metric *claims, *leases_lost, *event_to_start; };

struct tasks {
    struct tasks_config config;
    struct arena *arena;                /* owned: machine_id, deletions */
    const char *machine_id;
    const char *deletions;              /* table of what DELETEs left to do */
    char started_at[25];
    struct pool *pool;                  /* owned; NULL while not serving */
    struct loop_timer *heartbeat_timer, *sweep_timer, *presence_timer, *linger_timer, *count_timer, *want_timer, *wait_timer;        /* owned; loop thread */
    struct task_duty intake, sweep, heartbeat, linger, presence, relisten, count, retry;
    struct task_meters meters;
    bool is_counting;                   /* loop thread */

    pthread_mutex_t mutex;              /* guards all below */
    pthread_cond_t has_left;
    struct task_listening *listening;
    struct task_run *runs;
    struct task_app *apps;
    struct task_want want;
    struct task_intake_item *first_item, **last_item;
    size_t n_items;
    struct task_outside *outside;       /* not guarded: the sweep's alone */
    bool is_serving, is_stopping;
    bool is_waiting_for_id;             /* at the start; the work begins when that one is gone */
    bool is_id_taken;                   /* another service works with our machine id: this one takes up nothing */
    bool has_gap;                       /* events were missed: the next sweep looks deeper */
};

struct backend_claim task_claim_of(struct tasks *t, const char *table, const char *row_id);
/* After a transition is stored: one log line, the stream of changes, the gauges. */
void task_tell(struct tasks *t, const char *uuid, const char *status, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Machines in a JSON array of them, and whether `machine` is one. */
size_t task_count_machines(const char *attempted_by, const char *machine, bool *ret_has);
void task_emit(struct tasks *t, const char *uuid, const char *status);      /* without a line in the log */
/* False: the pool is stopping, fn will not run. */
bool task_submit(struct tasks *t, void (*fn)(void *arg), void *arg) MUST_CHECK;
bool task_is_finished(const char *status);
bool task_is_leased(const char *status);
bool task_needs_person(const struct task_row *task);   /* to be run (again): nobody has approved it yet */
/* -EALREADY with that code and a sentence that says how the task is and what can be done with it. */
int task_refuse_state(const struct task_row *task, const char *code, struct err *e);
