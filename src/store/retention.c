#include "store/retention.h"

#include "base/arena.h"

#define FINISHED "('completed', 'failed', 'canceled')"

/* In each statement ?1 is the time and ?2 the number of rows in one transaction, smaller for large rows. +status makes
 * SQLite use the index of end times, not the index of states. */
static const struct {
    int64_t batch;
    const char *trim, *sum;
} kinds[N_KEPT] = {
    [KEPT_TASKS] = {
        100,
        "DELETE FROM tasks WHERE seq IN (SELECT seq FROM tasks WHERE completed_at < ?1 AND +status IN " FINISHED
        " AND NOT is_quarantined ORDER BY completed_at LIMIT ?2)",
        "SELECT count(*), sum(length(raw_data) + coalesce(length(old_data), 0) + coalesce(length(result), 0) + coalesce(length(prompt), 0)), "
        "min(created_at) FROM tasks",
    },
    [KEPT_RUN_LOGS] = {
        100,
        "UPDATE runs SET log = NULL WHERE id IN (SELECT id FROM runs WHERE log IS NOT NULL AND completed_at < ?1 "
        "ORDER BY completed_at LIMIT ?2)",
        "SELECT count(*), sum(length(log)), min(completed_at) FROM runs WHERE log IS NOT NULL",
    },
    [KEPT_EVENTS] = {
        500,
        "DELETE FROM calendar WHERE rowid IN (SELECT rowid FROM calendar WHERE start_date < ?1 AND coalesce(end_date, start_date) < ?1 "
        "AND task_uuid IS NOT NULL AND repeat IS NULL AND NOT EXISTS (SELECT 1 FROM tasks WHERE uuid = calendar.task_uuid "
        "AND (status NOT IN " FINISHED " OR is_quarantined)) ORDER BY start_date LIMIT ?2)",
        "SELECT count(*), sum(length(metadata) + coalesce(length(description), 0)), min(start_date) FROM calendar",
    },
    [KEPT_DELIVERIES] = {
        500,
        "DELETE FROM deliveries WHERE (source, event_id) IN (SELECT source, event_id FROM deliveries WHERE created_at < ?1 "
        "AND answer IS NOT NULL ORDER BY created_at LIMIT ?2)",
        "SELECT count(*), sum(length(answer)), min(created_at) FROM deliveries",
    },
    [KEPT_USAGE] = {
        500,
        "DELETE FROM usage WHERE (day, app_id, key_id, provider, model, kind) IN (SELECT day, app_id, key_id, provider, model, kind FROM usage "
        "WHERE day < substr(?1, 1, 10) ORDER BY day LIMIT ?2)",
        "SELECT count(*), sum(length(provider) + length(model) + 100), min(day) FROM usage",
    },
    [KEPT_TURNS] = {
        100,
        "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2)",
        "SELECT count(*), (SELECT sum(length(message)) FROM messages), min(started_at) FROM turns",
    },
};

int store_retention_trim(struct store *s, enum kept what, int64_t before_ms, int64_t *ret_n, struct err *e)
{
    char before[TIME_TEXT_SIZE];

    clock_format(before_ms, before);
    return store_exec(s, e, ret_n, kinds[what].trim, "si", before, kinds[what].batch);
}

int store_retention_sum(struct store *s, enum kept what, struct kept_sum *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *oldest;
    int r = sql_query(store_reader(s), &rows, e, kinds[what].sum, "");

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    oldest = sql_text(rows, a, 2);
    *ret = (struct kept_sum){ .n = sql_int(rows, 0), .bytes = sql_int(rows, 1) };
    snprintf(ret->oldest, sizeof(ret->oldest), "%s", oldest ? oldest : "");
    return 0;
}
