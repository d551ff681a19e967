#include "store/schema_check.h"

#include "store/sql_private.h"

/* Excludes SQLite's internal objects and the table of store/instance.h. */
#define OURS "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND tbl_name <> '_instance'"

static int differs(struct err *e, const char *what, const char *type, const char *name)
{
    return err_set(e, -EUCLEAN, "STORE_DAMAGED", "the schema is damaged: the %.20s %.120s %s", type, name, what);
}

/* Compares columns, because the SQL text after ALTER TABLE differs from that of CREATE TABLE. */
static int read_columns(struct sql_db *db, const char *table, struct arena *a, char **ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r =
        sql_query(db, &rows, e,
                  "SELECT group_concat(c, ',') FROM (SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || pk AS c"
                  " FROM pragma_table_xinfo(?) ORDER BY name)",
                  "s", table);

    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        *ret = sql_text(rows, a, 0);
    return MIN(r, 0);
}

static int compare_columns(struct sql_db *expected, struct sql_db *found, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *one = NULL, *other = NULL;
    int r = read_columns(expected, table, a, &one, e);

    if (r == 0)
        r = read_columns(found, table, a, &other, e);
    if (r < 0)
        return r;
    return one && other && strcmp(one, other) == 0 ? 0 : differs(e, "has other columns", "table", table);
}

static int compare_one(struct sql_db *expected, struct sql_db *found, struct sql_rows *row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *type = sql_text(row, a, 0), *name = sql_text(row, a, 1), *sql = sql_text(row, a, 2), *other;
    int r = sql_query(found, &rows, e, "SELECT sql FROM sqlite_schema WHERE type = ? AND name = ?", "ss", type, name);

    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r < 0 ? r : differs(e, "is missing", type, name);
    other = sql_text(rows, a, 0);
    if (strcmp(other ? other : "", sql ? sql : "") == 0)
        return 0;
    return strcmp(type, "table") == 0 ? compare_columns(expected, found, name, e)
                                      : differs(e, "is not as Hearth makes it", type, name);
}

/* An additional trigger would change data in unexpected ways. */
static int find_stranger(struct sql_db *expected, struct sql_db *found, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL, *known = NULL;
    int r = sql_query(found, &rows, e, "SELECT name FROM sqlite_schema WHERE type = 'trigger'", NULL);

    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        const char *name = sql_text(rows, a, 0);

        r = sql_query(expected, &known, e, "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = ?", "s",
                      name);
        if (r == 0)
            r = sql_step(known, e);
        if (r == 0)
            r = differs(e, "is none of Hearth's", "trigger", name);
        r = MIN(r, 0);
    }
    return r;
}

int schema_compare(struct sql_db *expected, struct sql_db *found, bool is_strict, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(expected, &rows, e, "SELECT type, name, sql FROM sqlite_schema WHERE " OURS, NULL);

    while (r == 0 && (r = sql_step(rows, e)) > 0)
        r = compare_one(expected, found, rows, e);
    return r == 0 && is_strict ? find_stranger(expected, found, e) : r;
}

static int read_version(struct sql_db *db, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "PRAGMA user_version", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        *ret = sql_int(rows, 0);
    return MIN(r, 0);
}

int schema_check_file(const char *path, const struct migration *list, size_t n, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *expected = NULL, *found = NULL;
    int64_t version = 0;
    int r = sql_open_memory(&expected, e);

    if (r == 0)
        r = sql_open(path, &options, &found, e);
    if (r == 0)
        r = read_version(found, &version, e);
    for (int64_t i = 0; r == 0 && i < MIN(version, (int64_t)n); i++)
        r = sql_script(expected, list[i].sql, e);
    if (r == 0)
        r = schema_compare(expected, found, true, e);
    sql_close(expected);
    sql_close(found);
    return r;
}
