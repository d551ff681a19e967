/* The webhook of agent processes: POST /api/external-tasks/:taskUuid/webhook (specification, "Webhook used by agent
 * processes").
 *
 * The agent's token identifies the sender, else the task's uuid alone (decision D3): then only over loopback and only
 * from peers that identity.peers allows.
 */
#include "api/api.h"
#include "api/report.h"
#include "api/routes.h"

struct external_body {
    const char *action, *table_name, *machine_id;
    struct json_value data;
    int64_t attempt;
};

static const struct field external_fields[] = {
    FIELD_STRING(struct external_body, action, "action", .flags = FIELD_REQUIRED, .min = 1, .max = 64),
    FIELD_STRING(struct external_body, table_name, "table_name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct external_body, machine_id, "machine_id", .max = LIMIT_NAME_CHARS),
    FIELD_OBJECT(struct external_body, data, "data", .help = "result of a success, error.message of a failure"),
    FIELD_INT(struct external_body, attempt, "attempt", .min = 0, .max = LIMIT_ATTEMPT,
              .help = "TASK_ATTEMPT of the agent; refuses a report that comes too late"),
    FIELD_END,
};

static const struct field external_answer[] = { SHAPE_STRING("status"), FIELD_END };

static bool is_extra(struct slice key)
{
    return !slice_eq_str(key, "result") && !slice_eq_str(key, "error");
}

static bool has_extras(struct json_value data)
{
    struct json_iter it = json_iter(data);
    struct json_value value;
    struct slice key;

    while (json_next(&it, &key, &value))
        if (is_extra(key))
            return true;
    return false;
}

static void add_members(struct json_writer *w, struct json_value object, bool only_extras)
{
    struct json_iter it = json_iter(object);
    struct json_value value;
    struct slice key;

    while (json_next(&it, &key, &value))
        if (!only_extras || is_extra(key))
            json_add_value(w, key.p, value);
}

/* The text of data.result; other members of data are added to those of the result (decision D5). */
static int result_text(struct request *req, struct json_value data, const char **ret, struct err *e)
{
    struct json_value result = json_get(data, "result");
    struct json_writer w;
    struct buf out;
    int r;

    *ret = json_is_absent(result) ? NULL : json_to_str(req->arena, result);
    if (!has_extras(data))
        return 0;
    buf_init(&out, LIMIT_BODY_ACTIVITY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    if (json_type(result) == JSON_OBJECT)
        add_members(&w, result, false);
    else if (!json_is_absent(result))
        json_add_value(&w, "result", result);
    add_members(&w, data, true);
    json_end(&w);
    r = buf_check(&out, e);
    *ret = buf_to_arena(&out, req->arena);
    return r;
}

static const char *error_text(struct request *req, struct json_value data)
{
    const char *text = report_error_text(req->arena, json_get(data, "error"));

    return text ? text : json_cstr(json_get(data, "message"));
}

static int receive_report(struct request *req, struct response *res, struct err *e)
{
    const struct external_body *body = req->body;
    const struct webhook_event *event;
    const char *result = NULL, *status;
    int64_t attempt = body->attempt;
    struct task_row task;
    int r = report_find_task(req, req->params[0], &attempt, &task, e);

    if (r < 0)
        return r;
    r = webhook_event_find(body->action, "action", &event, NULL);
    if (r < 0 || event->is_ping || event->is_trigger)
        r = err_add_field(e, "action", "must be completed, failed, processing or canceled");
    if (r == 0 && event->what == TASK_COMPLETED)
        r = result_text(req, body->data, &result, e);
    if (r == 0)
        r = tasks_report(req->api->tasks,
                         &(struct tasks_report_request){
                             .uuid = task.uuid,
                             .what = event->what,
                             .machine_id = body->machine_id,
                             .attempt = attempt,
                             .result_json = result,
                             .error = event->what == TASK_FAILED ? error_text(req, body->data) : NULL,
                         },
                         &status, e);
    if (r == 0)
        json_add_string(&res->json, "status", status);
    return r;
}

const struct route external_task_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/external-tasks/:taskUuid/webhook",
      .permission = PERM_BODY,
      .uses_rows = true,
      ROUTE_BODY(external_fields, struct external_body),
      .max_body = LIMIT_BODY_ACTIVITY,
      .answer = external_answer,
      .handler = receive_report,
      .summary = "An agent process tells how its task ended",
      .tag = "Webhooks" },
    ROUTE_END,
};
