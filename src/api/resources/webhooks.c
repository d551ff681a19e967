/* The webhook receiver of apps: POST /webhooks/<token> (specification, "Webhook receiver"; decision D5). */
#include "store/tables/deliveries.h"

#include "agents/agents.h"
#include "api/api.h"
#include "api/dispatch.h"
#include "api/resources/foreign_clients.h"
#include "api/report.h"
#include "api/routes.h"
#include "api/slug.h"
#include "api/resources/task_shapes.h"
#include "base/clock.h"
#include "settings/dialect.h"
#include "store/tables/workspaces.h"
#include "tasks/tasks.h"

enum { EVENT_ID_CHARS = 200 };

struct webhook_body {
    const char *event, *app_id, *app_name, *event_id;
    struct json_value payload;
};

struct trigger_payload {
    const char *agent_name, *workspace_slug, *thread_slug, *prompt;
    struct json_value raw_data;
    bool is_auto_run;
};

static const struct field webhook_fields[] = {
    FIELD_STRING(struct webhook_body, event, "event", .flags = FIELD_REQUIRED, .min = 1, .max = 64),
    FIELD_OBJECT(struct webhook_body, payload, "payload", .help = "required by every event but ping"),
    FIELD_STRING(struct webhook_body, app_id, "app_id", .max = 64),
    FIELD_STRING(struct webhook_body, app_name, "app_name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct webhook_body, event_id, "event_id", .min = 1, .max = EVENT_ID_CHARS,
                 .help = "makes a repeat harmless"),
    FIELD_END,
};

static const struct field trigger_fields[] = {
    FIELD_OBJECT(struct trigger_payload, raw_data, "raw_data", .flags = FIELD_REQUIRED),
    FIELD_BOOL(struct trigger_payload, is_auto_run, "auto_run"),
    FIELD_STRING(struct trigger_payload, agent_name, "agent_name", .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct trigger_payload, workspace_slug, "workspace_slug", .min = 1, .max = SLUG_CHARS,
                 .help = "absent with auto_run: the default workspace"),
    FIELD_STRING(struct trigger_payload, thread_slug, "thread_slug", .min = 1, .max = SLUG_CHARS),
    FIELD_STRING(struct trigger_payload, prompt, "prompt", .max = LIMIT_STRING_DEFAULT, .def_str = ""),
    FIELD_END,
};

/* A valid delivery: its event and the event's payload. */
struct webhook {
    const struct webhook_event *event;
    struct trigger_payload trigger;
    struct report_payload report;
};

static const struct field webhook_answer[] = {
    SHAPE_STRING("message", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("task_uuid", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("calendar_event_uuid", .flags = FIELD_OPTIONAL),
    SHAPE_BOOL("auto_run", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("status", .flags = FIELD_OPTIONAL),
    SHAPE_TIME("timestamp", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("app_name", .flags = FIELD_OPTIONAL | FIELD_NULLABLE, .help = "of a ping: the app that sent it"),
    SHAPE_BOOL("deduplicated", .flags = FIELD_OPTIONAL, .help = "true: this event_id was answered before"),
    FIELD_END,
};

/* ---- trigger-agent ---- */

static int check_trigger(const struct trigger_payload *in, struct err *e)
{
    if (in->is_auto_run && !in->agent_name)
        err_add_field(e, "payload.agent_name", "is required when auto_run is true");
    if (strlen(in->prompt) > LIMIT_PROMPT_BYTES)
        err_add_field(e, "payload.prompt", "must be at most %d bytes long", LIMIT_PROMPT_BYTES);
    return e->n_fields ? -EINVAL : 0;
}

/* "create_new" or no thread makes a new thread, named after the current time (decision D5). */
static int make_thread(struct request *req, int64_t workspace_id, const char **ret, struct err *e)
{
    char now[TIME_TEXT_SIZE], id[UUID_SIZE];
    struct thread_row thread = { .workspace_id = workspace_id, .owner = req->caller->scope };
    int r;

    clock_now_text(now);
    uuid_v4(id);
    thread.slug = arena_strdup(req->arena, id);
    thread.name = arena_printf(req->arena, "Task of %s", now);
    r = store_threads_insert(req->api->store, &thread, NULL, e);
    if (r == 0)
        *ret = thread.slug;
    return r;
}

static bool wants_thread(const struct trigger_payload *in)
{
    return in->workspace_slug && (!in->thread_slug || strcmp(in->thread_slug, "create_new") == 0);
}

/* Only looks up; creates nothing. */
static int find_place(struct request *req, const struct trigger_payload *in, struct workspace_row *ret, struct err *e)
{
    struct thread_row thread;
    int r;

    if (!in->workspace_slug)
        return 0;
    r = store_workspaces_get(req->api->store, req->arena, in->workspace_slug, ret, e);
    if (r < 0 || wants_thread(in))
        return r;
    return store_threads_get(req->api->store, req->arena, ret->id, in->thread_slug, &thread, e);
}

/* The last step before the work, so that a refused request uses up no grant. */
static int take_permission(struct request *req, struct err *e)
{
    return identity_require(req->api->identity, req->caller, PERM_WEBHOOK_TRIGGER, e);
}

static int check_agent(struct request *req, const char *name, struct err *e)
{
    struct agent_row agent;

    return name ? agent_get(req->api->agents, name, req->arena, &agent, e) : 0;
}

static void write_trigger(struct json_writer *w, const struct task_ids *ids, bool is_auto_run)
{
    json_add_string(w, "task_uuid", ids->task_uuid);
    json_add_string(w, "calendar_event_uuid", ids->calendar_uuid);
    json_add_bool(w, "auto_run", is_auto_run);
    json_add_string(w, "message", is_auto_run ? "The agent is started" : "The task waits in the calendar for a person");
}

/* Sets the answer for repeats of the delivery: the answer written so far. */
static void fill_delivery(struct response *res, struct request *req, struct delivery_row *delivery)
{
    const struct http_response *out = &res->exchange->response;

    delivery->status = out->status;
    delivery->answer = arena_printf(req->arena, "%s}", buf_str(&out->body));
}

/* The answer is written first, so that the task and the answered delivery are stored in one transaction and no crash
 * can separate them (decision D5). */
static int trigger(struct request *req, const struct webhook *hook, struct delivery_row *delivery, struct response *res,
                   struct err *e)
{
    const struct webhook_body *body = req->body;
    struct trigger_payload in = hook->trigger;
    struct workspace_row workspace = { .id = 0 };
    struct task_ids ids, stored;
    int r = check_agent(req, in.agent_name, e);

    if (r == 0)
        r = find_place(req, &in, &workspace, e);
    if (r == 0)
        r = take_permission(req, e);
    if (r == 0 && wants_thread(&in))
        r = make_thread(req, workspace.id, &in.thread_slug, e);
    if (r < 0)
        return r;
    uuid_v4(ids.task_uuid);
    uuid_v4(ids.calendar_uuid);
    write_trigger(&res->json, &ids, in.is_auto_run);
    if (delivery)
        fill_delivery(res, req, delivery);
    return tasks_trigger(req->api->tasks,
                         &(struct task_trigger){ .app_id = req->caller->app_id,
                                                 .app_name = body->app_name ? body->app_name : req->caller->app_name,
                                                 .raw_data = json_to_str(req->arena, in.raw_data),
                                                 .is_auto_run = in.is_auto_run,
                                                 .depth = req->trigger_depth,
                                                 .agent_name = in.agent_name,
                                                 .workspace_slug = in.workspace_slug,
                                                 .thread_slug = in.thread_slug,
                                                 .prompt = in.prompt,
                                                 .ids = &ids,
                                                 .delivery = delivery },
                         &stored, e);
}

/* ---- task events ---- */

static int report(struct request *req, const struct webhook *hook, struct response *res, struct err *e)
{
    const struct report_payload *in = &hook->report;
    struct task_row task;
    const char *status = NULL;
    int64_t attempt = in->attempt;
    int r = report_find_task(req, in->task_uuid, &attempt, &task, e);

    if (r == 0)
        r = tasks_report(req->api->tasks,
                         &(struct tasks_report_request){
                             .uuid = in->task_uuid,
                             .what = hook->event->what,
                             .machine_id = in->machine_id,
                             .attempt = attempt,
                             .result_json = json_is_absent(in->result) ? NULL : json_to_str(req->arena, in->result),
                             .error = report_error_text(req->arena, in->error),
                         },
                         &status, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "task_uuid", in->task_uuid);
    json_add_string(&res->json, "status", status);
    return 0;
}

static int ping(struct request *req, struct response *res)
{
    const struct webhook_body *body = req->body;
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    json_add_string(&res->json, "app_name", req->caller->app_name ? req->caller->app_name : body->app_name);
    json_add_string(&res->json, "message", "pong");
    json_add_string(&res->json, "timestamp", now);
    return 0;
}

/* ---- each delivery only once ---- */

static const char *header_of(struct request *req, const char *abbr)
{
    const char *given = http_header(&req->exchange->request, arena_printf(req->arena, "x-%s-event-id", abbr));

    return given && *given && strlen(given) <= EVENT_ID_CHARS ? given : NULL;
}

/* The event id may also come in the header of another known dialect, which is noted. */
static const char *event_id_of(struct request *req)
{
    const struct webhook_body *body = req->body;
    const char *abbr = settings_string(req->api->settings, req->arena, SETTING_IDENTITY_ABBR),
               *given = header_of(req, abbr);

    for (const struct dialect *d = dialects; d->name && !given; d++) {
        given = header_of(req, d->abbr);
        if (given && d != dialects) /* svc belongs to every dialect */
            foreign_clients_note(dispatch_foreign_clients(req->api->dispatch), FOREIGN_HEADER, d->abbr,
                                 req->exchange->request.id);
    }
    return body->event_id ? body->event_id : given;
}

/* Repeats the first answer, with deduplicated: true. */
static int answer_again(struct request *req, struct response *res, const struct webhook *hook,
                        const struct delivery_row *first, struct err *e)
{
    struct json_value answer = { 0 }, value;
    struct json_iter it;
    struct slice key;
    int r = hook->event->is_trigger ? take_permission(req, e) : 0;

    if (r == 0)
        r = json_parse(req->arena, slice_of(first->answer), &answer, e);
    if (r < 0)
        return r;
    for (it = json_iter(answer); json_next(&it, &key, &value);)
        if (!slice_eq_str(key, "success"))
            json_add_value(&res->json, key.p, value);
    json_add_bool(&res->json, "deduplicated", true);
    res->exchange->response.status = (int)first->status;
    return 0;
}

/* A crash between report and answer is harmless: repeating the report succeeds. */
static int report_once(struct request *req, const struct webhook *hook, struct delivery_row *delivery,
                       struct response *res, struct err *e)
{
    int r = report(req, hook, res, e);

    if (r < 0)
        return r;
    fill_delivery(res, req, delivery);
    return store_deliveries_answer(req->api->store, delivery, e);
}

static int act_once(struct request *req, const struct webhook *hook, const char *event_id, struct response *res,
                    struct err *e)
{
    struct delivery_row delivery;
    int r;

    r = store_deliveries_claim(req->api->store, req->arena, req->caller->scope, event_id, &delivery, e);
    if (r < 0)
        return r;
    if (delivery.state == DELIVERY_ANSWERED)
        return answer_again(req, res, hook, &delivery, e);
    if (delivery.state == DELIVERY_BUSY)
        return err_set(e, -EBUSY, "DELIVERY_IN_PROGRESS",
                       "An event with this event_id is being handled right now; ask again for its answer");
    r = hook->event->is_trigger ? trigger(req, hook, &delivery, res, e) : report_once(req, hook, &delivery, res, e);
    if (r < 0)
        (void)!store_deliveries_release(req->api->store, delivery.source, delivery.event_id, NULL);
    return r;
}

static int read_payload(struct request *req, struct webhook *hook, struct err *e)
{
    const struct webhook_body *body = req->body;
    int r;

    if (json_is_absent(body->payload))
        return err_add_field(e, "payload", "is required");
    if (!hook->event->is_trigger)
        return fields_read(report_fields, body->payload, &hook->report, req->arena, "payload", e);
    r = fields_read(trigger_fields, body->payload, &hook->trigger, req->arena, "payload", e);
    if (r == 0 && hook->trigger.is_auto_run && !hook->trigger.workspace_slug)
        hook->trigger.workspace_slug = WORKSPACE_DEFAULT;
    return r < 0 ? r : check_trigger(&hook->trigger, e);
}

/* True when the request names no app; an invalid key is then ignored (decision D3). */
static bool names_nobody(const struct request *req, const char *code)
{
    const char *in_header = http_header(&req->exchange->request, "x-app-id"),
               *in_body = ((const struct webhook_body *)req->body)->app_id;
    bool has_app = (in_header && *in_header) || (in_body && *in_body);

    return strcmp(code, "MISSING_APP_ID") == 0 || (strcmp(code, "INVALID_API_KEY") == 0 && !has_app);
}

/* A report may come without credentials: then the task's uuid identifies the sender, as on /api/external-tasks. A
 * report needs no permission. */
static int admit(struct request *req, const struct webhook_event *event, struct err *e)
{
    struct err why = { 0 };
    int r = request_need_caller(req, &why);

    if (r < 0 && !event->is_trigger && names_nobody(req, why.code))
        return 0;
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    if (event->is_trigger && req->caller->kind == CALLER_AGENT)
        return err_set(e, -EPERM, "TASK_TOKEN_MISMATCH", "An agent's token is for reports about its own task.");
    return event->is_trigger ? identity_check(req->api->identity, req->caller, PERM_WEBHOOK_TRIGGER, e) : 0;
}

static int receive_webhook(struct request *req, struct response *res, struct err *e)
{
    const struct webhook_body *body = req->body;
    struct webhook hook = { 0 };
    const char *event_id;
    int r;

    r = webhook_event_find(body->event, "event", &hook.event, e);
    if (r == 0 && hook.event->is_ping)
        return ping(req, res);
    if (r == 0)
        r = admit(req, hook.event, e);
    if (r == 0)
        r = read_payload(req, &hook, e);
    if (r < 0)
        return r;
    event_id =
        req->caller->kind == CALLER_NOBODY ? NULL : event_id_of(req); /* repeats of a report change nothing anyway */
    if (event_id)
        return act_once(req, &hook, event_id, res, e);
    return hook.event->is_trigger ? trigger(req, &hook, NULL, res, e) : report(req, &hook, res, e);
}

const struct route webhook_routes[] = {
    { .method = HTTP_POST,
      .path = "/webhooks/{token}",
      .permission = PERM_BODY,
      .uses_rows = true,
      ROUTE_BODY(webhook_fields, struct webhook_body),
      .max_body = LIMIT_BODY_ACTIVITY,
      .stores = true,
      .is_sdk = true,
      .answer = webhook_answer,
      .handler = receive_webhook,
      .summary = "Create tasks and tell of their progress (permission webhook.trigger)",
      .tag = "Webhooks" },
    ROUTE_END,
};
