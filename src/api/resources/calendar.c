/* The calendar: the user's view of tasks, to edit, run and reject them (specification, "Calendar event"; decision D5).
 */
#include "api/resources/calendar.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/resources/task_shapes.h"
#include "base/clock.h"
#include "tasks/tasks.h"

struct range_query {
    const char *from, *to;
    int64_t limit;
};
struct event_patch {
    const char *title, *description, *start_date, *end_date, *color, *repeat;
    struct json_value reminders, metadata;
    bool is_all_day, has_all_day;
};

static const struct field range_fields[] = {
    FIELD_STRING(struct range_query, from, "from", .max = 40, .format = "date-time"),
    FIELD_STRING(struct range_query, to, "to", .max = 40, .format = "date-time"),
    FIELD_INT(struct range_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST),
    FIELD_END,
};

static const struct field patch_fields[] = {
    FIELD_STRING(struct event_patch, title, "title", .min = 1, .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct event_patch, description, "description", .max = LIMIT_STRING_DEFAULT),
    FIELD_STRING(struct event_patch, start_date, "start_date", .max = 40, .format = "date-time"),
    FIELD_STRING(struct event_patch, end_date, "end_date", .max = 40, .format = "date-time"),
    FIELD_BOOL(struct event_patch, is_all_day, "all_day", .present_offset = offsetof(struct event_patch, has_all_day)),
    FIELD_STRING(struct event_patch, color, "color", .max = 32),
    FIELD_STRING(struct event_patch, repeat, "repeat", .max = 200),
    FIELD_ARRAY(struct event_patch, reminders, "reminders", .max = 20),
    FIELD_OBJECT(struct event_patch, metadata, "metadata", .help = "members given replace those there"),
    FIELD_END,
};

const struct field calendar_event_shape[] = {
    SHAPE_STRING("uuid", .format = "uuid"),
    SHAPE_STRING("title"),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_TIME("start_date"),
    SHAPE_TIME("end_date", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("all_day"),
    SHAPE_STRING("color", .flags = FIELD_NULLABLE),
    SHAPE_STRING("repeat", .flags = FIELD_NULLABLE),
    SHAPE_ANY("reminders"),
    SHAPE_ANY(
        "metadata",
        .help =
            "source app, task, agent, workspace, thread, prompt, dispatch_status; of an end that an app in Custom Mode "
            "has not accepted delivery_status and delivery_error"),
    SHAPE_STRING("task_uuid", .flags = FIELD_NULLABLE),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("updated_at"),
    FIELD_END,
};

static const struct field event_answer[] = { SHAPE_OBJECT("event", calendar_event_shape), FIELD_END };
static const struct field events_answer[] = {
    SHAPE_LIST("events", calendar_event_shape),
    SHAPE_BOOL("has_more", .flags = FIELD_OPTIONAL,
               .help = "true: the events are large, and the last of them are left out; ask for a shorter range"),
    FIELD_END,
};

static int check_patch(const struct request *req, const void *body, struct err *e)
{
    return request_check_patch(req, e);
}

void calendar_write_event(struct json_writer *w, const char *name, const struct calendar_row *row)
{
    json_begin_object_as(w, name);
    json_add_string(w, "uuid", row->uuid);
    json_add_string(w, "title", row->title);
    json_add_string(w, "description", row->description);
    json_add_string(w, "start_date", row->start_date);
    json_add_string(w, "end_date", row->end_date);
    json_add_bool(w, "all_day", row->all_day);
    json_add_string(w, "color", row->color);
    json_add_string(w, "repeat", row->repeat);
    json_add_raw(w, "reminders", row->reminders);
    json_add_raw(w, "metadata", row->metadata);
    json_add_string(w, "task_uuid", row->task_uuid);
    json_add_string(w, "created_at", row->created_at);
    json_add_string(w, "updated_at", row->updated_at);
    json_end(w);
}

int calendar_utc_text(struct request *req, const char *field, const char *given, const char **ret, struct err *e)
{
    int64_t wall_ms = 0;
    char *text;

    *ret = NULL;
    if (!given)
        return 0;
    if (clock_parse(slice_of(given), &wall_ms) < 0)
        return err_add_field(e, field, "must be an ISO 8601 date, like 2026-11-20 or 2026-11-20T09:30:00Z");
    text = arena_alloc(req->arena, TIME_TEXT_SIZE);
    clock_format(wall_ms, text);
    *ret = text;
    return 0;
}

static int list_events(struct request *req, struct response *res, struct err *e)
{
    const struct range_query *query = req->query;
    struct calendar_row *rows = NULL;
    struct calendar_list_request range = { .limit = query->limit };
    size_t n = 0;
    int r;

    r = calendar_utc_text(req, "from", query->from, &range.from, e);
    if (r == 0)
        r = calendar_utc_text(req, "to", query->to, &range.to, e);
    if (r == 0)
        r = store_calendar_list(req->api->store, req->arena, &range, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "events");
    for (size_t i = 0; i < n; i++)
        calendar_write_event(&res->json, NULL, &rows[i]);
    json_end(&res->json);
    if (r > 0)
        json_add_bool(&res->json, "has_more", true);
    return 0;
}

static int answer_event(struct request *req, struct response *res, struct err *e)
{
    struct calendar_row row;
    int r;

    r = store_calendar_get(req->api->store, req->arena, req->params[0], &row, e);
    if (r < 0)
        return r;
    calendar_write_event(&res->json, "event", &row);
    return 0;
}

/* Merges `given` into the stored metadata; members of `given` win. */
static int merge_metadata(struct request *req, const char *stored, struct json_value given, const char **ret,
                          struct err *e)
{
    struct json_value old = { 0 }, value;
    struct json_writer w;
    struct json_iter it;
    struct slice key;
    struct buf out;
    int r;

    *ret = NULL;
    if (json_is_absent(given))
        return 0;
    r = json_parse(req->arena, slice_of(stored ? stored : "{}"), &old, e);
    if (r < 0)
        return r;
    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (it = json_iter(old); json_next(&it, &key, &value);)
        if (json_type(json_get(given, key.p)) == JSON_ABSENT)
            json_add_value(&w, key.p, value);
    for (it = json_iter(given); json_next(&it, &key, &value);)
        json_add_value(&w, key.p, value);
    json_end(&w);
    r = buf_check(&out, e);
    *ret = buf_to_arena(&out, req->arena);
    return r;
}

static int read_change(struct request *req, const struct calendar_row *row, struct calendar_change *ret, struct err *e)
{
    const struct event_patch *patch = req->body;
    int r;

    *ret = (struct calendar_change){
        .uuid = row->uuid,
        .title = patch->title,
        .description = patch->description,
        .color = patch->color,
        .repeat = patch->repeat,
        .reminders = json_is_absent(patch->reminders) ? NULL : json_to_str(req->arena, patch->reminders),
        .all_day = patch->has_all_day ? patch->is_all_day : -1,
    };
    r = calendar_utc_text(req, "start_date", patch->start_date, &ret->start_date, e);
    if (r == 0)
        r = calendar_utc_text(req, "end_date", patch->end_date, &ret->end_date, e);
    if (r == 0)
        r = merge_metadata(req, row->metadata, patch->metadata, &ret->metadata, e);
    return r;
}

static int check_order(const struct calendar_row *row, const struct calendar_change *c, struct err *e)
{
    const char *start = c->start_date ? c->start_date : row->start_date;
    const char *end = c->end_date ? c->end_date : row->end_date;

    if (end && strcmp(end, start) < 0)
        return err_add_field(e, "end_date", "must not be before start_date");
    return 0;
}

static int change_event(struct request *req, struct response *res, struct err *e)
{
    struct calendar_change change;
    struct calendar_row row;
    int r;

    r = store_calendar_get(req->api->store, req->arena, req->params[0], &row, e);
    if (r == 0)
        r = read_change(req, &row, &change, e);
    if (r == 0)
        r = check_order(&row, &change, e);
    if (r == 0)
        r = store_calendar_update(req->api->store, &change, e);
    return r < 0 ? r : answer_event(req, res, e);
}

static int delete_event(struct request *req, struct response *res, struct err *e)
{
    return store_calendar_delete(req->api->store, req->params[0], e);
}

static int task_of_event(struct request *req, const char **ret, struct err *e)
{
    struct calendar_row row;
    int r;

    r = store_calendar_get(req->api->store, req->arena, req->params[0], &row, e);
    if (r == 0 && !row.task_uuid)
        r = err_set(e, -ENOENT, "TASK_NOT_FOUND", "This calendar event belongs to no task");
    if (r == 0)
        *ret = row.task_uuid;
    return r;
}

static int run_event(struct request *req, struct response *res, struct err *e)
{
    const struct task_run_body *body = req->body;
    const char *task = NULL;
    int r;

    r = task_of_event(req, &task, e);
    return r < 0 ? r : tasks_run_now(req->api->tasks, task, body->agent_name, e);
}

static int reject_event(struct request *req, struct response *res, struct err *e)
{
    const struct task_reject_body *body = req->body;
    const char *task = NULL;
    int r;

    r = task_of_event(req, &task, e);
    return r < 0 ? r : tasks_reject(req->api->tasks, task, body->reason, e);
}

const struct route calendar_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/calendar",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(range_fields, struct range_query),
      .answer = events_answer,
      .handler = list_events,
      .summary = "Events that overlap a range",
      .tag = "Calendar" },
    { .method = HTTP_GET,
      .path = "/api/calendar/:uuid",
      .permission = PERM_ADMIN,
      .answer = event_answer,
      .handler = answer_event,
      .summary = "One event",
      .tag = "Calendar" },
    { .method = HTTP_PATCH,
      .path = "/api/calendar/:uuid",
      .permission = PERM_ADMIN,
      ROUTE_BODY(patch_fields, struct event_patch),
      .check_body = check_patch,
      .answer = event_answer,
      .handler = change_event,
      .summary = "Edit an event",
      .tag = "Calendar" },
    { .method = HTTP_DELETE,
      .path = "/api/calendar/:uuid",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = delete_event,
      .summary = "Delete an event; its task stays",
      .tag = "Calendar" },
    { .method = HTTP_POST,
      .path = "/api/calendar/:uuid/run",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_run_fields, struct task_run_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = run_event,
      .summary = "Run the event's task now",
      .tag = "Calendar" },
    { .method = HTTP_POST,
      .path = "/api/calendar/:uuid/reject",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      ROUTE_BODY(task_reject_fields, struct task_reject_body),
      .is_body_optional = true,
      .answer = api_nothing,
      .handler = reject_event,
      .summary = "Decide that the event's task is not run",
      .tag = "Calendar" },
    ROUTE_END,
};
