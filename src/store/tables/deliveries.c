#include "store/tables/deliveries.h"
#include "base/clock.h"
#include "store/rows.h"

static const struct rows_missing missing = { "DELIVERY_NOT_FOUND", "This delivery is not claimed." };

static void read_delivery(struct sql_rows *rows, struct arena *a, void *into)
{
    struct delivery_row *row = into;

    row->status = sql_int(rows, 0);
    row->answer = sql_text(rows, a, 1);
    row->created_at = sql_text(rows, a, 2);
    row->state = row->answer ? DELIVERY_ANSWERED : DELIVERY_BUSY;
}

struct claim {
    struct arena *a;
    struct delivery_row *row;
};

static int read_first(struct sql_db *db, struct claim *c, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "SELECT status, answer, created_at FROM deliveries WHERE source = ? AND event_id = ?",
                  "ss", c->row->source, c->row->event_id);
    return r < 0 ? r : rows_one(rows, c->a, read_delivery, c->row, &missing, e);
}

static int claim(struct sql_db *db, void *arg, struct err *e)
{
    struct claim *c = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e, "INSERT INTO deliveries (source, event_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                 "sss", c->row->source, c->row->event_id, now);
    if (r < 0 || sql_changes(db) == 0)
        return r < 0 ? r : read_first(db, c, e);
    c->row->state = DELIVERY_MINE;
    c->row->created_at = arena_strdup(c->a, now);
    return 0;
}

int store_deliveries_claim(struct store *s, struct arena *a, const char *source, const char *event_id,
                           struct delivery_row *ret, struct err *e)
{
    struct delivery_row row = { .source = source, .event_id = event_id };
    struct claim c = { .a = a, .row = &row };
    int r;

    r = store_write(s, claim, &c, e);
    if (r == 0)
        *ret = row;
    return r;
}

int store_deliveries_change(struct sql_db *db, const struct delivery_row *row, struct err *e)
{
    int r;

    r = sql_exec(db, e,
                 "UPDATE deliveries SET status = ?, answer = ? WHERE source = ? AND event_id = ? AND answer IS NULL",
                 "isss", row->status, row->answer, row->source, row->event_id);
    return rows_changed(r, r < 0 ? 0 : sql_changes(db), &missing, e);
}

static int answer(struct sql_db *db, void *arg, struct err *e)
{
    return store_deliveries_change(db, arg, e);
}

int store_deliveries_answer(struct store *s, const struct delivery_row *row, struct err *e)
{
    return store_write(s, answer, (void *)row, e);
}

int store_deliveries_release(struct store *s, const char *source, const char *event_id, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM deliveries WHERE source = ? AND event_id = ? AND answer IS NULL", "ss",
                      source, event_id);
}

int store_deliveries_release_all(struct store *s, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM deliveries WHERE answer IS NULL", "");
}
