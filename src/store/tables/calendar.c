#include "store/tables/calendar.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "uuid, title, description, start_date, end_date, all_day, color, repeat, reminders, metadata, task_uuid, "         \
    "created_at, updated_at"

static const struct rows_missing missing = { .code = "EVENT_NOT_FOUND", .what = "calendar event" };

static void read_event(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct calendar_row *)into = (struct calendar_row){
        .uuid = sql_text(rows, a, 0),
        .title = sql_text(rows, a, 1),
        .description = sql_text(rows, a, 2),
        .start_date = sql_text(rows, a, 3),
        .end_date = sql_text(rows, a, 4),
        .all_day = sql_int(rows, 5) != 0,
        .color = sql_text(rows, a, 6),
        .repeat = sql_text(rows, a, 7),
        .reminders = sql_text(rows, a, 8),
        .metadata = sql_text(rows, a, 9),
        .task_uuid = sql_text(rows, a, 10),
        .created_at = sql_text(rows, a, 11),
        .updated_at = sql_text(rows, a, 12),
    };
}

int store_calendar_add(struct sql_db *db, const struct calendar_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return sql_exec(db, e,
                    "INSERT INTO calendar (" COLUMNS ") "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, '[]'), coalesce(?, '{}'), ?, ?, ?)",
                    "sssssisssssss", row->uuid, row->title, row->description, row->start_date, row->end_date,
                    (int64_t)row->all_day, row->color, row->repeat, row->reminders, row->metadata, row->task_uuid, now,
                    now);
}

static int insert_event(struct sql_db *db, void *arg, struct err *e)
{
    return store_calendar_add(db, arg, e);
}

int store_calendar_insert(struct store *s, const struct calendar_row *row, struct err *e)
{
    struct calendar_row copy = *row;

    return store_write(s, insert_event, &copy, e);
}

int store_calendar_get(struct store *s, struct arena *a, const char *uuid, struct calendar_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM calendar WHERE uuid = ?", "s", uuid);
    return r < 0 ? r : rows_one(rows, a, read_event, ret, ROWS_NAMED(missing, uuid), e);
}

int store_calendar_list(struct store *s, struct arena *a, const struct calendar_list_request *request,
                        struct calendar_row **ret, size_t *ret_n, struct err *e)
{
    static const char first[] = "SELECT " COLUMNS " FROM calendar WHERE (?2 IS NULL OR start_date < ?2) "
                                "AND (start_date >= ?1 OR end_date > ?1) ORDER BY start_date, rowid LIMIT ?3";
    static const char last[] =
        "SELECT " COLUMNS " FROM (SELECT *, rowid AS place FROM calendar WHERE ?1 IS NULL "
        "AND (?2 IS NULL OR start_date < ?2) ORDER BY start_date DESC, rowid DESC LIMIT ?3) ORDER BY start_date, place";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, request->from ? first : last, "ssi", request->from, request->to,
                  request->limit > 0 ? MIN(request->limit, LIMIT_LIST) : LIMIT_LIST);
    return r < 0 ? r : rows_some(rows, a, sizeof(struct calendar_row), read_event, LIMIT_CALENDAR_BYTES, ret, ret_n, e);
}

#define KEPT(member) "'" member "', json_extract(metadata, '$." member "')"

/* The service owns these members of a task's event: metadata read before a change of them must not restore the old
 * values. A member that is null in the second argument of json_patch() is removed. */
#define NEW_METADATA                                                                                                   \
    "CASE WHEN ?8 IS NULL THEN metadata WHEN json_type(metadata, '$.dispatch_status') IS NULL THEN ?8 "                \
    "ELSE json_patch(?8, json_object(" KEPT("dispatch_status") ", " KEPT("delivery_status") ", " KEPT(                 \
        "delivery_error") ")) END"

int store_calendar_update(struct store *s, const struct calendar_change *c, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "UPDATE calendar SET title = coalesce(?, title), description = coalesce(?, description), "
        "start_date = coalesce(?, start_date), end_date = coalesce(?, end_date), color = coalesce(?, color), "
        "repeat = coalesce(?, repeat), reminders = coalesce(?, reminders), metadata = " NEW_METADATA ", "
        "all_day = CASE ?9 WHEN -1 THEN all_day ELSE ?9 END, updated_at = ? WHERE uuid = ?",
        "ssssssssiss", c->title, c->description, c->start_date, c->end_date, c->color, c->repeat, c->reminders,
        c->metadata, (int64_t)c->all_day, now, c->uuid);
    return rows_changed(r, n, ROWS_NAMED(missing, c->uuid), e);
}

int store_calendar_note_delivery(struct store *s, const struct calendar_delivery *d, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(
        s, e, NULL,
        "UPDATE calendar SET metadata = json_patch(metadata, json_object('delivery_status', ?1, 'delivery_error', ?2)), "
        "updated_at = ?3 WHERE uuid = (SELECT calendar_event_uuid FROM tasks WHERE backend_table = ?4 AND row_id = ?5) "
        "AND (json_extract(metadata, '$.delivery_status') IS NOT ?1 OR json_extract(metadata, '$.delivery_error') IS NOT ?2)",
        "sssss", d->status, d->error, now, d->table, d->row_id);
}

int store_calendar_delete(struct store *s, const char *uuid, struct err *e)
{
    int64_t n = 0;
    int r;

    r = store_exec(s, e, &n, "DELETE FROM calendar WHERE uuid = ?", "s", uuid);
    return rows_changed(r, n, ROWS_NAMED(missing, uuid), e);
}
