/* Tasks and runs in the form of all routes (specification, "Task" and "Task run"; decision D5). */
#pragma once

#include "api/route.h"
#include "store/tables/tasks.h"

extern const struct field task_shape[], listed_task_shape[] /* without result */, run_shape[];

/* What a person may add when running or rejecting a task, from the task list or from the calendar. */
struct task_run_body {
    const char *agent_name;
};
struct task_reject_body {
    const char *reason;
};
extern const struct field task_run_fields[], task_reject_fields[], task_cancel_fields[];

void write_listed_task(struct json_writer *w, const struct task_row *row);
void write_task(struct json_writer *w, const char *name, const struct task_row *row);
void write_runs(struct json_writer *w, const char *name, const struct run_row *rows, size_t n);

/* The task, if the caller may see it (an app sees only its own); else -ENOENT TASK_NOT_FOUND. */
int task_of_caller(struct request *req, const char *uuid, struct task_row *ret, struct err *e) MUST_CHECK;
