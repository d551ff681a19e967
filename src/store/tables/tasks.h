/* Tasks (table tasks): the service's own view of a piece of work, made from a row event or a webhook. Any thread.
 *
 * Row texts live in the arena; times are ISO 8601 and set by the store. Lists omit raw_data, old_data, prompt and
 * result. A task of a row event is unique by (backend_table, row_id). store_tasks_apply() is one transaction: either
 * the guard holds and everything is stored, or nothing is.
 *
 *     struct task_change done = { .uuid = id, .is_guarded = true, .if_attempt = 2, .if_unfinished = true,
 *                                 .attempt = -1, .status = "completed", .result = json, .retry_count = -1,
 *                                 .is_quarantined = -1 };
 *     struct task_step step = { .change = done, .run = &run_change, .dispatch_status = "completed" };
 *     r = store_tasks_apply(store, &step, &changed, e);
 */
#pragma once

#include "store/tables/calendar.h"
#include "store/tables/deliveries.h"
#include "store/tables/runs.h"
#include "base/uuid.h"

struct task_row {
    int64_t seq; /* order of arrival */
    const char *uuid, *title;
    const char *status;      /* pending, claimed, processing, completed, failed, ...; NULL on insert: pending */
    const char *action_type; /* SDK_TRIGGER, INSERT, UPDATE, DELETE */
    const char *source_app, *source_app_name;
    const char *backend_table, *row_id; /* NULL: triggered by webhook */
    const char *agent_name, *workspace_slug, *thread_slug, *prompt;
    const char *raw_data, *old_data; /* JSON */
    bool auto_run;
    const char *review;         /* NULL: no review needed; or waiting, approved, rejected */
    const char *error, *result; /* result: JSON */
    int64_t attempt;            /* 0: never claimed */
    const char *machine_id;
    const char *attempted_by; /* JSON array; NULL on insert: [] */
    int64_t retry_count;
    int64_t trigger_depth; /* tasks of agents that led to this one, each triggered by the one before; not in lists */
    const char *calendar_event_uuid;
    bool is_quarantined;
    const char *created_at, *updated_at, *completed_at;
};

/* The rows stored together with a new task; NULL: none. */
struct task_bundle {
    const struct task_row *task;
    const struct run_row *run; /* its task_uuid is the task's */
    int64_t *ret_run_id;       /* of run; may be NULL */
    const struct calendar_row *event;
    const struct delivery_row *delivery; /* answers a claimed delivery */
};

/* NULL and -1 keep the stored value. */
struct task_change {
    const char *uuid;
    bool is_guarded; /* apply only when attempt equals if_attempt */
    int64_t if_attempt;
    bool if_unfinished;    /* apply only when the status is not completed, failed or canceled */
    const char *if_status; /* apply only when this is the status */
    bool clears_outcome;   /* for a new attempt: error, result and completed_at become NULL first */
    const char *status;    /* completed, failed and canceled set completed_at */
    const char *error, *result, *review, *machine_id, *attempted_by;
    const char *raw_data, *old_data, *action_type;
    const char *agent_name, *workspace_slug, *thread_slug, *prompt;
    int64_t attempt, retry_count; /* -1 keep */
    int is_quarantined;           /* -1 keep, 0, 1 */
};

struct task_step {
    struct task_change change;
    const struct run_row *new_run;       /* NULL: none; its task_uuid is the change's uuid */
    int64_t *ret_run_id;                 /* of new_run; may be NULL */
    const struct run_change *run;        /* NULL: none */
    int64_t drop_run;                    /* id of a run to delete; 0: none */
    const char *dispatch_status;         /* of the task's calendar event; NULL: unchanged */
    const struct delivery_row *delivery; /* answers a claimed delivery; NULL: none */
};

struct task_filter {
    const char *status, *source_app; /* NULL: all */
    bool only_quarantined;
    int64_t limit, offset; /* limit 0: LIMIT_LIST_DEFAULT, never above LIMIT_LIST */
};

struct task_count {
    const char *status;
    int64_t n;
};

/* Stores the bundle, unless a task of the same backend row exists: then *ret_is_new is false, nothing is stored and
 * ret_uuid is the id of that task. */
int store_tasks_add(struct store *s, const struct task_bundle *b, bool *ret_is_new, char ret_uuid[UUID_SIZE],
                    struct err *e) MUST_CHECK;
/* Stores many bundles in one transaction, in this order; bundles whose backend row has a task already are skipped. */
int store_tasks_add_all(struct store *s, const struct task_bundle *bundles, size_t n, struct err *e) MUST_CHECK;
/* *ret_changed false: the task does not exist or a guard did not hold; nothing was stored. */
int store_tasks_apply(struct store *s, const struct task_step *step, bool *ret_changed, struct err *e) MUST_CHECK;
/* -ENOENT TASK_NOT_FOUND. */
int store_tasks_get(struct store *s, struct arena *a, const char *uuid, struct task_row *ret, struct err *e) MUST_CHECK;
int store_tasks_get_by_row(struct store *s, struct arena *a, const char *backend_table, const char *row_id,
                           struct task_row *ret, struct err *e) MUST_CHECK;
/* Newest first. */
int store_tasks_list(struct store *s, struct arena *a, const struct task_filter *f, struct task_row **ret,
                     size_t *ret_n, struct err *e) MUST_CHECK;
/* Tasks of one app (NULL: of no app) that can run, in order of arrival: pending, automatic or approved, not
 * quarantined. */
int store_tasks_waiting(struct store *s, struct arena *a, const char *source_app, int64_t limit, struct task_row **ret,
                        size_t *ret_n, struct err *e) MUST_CHECK;
/* The apps that have such tasks; a NULL element stands for tasks of no app. */
int store_tasks_waiting_apps(struct store *s, struct arena *a, const char ***ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;
/* Unfinished tasks that name this agent. */
int store_tasks_count_agent(struct store *s, const char *agent_name, int64_t *ret_n, struct err *e) MUST_CHECK;
int store_tasks_counts(struct store *s, struct arena *a, struct task_count **ret, size_t *ret_n,
                       struct err *e) MUST_CHECK;
