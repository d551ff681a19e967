#include "store/tables/app_deliveries.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "seq, id, app_id, table_name, row_id, machine_id, attempt, action, n_bytes, state, n_tries, status, error, "       \
    "next_ms, created_at, updated_at"
#define OPEN "state IN ('waiting', 'dead')"

static const struct rows_missing missing = { "DELIVERY_NOT_FOUND", "There is no such delivery that is still open." };

static void read_delivery(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct app_delivery_row *)into = (struct app_delivery_row){
        .seq = sql_int(rows, 0),
        .id = sql_text(rows, a, 1),
        .app_id = sql_text(rows, a, 2),
        .table_name = sql_text(rows, a, 3),
        .row_id = sql_text(rows, a, 4),
        .machine_id = sql_text(rows, a, 5),
        .attempt = sql_int(rows, 6),
        .action = sql_text(rows, a, 7),
        .n_bytes = sql_int(rows, 8),
        .state = sql_text(rows, a, 9),
        .n_tries = sql_int(rows, 10),
        .status = sql_int(rows, 11),
        .error = sql_text(rows, a, 12),
        .next_ms = sql_int(rows, 13),
        .created_at = sql_text(rows, a, 14),
        .updated_at = sql_text(rows, a, 15),
    };
}

static void read_with_body(struct sql_rows *rows, struct arena *a, void *into)
{
    read_delivery(rows, a, into);
    ((struct app_delivery_row *)into)->body = sql_text(rows, a, 16);
}

/* ---- reading ---- */

int store_app_deliveries_get(struct store *s, struct arena *a, const struct app_delivery_row *which,
                             struct app_delivery_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    if (which->id)
        r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM app_deliveries WHERE id = ?", "s", which->id);
    else
        r = sql_query(store_reader(s), &rows, e,
                      "SELECT " COLUMNS " FROM app_deliveries "
                      "WHERE table_name = ? AND row_id = ? AND machine_id = ? AND attempt = ?",
                      "sssi", which->table_name, which->row_id, which->machine_id, which->attempt);
    return r < 0 ? r : rows_one(rows, a, read_delivery, ret, &missing, e);
}

int store_app_deliveries_count(struct store *s, const char *app_id, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r =
        sql_query(store_reader(s), &rows, e,
                  "SELECT count(*) FROM app_deliveries WHERE " OPEN " AND (?1 IS NULL OR app_id = ?1)", "s", app_id);

    return r < 0 ? r : rows_int(rows, ret, e);
}

int store_app_deliveries_count_of_row(struct store *s, const char *table_name, const char *row_id, int64_t *ret,
                                      struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT count(*) FROM app_deliveries WHERE table_name = ? AND row_id = ? AND " OPEN, "ss",
                      table_name, row_id);

    return r < 0 ? r : rows_int(rows, ret, e);
}

int store_app_deliveries_list(struct store *s, struct arena *a, const struct app_deliveries_query *q,
                              struct app_delivery_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t limit = rows_limit(q->limit);
    int r;

    if (q->after_seq >= 0)
        r = sql_query(store_reader(s), &rows, e,
                      "SELECT " COLUMNS " FROM app_deliveries WHERE (?1 IS NULL OR app_id = ?1) "
                      "AND (state = ?2 OR (?2 IS NULL AND " OPEN ")) AND seq > ?3 ORDER BY seq LIMIT ?4",
                      "ssii", q->app_id, q->state, q->after_seq, limit);
    else
        r = sql_query(store_reader(s), &rows, e,
                      "SELECT " COLUMNS " FROM app_deliveries WHERE (?1 IS NULL OR app_id = ?1) "
                      "AND (state = ?2 OR (?2 IS NULL AND " OPEN ")) ORDER BY seq DESC LIMIT ?3",
                      "ssi", q->app_id, q->state, limit);
    return r < 0 ? r : rows_all(rows, a, sizeof(**ret), read_delivery, (void *)ret, ret_n, e);
}

static void read_app(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct app_delivery_row *)into =
        (struct app_delivery_row){ .app_id = sql_text(rows, a, 0), .next_ms = sql_int(rows, 1) };
}

int store_app_deliveries_apps(struct store *s, struct arena *a, struct app_delivery_row **ret, size_t *ret_n,
                              struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT app_id, min(next_ms) FROM app_deliveries WHERE state = 'waiting' GROUP BY app_id", "");

    return r < 0 ? r : rows_all(rows, a, sizeof(**ret), read_app, (void *)ret, ret_n, e);
}

int store_app_deliveries_next(struct store *s, struct arena *a, const char *app_id, int64_t now_ms,
                              struct app_delivery_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT " COLUMNS ", body FROM app_deliveries WHERE state = 'waiting' AND app_id = ? "
                      "AND (next_ms <= ? OR next_ms > ?) ORDER BY next_ms, seq LIMIT 1",
                      "sii", app_id, now_ms, now_ms + LIMIT_DELIVERY_PAUSE_MS);

    return r < 0 ? r : rows_one(rows, a, read_with_body, ret, &missing, e);
}

/* ---- changes ---- */

int store_app_deliveries_put(struct store *s, const struct app_delivery_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(
        s, e, NULL,
        "INSERT INTO app_deliveries (id, app_id, table_name, row_id, machine_id, attempt, action, body, "
        "n_bytes, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, length(CAST(?8 AS BLOB)), "
        "?9, ?9) ON CONFLICT (table_name, row_id, machine_id, attempt) DO NOTHING",
        "sssssisss", row->id, row->app_id, row->table_name, row->row_id, row->machine_id, row->attempt, row->action,
        row->body, now);
}

int store_app_deliveries_begin(struct store *s, const char *id, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE app_deliveries SET n_tries = n_tries + 1, status = 0, updated_at = ? "
                   "WHERE id = ? AND state = 'waiting'",
                   "ss", now, id);
    return rows_changed(r, n, &missing, e);
}

int store_app_deliveries_postpone(struct store *s, const struct app_delivery_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE app_deliveries SET status = ?, error = ?, next_ms = ?, updated_at = ? "
                   "WHERE id = ? AND state = 'waiting'",
                   "isiss", row->status, row->error, row->next_ms, now, row->id);
    return rows_changed(r, n, &missing, e);
}

int store_app_deliveries_finish(struct store *s, const struct app_delivery_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "UPDATE app_deliveries SET state = ?1, body = iif(?1 = 'dead', body, NULL), status = ?2, error = ?3, "
        "updated_at = ?4 WHERE id = ?5 AND state = 'waiting'",
        "sisss", row->state, row->status, row->error, now, row->id);
    return rows_changed(r, n, &missing, e);
}

int store_app_deliveries_rearm(struct store *s, const char *id, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE app_deliveries SET state = 'waiting', n_tries = 0, next_ms = 0, updated_at = ? "
                   "WHERE id = ? AND " OPEN,
                   "ss", now, id);
    return rows_changed(r, n, &missing, e);
}

int store_app_deliveries_drop(struct store *s, const char *id, const char *error, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE app_deliveries SET state = 'dropped', body = NULL, error = ?, updated_at = ? "
                   "WHERE id = ? AND " OPEN,
                   "sss", error, now, id);
    return rows_changed(r, n, &missing, e);
}

int store_app_deliveries_hasten(struct store *s, const char *app_id, struct err *e)
{
    return store_exec(s, e, NULL,
                      "UPDATE app_deliveries SET next_ms = 0 WHERE state = 'waiting' AND app_id = ? AND next_ms > 0",
                      "s", app_id);
}

int store_app_deliveries_trim(struct store *s, int64_t before_ms, struct err *e)
{
    char before[TIME_TEXT_SIZE];

    clock_format(before_ms, before);
    return store_exec(s, e, NULL,
                      "DELETE FROM app_deliveries WHERE updated_at < ? AND state IN ('delivered', 'dropped')", "s",
                      before);
}
