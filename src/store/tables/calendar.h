/* Calendar events (table calendar; decision D5). Any thread; row texts live in the arena. Dates are ISO 8601 UTC texts,
 * which sort as text. The store sets created_at and updated_at.
 *
 *     struct calendar_list_request request = { .from = "2026-11-01", .to = "2026-12-01" };
 *     r = store_calendar_list(store, arena, &request, &events, &n, e);
 */
#pragma once

#include "store/store.h"

struct calendar_row {
    const char *uuid, *title, *description;
    const char *start_date;
    const char *end_date; /* NULL: the event ends when it starts */
    bool all_day;
    const char *color, *repeat;
    const char *reminders; /* JSON array */
    const char *metadata;  /* JSON object: source app, task, agent, ..., "dispatch_status" */
    const char *task_uuid; /* may be NULL */
    const char *created_at, *updated_at;
};

/* Members that are NULL (all_day: negative) are not changed. */
struct calendar_change {
    const char *uuid;
    const char *title, *description, *start_date, *end_date, *color, *repeat, *reminders, *metadata;
    int all_day; /* -1 keep, 0, 1 */
};

/* -ENOENT EVENT_NOT_FOUND. */
int store_calendar_get(struct store *s, struct arena *a, const char *uuid, struct calendar_row *ret,
                       struct err *e) MUST_CHECK;
struct calendar_list_request {
    const char *from, *to; /* either may be NULL: open */
    int64_t limit;         /* 0 or more than LIMIT_LIST: LIMIT_LIST */
};
/* Events that overlap [from, to), ordered by start. Of more than limit events, the first after `from`, or the last ones
 * when `from` is NULL. 1: these events have more than LIMIT_CALENDAR_BYTES, and the last of them are left out. */
int store_calendar_list(struct store *s, struct arena *a, const struct calendar_list_request *request,
                        struct calendar_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
int store_calendar_insert(struct store *s, const struct calendar_row *row, struct err *e) MUST_CHECK;
int store_calendar_update(struct store *s, const struct calendar_change *c, struct err *e) MUST_CHECK;
/* What became of the end of the row's task on its way to the app: members delivery_status and delivery_error of the
 * task's event. An end that was delivered leaves neither. A row without a task or an event: nothing, 0. */
struct calendar_delivery {
    const char *table, *row_id;
    const char *status; /* NULL: delivered */
    const char *error;  /* NULL: none */
};
int store_calendar_note_delivery(struct store *s, const struct calendar_delivery *d, struct err *e) MUST_CHECK;
int store_calendar_delete(struct store *s, const char *uuid, struct err *e) MUST_CHECK;

/* Inside a writer closure. */
int store_calendar_add(struct sql_db *db, const struct calendar_row *row, struct err *e) MUST_CHECK;
