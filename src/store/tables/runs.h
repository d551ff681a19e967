/* Task runs (table runs): one row for each attempt of an agent. Any thread; row texts live in the arena. */
#pragma once

#include "store/store.h"

struct run_row {
    int64_t id; /* set by the store */
    const char *task_uuid, *agent_name, *workspace_slug, *thread_slug;
    const char *status; /* pending, running, completed, failed; NULL on insert: pending */
    int64_t attempt;
    const char *machine_id;
    int64_t pid;              /* of the agent process; 0: none */
    const char *started_at;   /* set by the store when the status becomes running */
    const char *completed_at; /* set by the store when it becomes completed or failed */
    const char *error;
    const char *log; /* the last LIMIT_RUN_LOG_BYTES of its output */
};

/* Members that are NULL (pid: 0) are not changed. A log above LIMIT_RUN_LOG_BYTES loses its beginning. */
struct run_change {
    int64_t id;
    const char *status, *error, *log;
    int64_t pid;
};

/* A run that is completed or failed keeps its status and error. -ENOENT RUN_NOT_FOUND. */
int store_runs_update(struct store *s, const struct run_change *c, struct err *e) MUST_CHECK;
/* The runs of one task, oldest first, without logs. */
int store_runs_list(struct store *s, struct arena *a, const char *task_uuid, struct run_row **ret, size_t *ret_n,
                    struct err *e) MUST_CHECK;
/* Reads the run with its log. */
int store_runs_get(struct store *s, struct arena *a, int64_t id, struct run_row *ret, struct err *e) MUST_CHECK;
/* At service start: pending and running runs of this machine become failed with this error. */
int store_runs_abandon(struct store *s, const char *machine_id, const char *error, int64_t *ret_n,
                       struct err *e) MUST_CHECK;

/* Inside a writer closure. -ENOENT TASK_NOT_FOUND for an unknown task. ret_id may be NULL. */
int store_runs_add(struct sql_db *db, const struct run_row *row, int64_t *ret_id, struct err *e) MUST_CHECK;
int store_runs_change(struct sql_db *db, const struct run_change *c, struct err *e) MUST_CHECK;
