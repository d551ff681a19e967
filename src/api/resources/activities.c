/* Activities: the proxy to the backend (specification, "Activities (proxy to the backend)"; decision D6). */
#include "api/api.h"
#include "api/dispatch.h"
#include "api/resources/activity_rows.h"
#include "api/resources/foreign_clients.h"
#include "api/routes.h"
#include "backend/functions.h"
#include "store/tables/apps.h"

#include <strings.h>

/* Enough for the longest word that known clients send. */
enum { STATUS_CHARS = 64 };

struct new_activity {
    struct json_value raw_data;
    const char *app;
};
struct activity_query {
    const char *status, *app;
    int64_t limit, offset;
};
struct function_body {
    const char *task_id, *target_task_id, *table_name, *machine_id, *error, *error_msg;
    struct json_value result, result_data;
    int64_t attempt;
};
struct activity_patch {
    const char *status, *error_message;
    struct json_value raw_data, result;
};

static const struct field new_activity_fields[] = {
    FIELD_OBJECT(struct new_activity, raw_data, "raw_data", .flags = FIELD_REQUIRED,
                 .help = "what the activity is about"),
    FIELD_STRING(struct new_activity, app, "app", .max = LIMIT_NAME_CHARS,
                 .help = "id or name of the app it is of; the administrator's, others name theirs by header"),
    FIELD_END,
};

static const struct field activity_query_fields[] = {
    FIELD_STRING(struct activity_query, status, "status", .max = STATUS_CHARS,
                 .help = "pending, claimed, completed, failed"),
    FIELD_STRING(struct activity_query, app, "app", .max = LIMIT_NAME_CHARS,
                 .help = "id or name of the app; the administrator's"),
    FIELD_INT(struct activity_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_INT(struct activity_query, offset, "offset", .min = 0, .max = INT32_MAX),
    FIELD_END,
};

static const struct field activity_patch_fields[] = {
    FIELD_STRING(struct activity_patch, status, "status", .min = 1, .max = STATUS_CHARS),
    FIELD_OBJECT(struct activity_patch, result, "result"),
    FIELD_OBJECT(struct activity_patch, raw_data, "raw_data"),
    FIELD_STRING(struct activity_patch, error_message, "error_message", .max = LIMIT_STRING_DEFAULT),
    FIELD_END,
};

/* The parameters of the lease functions; their meaning is up to the backend. */
static const struct field function_fields[] = {
    FIELD_STRING(struct function_body, task_id, "task_id", .max = LIMIT_NAME_CHARS, .help = "id of the row"),
    FIELD_STRING(struct function_body, target_task_id, "target_task_id", .max = LIMIT_NAME_CHARS,
                 .help = "the same as task_id"),
    FIELD_STRING(struct function_body, machine_id, "machine_id", .max = LIMIT_NAME_CHARS,
                 .help = "who claims or holds it"),
    FIELD_STRING(struct function_body, table_name, "table_name", .max = LIMIT_TABLE_NAME,
                 .help = "default: the activities table"),
    FIELD_INT(struct function_body, attempt, "attempt", .min = 1, .max = LIMIT_ATTEMPT,
              .help = "as the claim told it; refuses a late end"),
    FIELD_STRING(struct function_body, error, "error", .max = LIMIT_STRING_DEFAULT, .help = "of fail_task"),
    FIELD_STRING(struct function_body, error_msg, "error_msg", .max = LIMIT_STRING_DEFAULT,
                 .help = "the same as error"),
    FIELD_ANY(struct function_body, result, "result", .help = "of complete_task"),
    FIELD_ANY(struct function_body, result_data, "result_data", .help = "the same as result"),
    FIELD_END,
};

static int check_patch(const struct request *req, const void *body, struct err *e)
{
    return request_check_patch(req, e);
}

static const struct field function_answer[] = {
    SHAPE_ANY("result", .help = "what the function returned; a refusal is {success: false, reason}"),
    FIELD_END,
};

static const struct field activity_shape[] = {
    SHAPE_STRING("id", .format = "uuid"),
    SHAPE_STRING("user_id", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("raw_data", NULL),
    SHAPE_ANY("old_data", .help = "raw_data before its last change, or null"),
    SHAPE_STRING("status"),
    SHAPE_STRING("locked_by", .flags = FIELD_NULLABLE, .help = "machine that holds the lease"),
    SHAPE_TIME("locked_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("completed_at", .flags = FIELD_NULLABLE),
    SHAPE_STRING("error_message", .flags = FIELD_NULLABLE),
    SHAPE_STRINGS("attempted_by", .help = "machines that failed it"),
    SHAPE_INT("retry_count"),
    SHAPE_ANY("result", .help = "what the agent answered, or null"),
    SHAPE_TIME("created_at"),
    SHAPE_INT("attempt", .help = "how often it was claimed"),
    FIELD_END,
};

static const struct field one_activity[] = { SHAPE_OBJECT("data", activity_shape), FIELD_END };
static const struct field many_activities[] = { SHAPE_LIST("data", activity_shape), FIELD_END };

static void write_activity(struct json_writer *w, const char *name, const struct backend_row *row)
{
    json_begin_object_as(w, name);
    json_add_string(w, "id", row->id);
    json_add_string(w, "user_id", row->user_id);
    json_add_raw(w, "raw_data", row->raw_data);
    json_add_raw(w, "old_data", row->old_data);
    json_add_string(w, "status", row->status);
    json_add_string(w, "locked_by", row->locked_by);
    json_add_string(w, "locked_at", row->locked_at);
    json_add_string(w, "completed_at", row->completed_at);
    json_add_string(w, "error_message", row->error_message);
    json_add_raw(w, "attempted_by", row->attempted_by);
    json_add_int(w, "retry_count", row->retry_count);
    json_add_raw(w, "result", row->result);
    json_add_string(w, "created_at", row->created_at);
    json_add_int(w, "attempt", row->attempt);
    json_end(w);
}

/* The owner of the rows that the caller sees: an app sees its own, a key without an app those made with the key, the
 * administrator all (NULL). */
static const char *owner(const struct request *req)
{
    return req->caller->kind == CALLER_ADMIN ? NULL : req->caller->scope;
}

/* The app that an administrator names. Other callers name theirs in the request's headers. */
static int named_app(struct request *req, const char *id_or_name, const char **ret, struct err *e)
{
    struct app_row app = { 0 };
    int r = 0;

    if (req->caller->kind == CALLER_ADMIN && id_or_name && *id_or_name)
        r = store_apps_find(req->api->store, req->arena, id_or_name, &app, e);
    if (r == 0 && app.app_id)
        *ret = app.app_id;
    return r;
}

static int create_activity(struct request *req, struct response *res, struct err *e)
{
    const struct new_activity *body = req->body;
    struct backend_new_row in = {
        .app_id = req->caller->app_id ? req->caller->app_id : owner(req),
        .raw_data = json_to_str(req->arena, body->raw_data),
    };
    struct activity_rows rows;
    struct backend_row row = { 0 };
    int r = activity_rows(req, &rows, e);

    if (r == 0)
        r = named_app(req, body->app, &in.app_id, e);
    if (r < 0)
        return r;
    in.table = rows.table;
    in.user_id = rows.user;
    r = backend_insert(rows.backend, &in, req->arena, &row, e);
    if (r < 0)
        return r;
    write_activity(&res->json, "data", &row);
    return 0;
}

static int list_activities(struct request *req, struct response *res, struct err *e)
{
    const struct activity_query *query = req->query;
    struct backend_query q = {
        .app_id = owner(req),
        .status = query->status && *query->status ? query->status : NULL,
        .limit = query->limit,
        .offset = query->offset,
    };
    struct backend_rows list = { 0 };
    struct activity_rows rows;
    int r = activity_rows(req, &rows, e);

    if (r == 0)
        r = named_app(req, query->app, &q.app_id, e);
    if (r < 0)
        return r;
    q.table = rows.table;
    q.user_id = rows.user;
    r = backend_list(rows.backend, &q, req->arena, &list, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "data");
    for (size_t i = 0; i < list.n; i++)
        write_activity(&res->json, NULL, &list.items[i]);
    json_end(&res->json);
    return 0;
}

/* The row, when it is one of the caller, and of the user on whose behalf the caller asks. */
static int get_row(struct request *req, const struct activity_rows *rows, const char *id, struct backend_row *ret,
                   struct err *e)
{
    struct backend_row row = { 0 };
    int r = backend_get(rows->backend, rows->table, id, owner(req), req->arena, &row, e);

    if (r == 0 && rows->user && (!row.user_id || strcasecmp(row.user_id, rows->user) != 0))
        r = err_set(e, -ENOENT, "NOT_FOUND", "Activity not found");
    if (r == 0)
        *ret = row;
    return r;
}

static int get_activity(struct request *req, struct response *res, struct err *e)
{
    struct activity_rows rows;
    struct backend_row row = { 0 };
    int r = activity_rows(req, &rows, e);

    if (r == 0)
        r = get_row(req, &rows, req->params[0], &row, e);
    if (r < 0)
        return r;
    write_activity(&res->json, "data", &row);
    return 0;
}

static const char *text_or_null(struct request *req, struct json_value v)
{
    return json_is_absent(v) ? NULL : json_to_str(req->arena, v);
}

static int change_activity(struct request *req, struct response *res, struct err *e)
{
    const struct activity_patch *body = req->body;
    const struct backend_patch patch = {
        .status = body->status,
        .error_message = body->error_message,
        .raw_data = text_or_null(req, body->raw_data),
        .result = text_or_null(req, body->result),
    };
    struct backend_update_request request = { .id = req->params[0], .app_id = owner(req), .patch = &patch };
    struct activity_rows rows;
    struct backend_row row = { 0 };
    int r = activity_rows(req, &rows, e);

    if (r == 0 && rows.user)
        r = get_row(req, &rows, request.id, &row, e);
    if (r < 0)
        return r;
    request.table = rows.table;
    r = backend_update(rows.backend, &request, req->arena, &row, e);
    if (r < 0)
        return r;
    write_activity(&res->json, "data", &row);
    return 0;
}

static int delete_activity(struct request *req, struct response *res, struct err *e)
{
    struct activity_rows rows;
    struct backend_row row;
    int r = activity_rows(req, &rows, e);

    if (r == 0 && rows.user)
        r = get_row(req, &rows, req->params[0], &row, e);
    return r < 0 ? r : backend_remove(rows.backend, rows.table, req->params[0], owner(req), e);
}

/* ---- the database functions, for apps that claim and finish rows themselves ---- */

static int check_row(struct request *req, const struct function_body *body, struct activity_rows rows, struct err *e)
{
    const char *id = body->task_id ? body->task_id : body->target_task_id;
    struct backend_row row;
    char *table = NULL;
    int r = backend_table_name(req->arena, body->table_name ? body->table_name : rows.table, &table, e);

    rows.table = table;
    return r < 0 || !id ? r : get_row(req, &rows, id, &row, e);
}

/* Names the setting that makes this service answer a client of another dialect. */
static int explain_function(struct request *req, int r, struct err *e)
{
    int named = foreign_clients_refuse_function(dispatch_foreign_clients(req->api->dispatch), req->params[0],
                                                req->exchange->request.id, e);

    return named < 0 ? named : r;
}

static int call_function(struct request *req, struct response *res, struct err *e)
{
    const struct function_call call = { .function = req->params[0], .arguments = req->body_json };
    struct activity_rows rows;
    char *result = NULL;
    int r = activity_rows(req, &rows, e);

    if (r == 0)
        r = check_row(req, req->body, rows, e);
    if (r == 0)
        r = functions_call(rows.backend, &call, req->arena, &result, e);
    if (r == -ENOENT && strcmp(e->code, "FUNCTION_NOT_FOUND") == 0)
        return explain_function(req, r, e);
    if (r == 0)
        json_add_raw(&res->json, "result", result);
    return r;
}

const struct route activity_routes[] = {
    { .method = HTTP_POST,
      .path = "/activities",
      .permission = PERM_ACTIVITIES_WRITE,
      .uses_rows = true,
      .is_sdk = true,
      ROUTE_BODY(new_activity_fields, struct new_activity),
      .max_body = LIMIT_BODY_ACTIVITY,
      .stores = true,
      .status = 201,
      .answer = one_activity,
      .handler = create_activity,
      .summary = "Insert an activity",
      .tag = "Activities" },
    { .method = HTTP_GET,
      .path = "/activities",
      .permission = PERM_ACTIVITIES_READ,
      .uses_rows = true,
      .is_sdk = true,
      ROUTE_QUERY(activity_query_fields, struct activity_query),
      .answer = many_activities,
      .handler = list_activities,
      .summary = "The caller's activities, newest first",
      .tag = "Activities" },
    { .method = HTTP_GET,
      .path = "/activities/:id",
      .permission = PERM_ACTIVITIES_READ,
      .uses_rows = true,
      .is_sdk = true,
      .answer = one_activity,
      .handler = get_activity,
      .summary = "One activity",
      .tag = "Activities" },
    { .method = HTTP_PATCH,
      .path = "/activities/:id",
      .permission = PERM_ACTIVITIES_WRITE,
      .uses_rows = true,
      .is_sdk = true,
      ROUTE_BODY(activity_patch_fields, struct activity_patch),
      .check_body = check_patch,
      .max_body = LIMIT_BODY_ACTIVITY,
      .stores = true,
      .answer = one_activity,
      .handler = change_activity,
      .summary = "Change status, result, raw_data or error_message",
      .tag = "Activities" },
    { .method = HTTP_DELETE,
      .path = "/activities/:id",
      .permission = PERM_ACTIVITIES_WRITE,
      .uses_rows = true,
      .is_sdk = true,
      .answer = api_nothing,
      .handler = delete_activity,
      .summary = "Delete an activity",
      .tag = "Activities" },
    { .method = HTTP_POST,
      .path = "/activities/functions/:name",
      .permission = PERM_ACTIVITIES_WRITE,
      .uses_rows = true,
      .is_sdk = true,
      ROUTE_BODY(function_fields, struct function_body),
      .is_body_optional = true,
      .max_body = LIMIT_BODY_ACTIVITY,
      .answer = function_answer,
      .handler = call_function,
      .summary = "Call svc_fn_claim_task, svc_fn_complete_task, svc_fn_fail_task or get_publications_full",
      .tag = "Activities" },
    ROUTE_END,
};
