#include "store/tables/runs.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "id, task_uuid, agent_name, workspace_slug, thread_slug, status, attempt, machine_id, pid, started_at, "           \
    "completed_at, error"

static const struct rows_missing missing = { .code = "RUN_NOT_FOUND", .what = "run" };

static void read_run(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct run_row *)into = (struct run_row){
        .id = sql_int(rows, 0),
        .task_uuid = sql_text(rows, a, 1),
        .agent_name = sql_text(rows, a, 2),
        .workspace_slug = sql_text(rows, a, 3),
        .thread_slug = sql_text(rows, a, 4),
        .status = sql_text(rows, a, 5),
        .attempt = sql_int(rows, 6),
        .machine_id = sql_text(rows, a, 7),
        .pid = sql_int(rows, 8),
        .started_at = sql_text(rows, a, 9),
        .completed_at = sql_text(rows, a, 10),
        .error = sql_text(rows, a, 11),
    };
}

static void read_run_with_log(struct sql_rows *rows, struct arena *a, void *into)
{
    read_run(rows, a, into);
    ((struct run_row *)into)->log = sql_text(rows, a, 12);
}

/* The last LIMIT_RUN_LOG_BYTES, starting at a whole character. */
static struct slice end_of_log(const char *log)
{
    struct slice all = slice_of(log);
    size_t skip;

    if (all.n <= LIMIT_RUN_LOG_BYTES)
        return all;
    skip = all.n - LIMIT_RUN_LOG_BYTES;
    while (skip < all.n && ((unsigned char)all.p[skip] & 0xc0) == 0x80)
        skip++;
    return (struct slice){ all.p + skip, all.n - skip };
}

int store_runs_add(struct sql_db *db, const struct run_row *row, int64_t *ret_id, struct err *e)
{
    const char *status = row->status ? row->status : "pending";
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(
        db, e,
        "INSERT INTO runs (task_uuid, agent_name, workspace_slug, thread_slug, status, attempt, machine_id, pid, "
        "error, log, started_at, completed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "CASE ?5 WHEN 'running' THEN ?11 END, CASE WHEN ?5 IN ('completed', 'failed') THEN ?11 END)",
        "sssssisisSs", row->task_uuid, row->agent_name, row->workspace_slug, row->thread_slug, status, row->attempt,
        row->machine_id, row->pid, row->error, end_of_log(row->log), now);
    if (r == -ENOENT)
        return err_set(e, r, "TASK_NOT_FOUND", "There is no task %.60s.", row->task_uuid);
    if (r == 0 && ret_id)
        *ret_id = sql_last_id(db);
    return r;
}

int store_runs_change(struct sql_db *db, const struct run_change *c, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(
        db, e,
        "UPDATE runs SET status = CASE WHEN completed_at IS NULL THEN coalesce(?2, status) ELSE status END, "
        "error = CASE WHEN completed_at IS NULL THEN coalesce(?3, error) ELSE error END, "
        "log = coalesce(?4, log), pid = CASE ?5 WHEN 0 THEN pid ELSE ?5 END, "
        "started_at = CASE WHEN ?2 = 'running' THEN coalesce(started_at, ?6) ELSE started_at END, "
        "completed_at = CASE WHEN ?2 IN ('completed', 'failed') THEN coalesce(completed_at, ?6) ELSE completed_at END "
        "WHERE id = ?1",
        "issSis", c->id, c->status, c->error, end_of_log(c->log), c->pid, now);
    return rows_changed(r, r < 0 ? 0 : sql_changes(db), ROWS_NAMED(missing, "that was to be changed"), e);
}

static int change_run(struct sql_db *db, void *arg, struct err *e)
{
    return store_runs_change(db, arg, e);
}

int store_runs_update(struct store *s, const struct run_change *c, struct err *e)
{
    return store_write(s, change_run, (void *)c, e);
}

int store_runs_list(struct store *s, struct arena *a, const char *task_uuid, struct run_row **ret, size_t *ret_n,
                    struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM runs WHERE task_uuid = ? ORDER BY id", "s",
                  task_uuid);
    return r < 0 ? r : rows_all(rows, a, sizeof(struct run_row), read_run, ret, ret_n, e);
}

int store_runs_get(struct store *s, struct arena *a, int64_t id, struct run_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS ", log FROM runs WHERE id = ?", "i", id);
    return r < 0 ? r
                 : rows_one(rows, a, read_run_with_log, ret,
                            ROWS_NAMED(missing, arena_printf(a, "%lld", (long long)id)), e);
}

int store_runs_abandon(struct store *s, const char *machine_id, const char *error, int64_t *ret_n, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, ret_n,
                      "UPDATE runs SET status = 'failed', error = ?, completed_at = ? "
                      "WHERE machine_id = ? AND status IN ('pending', 'running')",
                      "sss", error, now, machine_id);
}
