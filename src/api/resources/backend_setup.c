/* The set-up of the place where the rows are, for the local administrator: run, progress, what is missing. */
#include "api/api.h"
#include "api/routes.h"
#include "api/resources/backend_lacks.h"
#include "backend/backend_providers.h"
#include "base/limits.h"
#include "identity/audit.h"

#include <pthread.h>
#include <stdio.h>

/* Of this process: the set-up that runs, or the last one. */
static struct progress {
    pthread_mutex_t lock;
    bool is_running;
    size_t n, of;
    char step[200], error[640];
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int begin_progress(struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&progress.lock);
    if (progress.is_running)
        r = err_set(e, -EBUSY, "SETUP_RUNS", "A set-up is running; GET /api/backend/setup tells its progress");
    else {
        progress.is_running = true;
        progress.n = progress.of = 0;
        progress.step[0] = progress.error[0] = '\0';
    }
    pthread_mutex_unlock(&progress.lock);
    return r;
}

static void note_step(void *arg, const char *what, size_t n, size_t of)
{
    pthread_mutex_lock(&progress.lock);
    progress.n = n;
    progress.of = of;
    snprintf(progress.step, sizeof(progress.step), "%s", what);
    pthread_mutex_unlock(&progress.lock);
}

static void end_progress(int r, const struct err *e)
{
    pthread_mutex_lock(&progress.lock);
    progress.is_running = false;
    if (r < 0)
        snprintf(progress.error, sizeof(progress.error), "%s", e->text);
    pthread_mutex_unlock(&progress.lock);
}

static const struct field progress_answer[] = {
    SHAPE_BOOL("running"),
    SHAPE_INT("n", .help = "number of the step; 0: none has begun"),
    SHAPE_INT("of"),
    SHAPE_STRING("step", .help = "what it makes"),
    SHAPE_STRING("error", .help = "why the last set-up ended early; empty: it did not"),
    FIELD_END,
};

static int show_progress(struct request *req, struct response *res, struct err *e)
{
    pthread_mutex_lock(&progress.lock);
    json_add_bool(&res->json, "running", progress.is_running);
    json_add_int(&res->json, "n", (int64_t)progress.n);
    json_add_int(&res->json, "of", (int64_t)progress.of);
    json_add_string(&res->json, "step", progress.step);
    json_add_string(&res->json, "error", progress.error);
    pthread_mutex_unlock(&progress.lock);
    return 0;
}

/* --- set-up and check --- */

static struct backend_place place_of(const struct request *req)
{
    return (struct backend_place){ .settings = req->api->settings, .data_dir = req->api->data_dir };
}

static int find(const struct request *req, const struct backend_provider **ret, struct err *e)
{
    *ret = backend_provider_to_set_up(req->api->settings);
    return *ret ? 0
                : err_set(e, -EINVAL, "HOSTED_UNSET", "The backend in use needs no set-up, and no project is chosen");
}

/* Adds the name to the tables of the set-up. */
static int add_table(const struct request *req, struct backend_setup *setup, const char **names, const char *name,
                     struct err *e)
{
    char *table = NULL;
    int r = backend_table_name(req->arena, name, &table, e);

    names[setup->n_tables++] = table;
    setup->tables = names;
    return r;
}

static struct backend_setup setup_of(const struct request *req)
{
    return (struct backend_setup){ .on_step = note_step,
                                   .is_gone = &req->exchange->is_gone,
                                   .is_leaving = &req->api->is_leaving };
}

struct setup_body {
    struct field_strings tables;
};
static const struct field setup_fields[] = {
    FIELD_STRINGS(struct setup_body, tables, "tables", .max = LIMIT_APP_TABLES, .help = "of apps: schema.name or name"),
    FIELD_END,
};
static const struct field setup_answer[] = {
    SHAPE_INT("steps", .help = "how many were done; 0: the set-up is one step"),
    FIELD_END,
};

static int run_setup(struct request *req, const struct backend_provider *p, const struct backend_setup *setup,
                     struct err *e)
{
    const struct backend_place place = place_of(req);
    int r = begin_progress(e);

    if (r < 0)
        return r;
    r = audit_append(req->api->identity, req->caller->actor, "backend.setup", p->name, NULL, e);
    if (r == 0)
        r = p->setup(&place, setup, req->arena, e);
    end_progress(r, e);
    return r;
}

static int post_setup(struct request *req, struct response *res, struct err *e)
{
    const struct setup_body *body = req->body;
    const char **names = arena_array(req->arena, body->tables.n + 1, sizeof(*names));
    struct backend_setup setup = setup_of(req);
    const struct backend_provider *p = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < body->tables.n; i++)
        r = add_table(req, &setup, names, body->tables.items[i], e);
    if (r == 0)
        r = find(req, &p, e);
    if (r == 0)
        r = run_setup(req, p, &setup, e);
    if (r == 0)
        json_add_int(&res->json, "steps", (int64_t)progress.of);
    return r;
}

struct check_query {
    const char *tables;
};
static const struct field check_fields[] = {
    FIELD_STRING(struct check_query, tables, "tables", .max = LIMIT_TEXT_CHARS,
                 .help = "of apps, separated by commas; those that apps list when it is not given"),
    FIELD_END,
};
static const struct field check_answer[] = { SHAPE_LIST("missing", backend_lack_shape), FIELD_END };

static int read_tables(const struct request *req, struct backend_setup *setup, struct err *e)
{
    const struct check_query *query = req->query;
    const char **names = arena_array(req->arena, LIMIT_APP_TABLES, sizeof(*names));
    char *rest = query->tables ? arena_strdup(req->arena, query->tables) : NULL, *name;
    int r = 0;

    if (!rest)
        return backend_tables_of_apps(req, setup, e);
    while (r == 0 && (name = strsep(&rest, ",")) && setup->n_tables < LIMIT_APP_TABLES)
        r = add_table(req, setup, names, name, e);
    return r;
}

/* Without a place that is set up, only the tables of apps in Custom Mode may lack something. */
static int read_lacks(struct request *req, const struct backend_setup *setup, struct backend_lacks *ret, struct err *e)
{
    const struct backend_place place = place_of(req);
    const struct backend_provider *p = backend_provider_to_set_up(req->api->settings);

    return p ? p->lacks(&place, setup, req->arena, ret, e) : 0;
}

static int check(struct request *req, struct response *res, struct err *e)
{
    struct backend_setup setup = setup_of(req);
    struct backend_lacks lacks = { 0 };
    int r = read_tables(req, &setup, e);

    if (r == 0)
        r = read_lacks(req, &setup, &lacks, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "missing");
    backend_lacks_write(&res->json, &lacks);
    r = backend_lacks_of_apps(req, &res->json, e);
    json_end(&res->json);
    return r;
}

const struct route backend_setup_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/backend/setup",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(setup_fields, struct setup_body),
      .is_body_optional = true,
      .defines = true,
      .answer = setup_answer,
      .handler = post_setup,
      .summary = "Set up the database or project that holds the rows; may be repeated",
      .tag = "Backend" },
    { .method = HTTP_GET,
      .path = "/api/backend/setup",
      .permission = PERM_ADMIN,
      .answer = progress_answer,
      .handler = show_progress,
      .summary = "The progress of the set-up that runs, or of the last one",
      .tag = "Backend" },
    { .method = HTTP_GET,
      .path = "/api/backend/check",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_QUERY(check_fields, struct check_query),
      .answer = check_answer,
      .handler = check,
      .summary = "What the database or project and the tables of apps lack, each with its SQL",
      .tag = "Backend" },
    ROUTE_END,
};
