/* The retry broadcast (specification, "Retry broadcast"): informs other machines immediately that a row may be claimed.
 */
#include "tasks/private.h"

#include "base/fields.h"
#include "base/limits.h"
#include "base/log.h"

#define RETRY_EVENT "task-available"

struct retry_payload {
    const char *task_id, *table_name, *failed_by;
};

static const struct field retry_fields[] = {
    FIELD_STRING(struct retry_payload, task_id, "task_id", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct retry_payload, table_name, "table_name", FIELD_REQUIRED, .min = 1, .max = LIMIT_TABLE_NAME),
    FIELD_STRING(struct retry_payload, failed_by, "failed_by", .max = LIMIT_NAME_CHARS), FIELD_END
};

static char *channel_of(struct arena *a, const char *app_name)
{
    return arena_printf(a, "task-retry-%s", app_name);
}

static char *write_payload(struct arena *a, const struct backend_row *row, const char *failed_by, const char *reason)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "task_id", row->id);
    json_add_string(&w, "table_name", row->table);
    json_add_string(&w, "failed_by", failed_by);
    json_add_int(&w, "retry_count", row->retry_count);
    if (reason)
        json_add_string(&w, "recovery_reason", reason);
    json_end(&w);
    return buf_to_arena(&out, a);
}

/* Sent to the machines of every app that could take the row. A lost broadcast costs only time: the sweep finds the row.
 */
void task_retry_broadcast(struct tasks *t, const struct backend_row *row, const char *failed_by, const char *reason)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_listening *l = task_listening_hold(t);
    char *payload = write_payload(a, row, failed_by, reason);

    for (size_t i = 0; i < l->list.n; i++) {
        const struct task_listeners one = { &l->list.items[i], 1 };
        struct task_match m;
        struct err e = { 0 };

        if (!task_match(&one, row, &m))
            continue;
        if (t->config.backend->ops->broadcast(t->config.backend, channel_of(a, m.listener->app_name), RETRY_EVENT,
                                              payload, &e) < 0)
            log_debug("tasks", NULL, "retry broadcast: %s", LOG_Q(e.text));
    }
    task_listening_drop(t, l);
}

/* The payload is not trusted: any program may have written it. */
static void on_broadcast(void *tasks, const char *channel, const char *event, const char *payload_json)
{
    struct tasks *t = tasks;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct retry_payload payload = { 0 };
    struct json_value object;

    if (strcmp(event, RETRY_EVENT) != 0 || json_parse(a, slice_of(payload_json), &object, NULL) < 0)
        return;
    if (fields_read(retry_fields, object, &payload, a, "", NULL) == 0)
        task_intake_hint(t, payload.table_name, payload.task_id);
}

void task_retry_listen(struct tasks *t, const struct task_listening *l)
{
    struct backend *b = t->config.backend;
    AUTO(arena_freep) struct arena *a = arena_new();

    b->ops->unlisten(b, t);
    for (size_t i = 0; i < l->list.n; i++) {
        struct err e = { 0 };

        if (b->ops->listen(b, channel_of(a, l->list.items[i].app_name), on_broadcast, t, &e) < 0)
            log_warn("tasks", NULL, "retry broadcasts are not heard: %s", LOG_Q(e.text));
    }
}
