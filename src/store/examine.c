#include "store/examine.h"

#include <sys/stat.h>

/* *ret stays NULL for a file that is missing or empty. Without a log beside it a file that nobody has open is all there
 * is; SQLite would make two files to read it. */
static int open_file(const char *path, bool is_in_use, struct sql_db **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stat st, log = { 0 };
    bool has_log = stat(arena_printf(a, "%s-wal", path), &log) == 0 && log.st_size > 0;
    const struct sql_options options = { .is_readonly = true, .is_immutable = !is_in_use && !has_log };

    return stat(path, &st) < 0 || st.st_size == 0 ? 0 : sql_open(path, &options, ret, e);
}

static int read_number(struct sql_db *db, const char *sql, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, sql, "");

    if (r == 0)
        r = sql_step(rows, e);
    *ret = r > 0 ? sql_int(rows, 0) : 0;
    return MIN(r, 0);
}

int examine_version(const char *path, bool is_in_use, int64_t *ret, struct err *e)
{
    struct sql_db *db = NULL;
    int r = open_file(path, is_in_use, &db, e);

    *ret = 0;
    if (db)
        r = read_number(db, "PRAGMA user_version", ret, e);
    sql_close(db);
    return r;
}

int examine_settings(const char *path, bool is_in_use, struct arena *a, struct setting_row **ret, size_t *ret_n,
                     struct err *e)
{
    struct sql_db *db = NULL;
    int64_t n_tables = 0;
    int r = open_file(path, is_in_use, &db, e);

    *ret_n = 0;
    if (db)
        r = read_number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'settings_rows'", &n_tables, e);
    if (r == 0 && n_tables > 0)
        r = settings_rows_read(db, a, ret, ret_n, e);
    sql_close(db);
    return r;
}
