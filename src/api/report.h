/* What webhooks report about a task, under any alias of an event (decision D5: events and aliases). */
#pragma once

#include "api/route.h"
#include "store/tables/tasks.h"
#include "tasks/tasks.h"

struct webhook_event {
    const char *name;
    bool is_ping, is_trigger;
    enum task_report what;
};

/* -EINVAL VALIDATION_ERROR naming `field` and the accepted words. */
int webhook_event_find(const char *name, const char *field, const struct webhook_event **ret, struct err *e) MUST_CHECK;

struct report_payload {
    const char *task_uuid, *machine_id;
    struct json_value result, error;
    int64_t attempt; /* 0: not given */
};
extern const struct field report_fields[];

/* An error as clients send it: a string, or an object with `message`. NULL when there is none. */
const char *report_error_text(struct arena *a, struct json_value error);

/* The task that a report is about, and the attempt: the one given, or that of the agent's token. A sender without
 * credentials is identified by the task's uuid (decision D3), if identity.peers allows it; an app reports on its own
 * tasks only. -ENOENT TASK_NOT_FOUND; -EPERM TASK_TOKEN_MISMATCH, PEER_NOT_ALLOWED; -EACCES TASK_TOKEN_REQUIRED. */
int report_find_task(struct request *req, const char *uuid, int64_t *attempt, struct task_row *ret,
                     struct err *e) MUST_CHECK;
