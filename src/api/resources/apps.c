/* Local Apps, for the local administrator (specification, "Local App configuration"). */
#include "apps/apps.h"

#include "apps/config_schema.h"
#include "agents/agents.h"
#include "api/api.h"
#include "api/dispatch.h"
#include "api/resources/backend_lacks.h"
#include "api/resources/foreign_clients.h"
#include "api/routes.h"
#include "backend/backend.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "identity/audit.h"
#include "identity/hook_secret.h"
#include "models/models.h"
#include "models/vector_stores.h"
#include "store/tables/apps.h"
#include "tasks/tasks.h"

/* How long one request for new log lines may wait. */
enum { LOG_WAIT_S = 30 };

struct remove_query {
    bool with_data;
};
struct log_query {
    int64_t after, limit;
    double wait_s;
};

static const struct field remove_fields[] = {
    FIELD_BOOL(struct remove_query, with_data, "with_data", .help = "the data folder goes too"),
    FIELD_END,
};

static const struct field log_fields[] = {
    FIELD_INT(struct log_query, after, "after", .min = 0, .max = INT64_C(1) << 53,
              .help = "lines behind this number only"),
    FIELD_INT(struct log_query, limit, "limit", .min = 1, .max = LIMIT_LOG_LINES, .def = 200,
              .help = "the newest so many"),
    FIELD_DOUBLE(struct log_query, wait_s, "wait_s", .min = 0, .max = LOG_WAIT_S, .help = "waits so long for a line"),
    FIELD_END,
};

static const struct field state_shape[] = {
    SHAPE_STRING("app_id", .format = "uuid"),
    SHAPE_STRING("name"),
    SHAPE_STRING("display_name"),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_STRING("icon", .flags = FIELD_NULLABLE),
    SHAPE_STRING("app_type"),
    SHAPE_BOOL("enabled", .help = "starts with the service"),
    SHAPE_STRING("status", .help = "stopped, starting, running, error, stopping"),
    SHAPE_STRING("message", .flags = FIELD_NULLABLE, .help = "why it is in error"),
    SHAPE_INT("pid", .flags = FIELD_NULLABLE),
    SHAPE_INT("port", .flags = FIELD_NULLABLE),
    SHAPE_STRING("home_url", .flags = FIELD_NULLABLE,
                 .help = "where the app shows itself, as its configuration says; null while its port is not known"),
    SHAPE_INT("n_restarts"),
    SHAPE_TIME("started_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("updated_at"),
    FIELD_END,
};

static const struct field line_shape[] = {
    SHAPE_INT("number"),
    SHAPE_TIME("time"),
    SHAPE_STRING("stream", .help = "stdout, stderr, note (of the service) or log (sent to /sdk/logs)"),
    SHAPE_STRING("text"),
    FIELD_END,
};

static const struct field apps_answer[] = { SHAPE_LIST("apps", state_shape), FIELD_END };
static const struct field app_answer[] = {
    SHAPE_OBJECT("app", state_shape),
    SHAPE_OBJECT("config", NULL),
    SHAPE_STRING("sandbox", .help = "what it may see and do, in words"),
    FIELD_END,
};
static const struct field app_id_answer[] = { SHAPE_STRING("app_id"),
                                              SHAPE_STRING("sandbox", .help = "what it may see and do, in words"),
                                              SHAPE_LIST("missing", backend_lack_shape, .flags = FIELD_OPTIONAL,
                                                         .help = "what the tables of an app in Custom Mode lack"),
                                              FIELD_END };
static const struct field state_answer[] = { SHAPE_OBJECT("app", state_shape), FIELD_END };
static const struct field webhook_secret_answer[] = {
    SHAPE_STRING("secret", .help = "whsec_ and the key as base64, as Standard Webhooks 1.0.0 writes it"),
    FIELD_END,
};
static const struct field lines_answer[] = { SHAPE_LIST("lines", line_shape), FIELD_END };

static void add_number(struct json_writer *w, const char *name, int64_t number)
{
    if (number)
        json_add_int(w, name, number);
    else
        json_add_null(w, name);
}

static int write_app(struct request *req, struct json_writer *w, const char *name, const struct app_row *row,
                     struct err *e)
{
    struct app_config config = { .port = 0 };
    struct app_state state;
    int r;

    r = app_state(req->api->apps, row->app_id, req->arena, &state, e);
    if (r < 0)
        return r;
    (void)!app_config_read(req->arena, slice_of(row->config), &config,
                           NULL); /* an unreadable configuration has no address to show */
    json_begin_object_as(w, name);
    json_add_string(w, "app_id", row->app_id);
    json_add_string(w, "name", row->name);
    json_add_string(w, "display_name", row->display_name);
    json_add_string(w, "description", row->description);
    json_add_string(w, "icon", row->icon);
    json_add_string(w, "app_type", row->app_type);
    json_add_bool(w, "enabled", row->is_enabled);
    json_add_string(w, "status", app_status_name(state.status));
    json_add_string(w, "message", state.message);
    add_number(w, "pid", state.pid);
    add_number(w, "port", state.port);
    json_add_string(w, "home_url", app_home_url(req->arena, &config, state.port ? state.port : (uint16_t)config.port));
    json_add_int(w, "n_restarts", state.n_restarts);
    json_add_string(w, "started_at", state.started_at);
    json_add_string(w, "created_at", row->created_at);
    json_add_string(w, "updated_at", row->updated_at);
    json_end(w);
    return 0;
}

/* The row of the app that the path names by id or by name. */
static int app_of_path(struct request *req, struct app_row *ret, struct err *e)
{
    return store_apps_find(req->api->store, req->arena, req->params[0], ret, e);
}

static int list_apps(struct request *req, struct response *res, struct err *e)
{
    struct app_row *rows;
    size_t n;
    int r;

    r = store_apps_list(req->api->store, req->arena, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "apps");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = write_app(req, &res->json, NULL, &rows[i], e);
    if (r == 0)
        json_end(&res->json);
    return r;
}

static int show_app(struct request *req, struct response *res, struct err *e)
{
    struct app_config config;
    struct app_row row;
    int r;

    r = app_of_path(req, &row, e);
    if (r == 0)
        r = write_app(req, &res->json, "app", &row, e);
    if (r == 0)
        r = app_find(req->api->apps, row.app_id, req->arena, &config, e);
    if (r < 0)
        return r;
    json_add_raw(&res->json, "config", row.config);
    json_add_string(&res->json, "sandbox", sandbox_words(req->arena, req->api->sandbox, &config.sandbox));
    return 0;
}

/* Specification, "Local App configuration": agentId must match an existing agent. */
static int check_agents(const struct request *req, const struct app_config *config, struct err *e)
{
    const struct app_handler *handlers = config->handlers.items;
    struct agent_row agent;
    int r = 0;

    for (size_t i = 0; i < config->handlers.n; i++) {
        const char *name = handlers[i].agent_id;

        if (name && *name && agent_get(req->api->agents, name, req->arena, &agent, NULL) == -ENOENT)
            r = err_add_field(e, arena_printf(req->arena, "config.agentHandlers[%zu].agentId", i),
                              "names the agent %.128s, which is not registered; do that first (hearth agent add)",
                              name);
    }
    return r;
}

/* "rtx" of "public.rtx_activities" or "RTX_APP_ID", if another dialect uses this word; else NULL. */
static const char *foreign_word(const struct request *req, const char *name)
{
    const char *dot = strrchr(name, '.'), *at = dot ? dot + 1 : name;
    char *word = arena_strndup(req->arena, at, strcspn(at, "_"));

    for (char *c = word; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return foreign_clients_is_abbr(dispatch_foreign_clients(req->api->dispatch), word) ? word : NULL;
}

static void note_word(const struct request *req, const char *name)
{
    const char *word = name ? foreign_word(req, name) : NULL;

    if (word)
        foreign_clients_note(dispatch_foreign_clients(req->api->dispatch), FOREIGN_APP, word,
                             req->exchange->request.id);
}

/* Notes the words of an app written for another dialect: its tables and variables are not those of this service. */
static void note_words(const struct request *req, const struct app_config *config)
{
    const struct app_handler *handlers = config->handlers.items;
    struct json_value value;
    struct slice name;

    for (size_t i = 0; i < config->backend.tables.n; i++)
        note_word(req, config->backend.tables.items[i]);
    for (size_t i = 0; i < config->handlers.n; i++)
        note_word(req, handlers[i].table_name);
    for (struct json_iter it = json_iter(config->env); json_next(&it, &name, &value);)
        note_word(req, name.p);
}

static int check_app(const struct request *req, const void *body, struct err *e)
{
    int r = app_config_check(body, settings_string(req->api->settings, req->arena, SETTING_IDENTITY_ABBR), e);
    const struct app_config *config = body;
    int r_agents = check_agents(req, body, e);
    int r_sandbox = sandbox_definition_check(&config->sandbox, "config.sandbox", req->api->data_dir, e);
    int r_tables = app_check_tables(req->api->apps, config, e);
    int r_place = app_config_check_place(req->body_json, e);

    note_words(req, config);
    return r < 0 ? r : r_place < 0 ? r_place : r_agents < 0 ? r_agents : r_sandbox < 0 ? r_sandbox : r_tables;
}

/* Creates the app's tables before the answer, because the app may insert as soon as it has the answer. */
static int make_tables(struct request *req, const struct app_config *config, struct err *e)
{
    struct backend *backend = req->api->backend;
    int r = 0;

    r = app_schema_declare(backend, config, e);
    if (r < 0 || !config->backend.is_enabled || app_config_is_custom(config))
        return r;
    for (size_t i = 0; r == 0 && i < config->backend.tables.n; i++)
        r = backend->ops->ensure_table(backend, config->backend.tables.items[i], e);
    return r;
}

/* Of tables of Custom Mode: the app is registered all the same, and works once its tables are mended. */
static void write_lacks(struct request *req, struct response *res, const struct app_config *config)
{
    struct err e = { 0 };

    if (!app_config_is_custom(config))
        return;
    json_begin_array_as(&res->json, "missing");
    for (size_t i = 0; i < config->backend.tables.n; i++)
        if (backend_lacks_of_table(req, &res->json, config->backend.tables.items[i], &e) < 0)
            log_warn("api", NULL, "table %s was not checked: %s", LOG_Q(config->backend.tables.items[i]),
                     LOG_Q(e.text));
    json_end(&res->json);
}

static int put_app(struct request *req, struct response *res, struct err *e)
{
    const struct app_config *config = req->body;
    char app_id[UUID_SIZE];
    int r = make_tables(req, config, e);

    if (r < 0)
        return r;
    r = app_put(req->api->apps, config, req->exchange->request.body, req->caller->actor, app_id, e);
    if (r < 0)
        return r;
    tasks_listen_now(req->api->tasks);
    json_add_string(&res->json, "app_id", app_id);
    json_add_string(&res->json, "sandbox", sandbox_words(req->arena, req->api->sandbox, &config->sandbox));
    write_lacks(req, res, config);
    return 0;
}

/* Rejects the tasks that wait for the removed app. */
static void reject_tasks(struct request *req, const struct app_row *app)
{
    struct task_sum sum = { 0 };
    struct err e = { 0 };

    tasks_listen_now(req->api->tasks);
    if (tasks_reject_app(req->api->tasks, app->app_id, arena_printf(req->arena, "The app %s was removed.", app->name),
                         &sum, &e) < 0)
        log_warn("api", NULL, "waiting tasks of a removed app stay: %s", LOG_Q(e.text));
}

static int remove_app(struct request *req, struct response *res, struct err *e)
{
    const struct remove_query *query = req->query;
    struct app_row row;
    int r;

    r = app_of_path(req, &row, e);
    if (r == 0)
        r = app_remove(req->api->apps, row.app_id, query->with_data, req->caller->actor, e);
    if (r == 0)
        reject_tasks(req, &row);
    if (r == 0)
        r = meter_unlimit(req->api->meter, RATE_OF_APP, row.app_id, e);
    return r < 0 ? r : vector_stores_forget(req->api->models->vector_stores, row.app_id, query->with_data, e);
}

static int act_on_app(struct request *req, struct response *res, int (*act)(struct apps *, const char *, struct err *),
                      struct err *e)
{
    struct app_row row;
    int r;

    r = app_of_path(req, &row, e);
    if (r == 0)
        r = act(req->api->apps, row.app_id, e);
    return r < 0 ? r : write_app(req, &res->json, "app", &row, e);
}

static int start_app(struct request *req, struct response *res, struct err *e)
{
    return act_on_app(req, res, app_start, e);
}

static int stop_app(struct request *req, struct response *res, struct err *e)
{
    return act_on_app(req, res, app_stop, e);
}

static int restart_app(struct request *req, struct response *res, struct err *e)
{
    return act_on_app(req, res, app_restart, e);
}

/* An app that Hearth starts has it in its environment; one that runs by itself is given it by a person. */
static int show_webhook_secret(struct request *req, struct response *res, struct err *e)
{
    char secret[HOOK_SECRET_SIZE];
    struct app_row row;
    int r = app_of_path(req, &row, e);

    if (r == 0)
        r = audit_append(req->api->identity, req->caller->actor, "app.webhook_secret", row.app_id, NULL, e);
    if (r < 0)
        return r;
    identity_hook_secret(req->api->identity, row.app_id, secret);
    json_add_string(&res->json, "secret", secret);
    secret_wipe(secret, sizeof(secret));
    return 0;
}

static void write_line(struct json_writer *w, const struct child_line *line)
{
    char time[TIME_TEXT_SIZE];

    clock_format(line->wall_ms, time);
    json_begin_object(w);
    json_add_int(w, "number", line->number);
    json_add_string(w, "time", time);
    json_add_string(w, "stream", child_stream_name(line->stream));
    json_add_string(w, "text", line->text);
    json_end(w);
}

static int show_log(struct request *req, struct response *res, struct err *e)
{
    const struct log_query *query = req->query;
    struct child_line *lines = NULL;
    struct child_log *log;
    struct app_row row;
    size_t n = 0;
    int r;

    r = app_of_path(req, &row, e);
    if (r < 0)
        return r;
    log = app_log(req->api->apps, row.app_id);
    if (log && query->wait_s > 0)
        child_log_wait(log, query->after, (int)(query->wait_s * 1000), &req->exchange->is_gone, &req->api->is_leaving);
    if (log)
        n = child_log_lines(log, req->arena, query->after, (size_t)query->limit, &lines);
    child_log_unref(log);
    json_begin_array_as(&res->json, "lines");
    for (size_t i = 0; i < n; i++)
        write_line(&res->json, &lines[i]);
    json_end(&res->json);
    return 0;
}

const struct route app_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/apps",
      .permission = PERM_ADMIN,
      .answer = apps_answer,
      .handler = list_apps,
      .summary = "Local Apps and how they are",
      .tag = "Apps" },
    { .method = HTTP_POST,
      .path = "/api/apps",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(app_config_fields, struct app_config),
      .check_body = check_app,
      .status = 201,
      .answer = app_id_answer,
      .defines = true,
      .handler = put_app,
      .summary = "Register an app, or replace its configuration",
      .tag = "Apps" },
    { .method = HTTP_GET,
      .path = "/api/apps/:app",
      .permission = PERM_ADMIN,
      .answer = app_answer,
      .handler = show_app,
      .summary = "One app, by id or name",
      .tag = "Apps" },
    { .method = HTTP_DELETE,
      .path = "/api/apps/:app",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(remove_fields, struct remove_query),
      .kind = ROUTE_LONG,
      .answer = api_nothing,
      .defines = true,
      .handler = remove_app,
      .summary = "Stop and remove an app",
      .tag = "Apps" },
    { .method = HTTP_GET,
      .path = "/api/apps/:app/webhook-secret",
      .permission = PERM_ADMIN,
      .answer = webhook_secret_answer,
      .handler = show_webhook_secret,
      .summary = "The secret that signs requests to this app, for an app that runs by itself",
      .tag = "Apps" },
    { .method = HTTP_POST,
      .path = "/api/apps/:app/start",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = state_answer,
      .handler = start_app,
      .summary = "Start an app",
      .tag = "Apps" },
    { .method = HTTP_POST,
      .path = "/api/apps/:app/stop",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = state_answer,
      .handler = stop_app,
      .summary = "Stop an app",
      .tag = "Apps" },
    { .method = HTTP_POST,
      .path = "/api/apps/:app/restart",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = state_answer,
      .handler = restart_app,
      .summary = "Stop and start an app",
      .tag = "Apps" },
    { .method = HTTP_GET,
      .path = "/api/apps/:app/logs",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_QUERY(log_fields, struct log_query),
      .answer = lines_answer,
      .handler = show_log,
      .summary = "What an app wrote; with wait_s the question waits for news",
      .tag = "Apps" },
    ROUTE_END,
};
