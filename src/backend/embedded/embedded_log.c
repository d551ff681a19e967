#include "backend/embedded/embedded_log.h"
#include "backend/embedded/embedded.h"

int embedded_log_open(const char *path, const char *deletions, struct embedded_log *ret, struct err *e)
{
    *ret = (struct embedded_log){ .deletions = deletions, .data_version = -1 };
    return sql_open(path, &(struct sql_options){ .is_readonly = true }, &ret->db, e);
}

void embedded_log_close(struct embedded_log *log)
{
    log->db = sql_close(log->db);
}

static int read_number(struct sql_db *db, const char *sql, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, sql, NULL);

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = sql_int(rows, 0);
    return 0;
}

int embedded_log_seek_end(struct embedded_log *log, struct err *e)
{
    log->data_version = -1;
    return read_number(log->db, "SELECT coalesce(max(seq), 0) FROM _changes", &log->cursor, e);
}

/* *ret stays NULL when the column is NULL. */
static int read_side(struct sql_rows *rows, int column, const char *table, struct arena *a,
                     const struct backend_row **ret)
{
    struct backend_row *row;

    if (sql_is_null(rows, column))
        return 0;
    row = ARENA_NEW(a, struct backend_row);
    *ret = row;
    return embedded_read_json(a, sql_text(rows, a, column), table, row, NULL);
}

/* A change that cannot be read (another program wrote bytes that are not UTF-8) is a gap: the sweep finds its row. */
static void notify_change(struct sql_rows *rows, const struct embedded_log *log, const struct embedded_log_sink *sink)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_event event = {
        .sequence = sql_int(rows, 0),
        .table = sql_text(rows, a, 1),
        .op = (enum backend_op)sql_int(rows, 2),
        .is_lease_only = sql_int(rows, 3) != 0,
    };
    int r;

    r = read_side(rows, 4, event.table, a, &event.old_row);
    if (r == 0)
        r = read_side(rows, 5, event.table, a, &event.new_row);
    if (r == 0)
        r = read_side(rows, 6, log->deletions, a, &event.work);
    if (r == 0)
        sink->on_event(sink->arg, &event);
    else
        sink->on_gap(sink->arg);
}

static int notify_changes(struct embedded_log *log, const struct embedded_log_sink *sink, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t sequence;
    int r;

    r = sql_query(log->db, &rows, e,
                  "SELECT seq, name, op, is_lease_only, old, new, work FROM _changes WHERE seq > ? ORDER BY seq", "i",
                  log->cursor);
    if (r < 0)
        return r;
    while ((r = sql_step(rows, e)) > 0) {
        sequence = sql_int(rows, 0);
        if (sequence != log->cursor + 1)
            sink->on_gap(sink->arg);
        log->cursor = sequence;
        notify_change(rows, log, sink);
    }
    return r;
}

int embedded_log_read(struct embedded_log *log, const struct embedded_log_sink *sink, struct err *e)
{
    int64_t version = 0;
    int r = read_number(log->db, "PRAGMA data_version", &version, e);

    if (r < 0 || version == log->data_version)
        return r;
    r = notify_changes(log, sink, e);
    if (r == 0)
        log->data_version = version;
    return r;
}
