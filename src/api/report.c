#include "api/report.h"

#include "api/api.h"
#include "api/resources/task_shapes.h"
#include "base/limits.h"

#include <strings.h>

static const struct webhook_event events[] = {
    { .name = "trigger-agent", .is_trigger = true },
    { .name = "task.trigger", .is_trigger = true },
    { .name = "task-trigger", .is_trigger = true },
    { .name = "task-start", .what = TASK_STARTED },
    { .name = "task.started", .what = TASK_STARTED },
    { .name = "task.start", .what = TASK_STARTED },
    { .name = "task.progress", .what = TASK_STARTED },
    { .name = "task.processing", .what = TASK_STARTED },
    { .name = "started", .what = TASK_STARTED },
    { .name = "start", .what = TASK_STARTED },
    { .name = "progress", .what = TASK_STARTED },
    { .name = "processing", .what = TASK_STARTED },
    { .name = "task-started", .what = TASK_STARTED },
    { .name = "task-progress", .what = TASK_STARTED },
    { .name = "task-processing", .what = TASK_STARTED },
    { .name = "task-complete", .what = TASK_COMPLETED },
    { .name = "task-completed", .what = TASK_COMPLETED },
    { .name = "task.completed", .what = TASK_COMPLETED },
    { .name = "task.complete", .what = TASK_COMPLETED },
    { .name = "completed", .what = TASK_COMPLETED },
    { .name = "complete", .what = TASK_COMPLETED },
    { .name = "task-fail", .what = TASK_FAILED },
    { .name = "task-failed", .what = TASK_FAILED },
    { .name = "task.failed", .what = TASK_FAILED },
    { .name = "task.fail", .what = TASK_FAILED },
    { .name = "failed", .what = TASK_FAILED },
    { .name = "fail", .what = TASK_FAILED },
    { .name = "task-claimed", .what = TASK_CLAIMED },
    { .name = "task-claim", .what = TASK_CLAIMED },
    { .name = "task.claimed", .what = TASK_CLAIMED },
    { .name = "task.claim", .what = TASK_CLAIMED },
    { .name = "claimed", .what = TASK_CLAIMED },
    { .name = "claim", .what = TASK_CLAIMED },
    { .name = "task-canceled", .what = TASK_CANCELED },
    { .name = "task-cancelled", .what = TASK_CANCELED },
    { .name = "task-cancel", .what = TASK_CANCELED },
    { .name = "task.canceled", .what = TASK_CANCELED },
    { .name = "task.cancelled", .what = TASK_CANCELED },
    { .name = "task.cancel", .what = TASK_CANCELED },
    { .name = "canceled", .what = TASK_CANCELED },
    { .name = "cancelled", .what = TASK_CANCELED },
    { .name = "cancel", .what = TASK_CANCELED },
    { .name = "system.ping", .is_ping = true },
    { .name = "ping", .is_ping = true },
};

const struct field report_fields[] = {
    FIELD_STRING(struct report_payload, task_uuid, "task_uuid", .flags = FIELD_REQUIRED, .format = "uuid"),
    FIELD_STRING(struct report_payload, machine_id, "machine_id", .max = LIMIT_NAME_CHARS),
    FIELD_OBJECT(struct report_payload, result, "result"),
    FIELD_ANY(struct report_payload, error, "error", .help = "a string, or an object with message"),
    FIELD_INT(struct report_payload, attempt, "attempt", .min = 0, .max = LIMIT_ATTEMPT,
              .help = "TASK_ATTEMPT of the agent"),
    FIELD_END,
};

int webhook_event_find(const char *name, const char *field, const struct webhook_event **ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        if (strcmp(events[i].name, name) == 0) {
            *ret = &events[i];
            return 0;
        }
    return err_add_field(
        e, field,
        "must be trigger-agent, task-start, task-complete, task-fail, task.claimed, task.canceled, ping "
        "or an alias of them");
}

const char *report_error_text(struct arena *a, struct json_value error)
{
    struct json_value message = json_get(error, "message");

    if (json_is_absent(error))
        return NULL;
    if (json_type(error) == JSON_STRING)
        return arena_slicedup(a, json_string(error));
    if (json_type(message) == JSON_STRING)
        return arena_slicedup(a, json_string(message));
    return json_to_str(a, error);
}

static int check_agent(const struct caller *agent, const char *uuid, int64_t *attempt, struct err *e)
{
    if (strcasecmp(agent->task_uuid, uuid) != 0)
        return err_set(e, -EPERM, "TASK_TOKEN_MISMATCH", "The token is of an agent that works on another task.");
    if (*attempt && *attempt != agent->attempt)
        return err_set(e, -EPERM, "TASK_TOKEN_MISMATCH", "The token is of attempt %lld of this task.",
                       (long long)agent->attempt);
    *attempt = agent->attempt;
    return 0;
}

int report_find_task(struct request *req, const char *uuid, int64_t *attempt, struct task_row *ret, struct err *e)
{
    enum caller_kind kind = req->caller->kind;
    struct task_row task;
    int r = 0;

    if (kind == CALLER_AGENT)
        r = check_agent(req->caller, uuid, attempt, e);
    else if (kind == CALLER_NOBODY)
        r = request_check_reporter(req, uuid, e);
    else
        r = task_of_caller(req, uuid, &task, e);
    if (r == 0 && (kind == CALLER_AGENT || kind == CALLER_NOBODY))
        r = store_tasks_get(req->api->store, req->arena, uuid, &task, e);
    if (r == 0)
        *ret = task;
    return r;
}
