/* POST /api/calendar-events: an app puts an event into the person's calendar (specification, "Calendar event"; decision
 * D5). Clients write member names in snake case, like the table's columns, or in camel case. */
#include "api/resources/calendar.h"

#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"

struct new_event {
    const char *title, *description, *start_date, *start_date_camel, *end_date, *end_date_camel, *color, *repeat;
    struct json_value reminders, metadata;
    bool is_all_day, is_all_day_camel;
};

static const struct field new_event_fields[] = {
    FIELD_STRING(struct new_event, title, "title", FIELD_REQUIRED, .min = 1, .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct new_event, description, "description", .max = LIMIT_STRING_DEFAULT),
    FIELD_STRING(struct new_event, start_date, "start_date", .max = 40, .format = "date-time",
                 .help = "or startDate; one of both is required"),
    FIELD_STRING(struct new_event, start_date_camel, "startDate", .max = 40, .format = "date-time"),
    FIELD_STRING(struct new_event, end_date, "end_date", .max = 40, .format = "date-time", .help = "or endDate"),
    FIELD_STRING(struct new_event, end_date_camel, "endDate", .max = 40, .format = "date-time"),
    FIELD_BOOL(struct new_event, is_all_day, "all_day", .help = "or allDay"),
    FIELD_BOOL(struct new_event, is_all_day_camel, "allDay"),
    FIELD_STRING(struct new_event, color, "color", .max = 32),
    FIELD_STRING(struct new_event, repeat, "repeat", .max = 200),
    FIELD_ARRAY(struct new_event, reminders, "reminders", .max = 20),
    FIELD_OBJECT(struct new_event, metadata, "metadata",
                 .help = "kept as it is; source_app and source_app_name are the service's"),
    FIELD_END,
};

static const struct field new_event_answer[] = { SHAPE_OBJECT("event", calendar_event_shape), FIELD_END };

/* The sender may not set the members that name the event's origin or that only events of tasks have. */
static bool is_reserved(struct slice name)
{
    static const char *const reserved[] = { "source_app", "source_app_name", "task_uuid", "dispatch_status" };

    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (slice_eq_str(name, reserved[i]))
            return true;
    return false;
}

/* The text of a member that is kept as it is. Programs fill the calendar and a person reads it. */
static int member_of(struct request *req, const char *name, struct json_value given, const char **ret, struct err *e)
{
    if (json_is_absent(given))
        return 0;
    *ret = json_to_str(req->arena, given);
    return strlen(*ret) <= LIMIT_EVENT_MEMBER
               ? 0
               : err_add_field(e, name, "must have at most %d bytes as JSON", LIMIT_EVENT_MEMBER);
}

static int metadata_of(struct request *req, struct json_value given, const char **ret, struct err *e)
{
    struct json_value value;
    struct json_writer w;
    struct slice key;
    struct buf out;
    int r;

    buf_init(&out, LIMIT_EVENT_MEMBER);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "source_app", req->caller->app_id);
    json_add_string(&w, "source_app_name", req->caller->app_name);
    for (struct json_iter it = json_iter(given); json_next(&it, &key, &value);)
        if (!is_reserved(key) && !memchr(key.p, 0, key.n))
            json_add_value(&w, key.p, value);
    json_end(&w);
    r = out.overflowed
            ? err_add_field(e, "metadata", "must have at most %d bytes as JSON, with the app's own", LIMIT_EVENT_MEMBER)
            : 0;
    *ret = buf_to_arena(&out, req->arena);
    return r;
}

static int read_dates(struct request *req, const struct new_event *body, struct calendar_row *row, struct err *e)
{
    const char *start = body->start_date ? body->start_date : body->start_date_camel;
    const char *end = body->end_date ? body->end_date : body->end_date_camel;
    int r;

    if (!start)
        return err_add_field(e, "start_date", "is required");
    r = calendar_utc_text(req, body->start_date ? "start_date" : "startDate", start, &row->start_date, e);
    if (r == 0)
        r = calendar_utc_text(req, body->end_date ? "end_date" : "endDate", end, &row->end_date, e);
    if (r == 0 && row->end_date && strcmp(row->end_date, row->start_date) < 0)
        r = err_add_field(e, body->end_date ? "end_date" : "endDate", "must not be before the start");
    return r;
}

static int create_event(struct request *req, struct response *res, struct err *e)
{
    const struct new_event *body = req->body;
    char *uuid = arena_alloc(req->arena, UUID_SIZE);
    struct calendar_row row = {
        .uuid = uuid,
        .title = body->title,
        .description = body->description,
        .color = body->color,
        .repeat = body->repeat,
        .all_day = body->is_all_day || body->is_all_day_camel,
    };
    int r;

    uuid_v4(uuid);
    r = read_dates(req, body, &row, e);
    if (r == 0)
        r = member_of(req, "reminders", body->reminders, &row.reminders, e);
    if (r == 0)
        r = metadata_of(req, body->metadata, &row.metadata, e);
    if (r == 0)
        r = store_calendar_insert(req->api->store, &row, e);
    if (r == 0)
        r = store_calendar_get(req->api->store, req->arena, uuid, &row, e);
    if (r < 0)
        return r;
    calendar_write_event(&res->json, "event", &row);
    return 0;
}

const struct route calendar_new_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/calendar-events",
      .permission = PERM_WEBHOOK_TRIGGER,
      ROUTE_BODY(new_event_fields, struct new_event),
      .stores = true,
      .status = 201,
      .answer = new_event_answer,
      .handler = create_event,
      .summary = "Put an event into the calendar",
      .tag = "Calendar" },
    ROUTE_END,
};
