/* Tasks: the SDK's GET /task/:uuid and the user's actions. */
#include "tasks/tasks.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/resources/task_shapes.h"
#include "store/tables/apps.h"

struct task_query {
    const char *status, *app;
    bool is_quarantined;
    int64_t limit, offset;
};

static const struct field task_query_fields[] = {
    FIELD_STRING(struct task_query, status, "status", .max = 32),
    FIELD_STRING(struct task_query, app, "app", .max = LIMIT_NAME_CHARS, .help = "id or name of the app"),
    FIELD_BOOL(struct task_query, is_quarantined, "quarantined"),
    FIELD_INT(struct task_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_INT(struct task_query, offset, "offset", .min = 0, .max = INT32_MAX),
    FIELD_END,
};

static const char *const replayable[] = { "failed", "canceled", NULL };
struct replay_body {
    const char *app, *status;
};

static const struct field replay_fields[] = {
    FIELD_STRING(struct replay_body, app, "app", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "only of this app (id or name)"),
    FIELD_STRING(struct replay_body, status, "status", .one_of = replayable, .def_str = "failed"),
    FIELD_END,
};

static const struct field replay_answer[] = {
    SHAPE_INT("replayed"),
    SHAPE_INT("left", .help = "not done again, as their agent or row does not exist any more; the log says which"),
    FIELD_END,
};

static const struct field task_answer[] = { SHAPE_OBJECT("task", task_shape), SHAPE_LIST("runs", run_shape),
                                            FIELD_END };
static const struct field tasks_answer[] = { SHAPE_LIST("tasks", listed_task_shape), FIELD_END };

static const struct field task_detail_answer[] = {
    SHAPE_OBJECT("task", task_shape),
    SHAPE_LIST("runs", run_shape),
    SHAPE_ANY("raw_data"),
    SHAPE_STRING("prompt", .flags = FIELD_NULLABLE),
    SHAPE_STRING("log", .flags = FIELD_NULLABLE, .help = "output of the newest run"),
    FIELD_END,
};

static int show_task(struct request *req, struct response *res, struct err *e)
{
    struct task_row task = { 0 };
    struct run_row *runs = NULL;
    size_t n = 0;
    int r;

    r = task_of_caller(req, req->params[0], &task, e);
    if (r == 0)
        r = store_runs_list(req->api->store, req->arena, task.uuid, &runs, &n, e);
    if (r < 0)
        return r;
    write_task(&res->json, "task", &task);
    write_runs(&res->json, "runs", runs, n);
    return 0;
}

/* The log of the current run, else of the last run. */
static int newest_log(struct request *req, const struct task_row *task, const struct run_row *runs, size_t n,
                      const char **ret, struct err *e)
{
    struct run_row run;
    int r;

    *ret = tasks_live_log(req->api->tasks, task->uuid, req->arena);
    if (*ret || n == 0)
        return 0;
    r = store_runs_get(req->api->store, req->arena, runs[n - 1].id, &run, e);
    if (r == 0)
        *ret = run.log;
    return r;
}

static int show_task_detail(struct request *req, struct response *res, struct err *e)
{
    struct task_row task = { 0 };
    struct run_row *runs = NULL;
    const char *log = NULL;
    size_t n = 0;
    int r;

    r = store_tasks_get(req->api->store, req->arena, req->params[0], &task, e);
    if (r == 0)
        r = store_runs_list(req->api->store, req->arena, task.uuid, &runs, &n, e);
    if (r == 0)
        r = newest_log(req, &task, runs, n, &log, e);
    if (r < 0)
        return r;
    write_task(&res->json, "task", &task);
    write_runs(&res->json, "runs", runs, n);
    json_add_raw(&res->json, "raw_data", task.raw_data);
    json_add_string(&res->json, "prompt", task.prompt);
    json_add_string(&res->json, "log", log);
    return 0;
}

static int list_tasks(struct request *req, struct response *res, struct err *e)
{
    const struct task_query *query = req->query;
    struct task_filter filter = {
        .status = query->status,
        .only_quarantined = query->is_quarantined,
        .limit = query->limit,
        .offset = query->offset,
    };
    struct task_row *rows;
    size_t n;
    int r = store_apps_find_id(req->api->store, req->arena, query->app, &filter.source_app, e);

    if (r < 0)
        return r;
    r = store_tasks_list(req->api->store, req->arena, &filter, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "tasks");
    for (size_t i = 0; i < n; i++)
        write_listed_task(&res->json, &rows[i]);
    json_end(&res->json);
    return 0;
}

static int run_task(struct request *req, struct response *res, struct err *e)
{
    const struct task_run_body *body = req->body;

    return tasks_run_now(req->api->tasks, req->params[0], body->agent_name, e);
}

static int reject_task(struct request *req, struct response *res, struct err *e)
{
    const struct task_reject_body *body = req->body;

    return tasks_reject(req->api->tasks, req->params[0], body->reason, e);
}

static int cancel_task(struct request *req, struct response *res, struct err *e)
{
    const struct task_reject_body *body = req->body;

    return tasks_cancel(req->api->tasks, req->params[0], body->reason, e);
}

static int replay_task(struct request *req, struct response *res, struct err *e)
{
    const struct task_run_body *body = req->body;

    return tasks_replay(req->api->tasks, req->params[0], body->agent_name, e);
}

static int replay_tasks(struct request *req, struct response *res, struct err *e)
{
    const struct replay_body *body = req->body;
    struct app_row app = { .app_id = NULL };
    struct task_sum sum = { 0 };
    int r = body->app ? store_apps_find(req->api->store, req->arena, body->app, &app, e) : 0;

    if (r == 0)
        r = tasks_replay_all(req->api->tasks, app.app_id, body->status, &sum, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "replayed", sum.n_done);
    json_add_int(&res->json, "left", sum.n_left);
    return 0;
}

static int sweep(struct request *req, struct response *res, struct err *e)
{
    tasks_sweep_now(req->api->tasks);
    return 0;
}

const struct route task_routes[] = {
    { .method = HTTP_GET,
      .path = "/task/:uuid",
      .permission = PERM_TASK,
      .is_sdk = true,
      .answer = task_answer,
      .handler = show_task,
      .summary = "A task and its runs",
      .tag = "Tasks" },
    { .method = HTTP_GET,
      .path = "/api/tasks",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(task_query_fields, struct task_query),
      .answer = tasks_answer,
      .handler = list_tasks,
      .summary = "Tasks of every app, newest first",
      .tag = "Tasks" },
    { .method = HTTP_GET,
      .path = "/api/tasks/:uuid",
      .permission = PERM_ADMIN,
      .answer = task_detail_answer,
      .handler = show_task_detail,
      .summary = "A task with its runs and the newest output",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/:uuid/run",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_run_fields, struct task_run_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = run_task,
      .summary = "Run a task that waits for a person",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/:uuid/reject",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_reject_fields, struct task_reject_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = reject_task,
      .summary = "Decide that a task is not run",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/:uuid/cancel",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_cancel_fields, struct task_reject_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = cancel_task,
      .summary = "End a task, also while an agent works on it",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/replay",
      .permission = PERM_ADMIN,
      ROUTE_BODY(replay_fields, struct replay_body),
      .is_body_optional = true,
      .kind = ROUTE_LONG,
      .answer = replay_answer,
      .handler = replay_tasks,
      .summary = "Run all failed or canceled tasks again",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/:uuid/replay",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_run_fields, struct task_run_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = replay_task,
      .summary = "Run a failed or quarantined task again, on any machine",
      .tag = "Tasks" },
    { .method = HTTP_POST,
      .path = "/api/tasks/sweep",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = sweep,
      .summary = "Look for work now instead of at the next sweep",
      .tag = "Tasks" },
    ROUTE_END,
};
