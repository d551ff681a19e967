#include "store/migrate.h"
#include "base/arena.h"
#include "base/clock.h"
#include "store/backup.h"
#include <sys/stat.h>

static int read_version(struct sql_db *db, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "PRAGMA user_version", "");
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = sql_int(rows, 0);
    return 0;
}

/* 0 for a file that is missing or empty. */
static int version_of_file(const char *path, int64_t *ret, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    struct stat st;
    int r;

    *ret = 0;
    if (stat(path, &st) < 0 || st.st_size == 0)
        return 0;
    r = sql_open(path, &options, &db, e);
    if (r == 0)
        r = read_version(db, ret, e);
    sql_close(db);
    return r;
}

static int refuse_newer(const char *path, int64_t version, size_t n_known, struct err *e)
{
    if (version <= (int64_t)n_known)
        return 0;
    return err_set(e, -EPROTONOSUPPORT, "SCHEMA_TOO_NEW",
                   "the database %s has schema version %lld, this program knows up to %zu: "
                   "use the newer program, or restore a backup",
                   path, (long long)version, n_known);
}

int migrate_check(const char *path, size_t n_known, struct err *e)
{
    int64_t version = 0;
    int r;

    r = version_of_file(path, &version, e);
    return r < 0 ? r : refuse_newer(path, version, n_known, e);
}

static int keep_copy(const char *path, int64_t version, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = backup_copy(path, arena_printf(a, "%s.v%lld-%s.bak", path, (long long)version, now), e);
    return r == -EEXIST ? 0 : r; /* another process that migrates the same file made the copy */
}

/* Another process may have migrated the file first, so the version is read again inside the transaction. */
static int apply_in_transaction(struct sql_db *db, const struct migration *m, int64_t to_version, struct err *e)
{
    char pragma[64];
    int64_t version = 0;
    int r;

    r = read_version(db, &version, e);
    if (r < 0 || version >= to_version)
        return r;
    r = sql_script(db, m->sql, e);
    if (r < 0)
        return err_prefix(e, r, "migration %lld (%s)", (long long)to_version, m->name);
    snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %lld", (long long)to_version);
    return sql_script(db, pragma, e);
}

static int apply(struct sql_db *db, const struct migration *m, int64_t to_version, struct err *e)
{
    int r;

    r = sql_exec(db, e, "BEGIN IMMEDIATE", "");
    if (r < 0)
        return r;
    r = apply_in_transaction(db, m, to_version, e);
    if (r == 0)
        r = sql_exec(db, e, "COMMIT", "");
    if (r < 0 && sql_exec(db, NULL, "ROLLBACK", "") < 0)
        return r; /* rolled back when the connection closes */
    return r;
}

static int apply_from(const char *path, const struct migration *list, size_t n, int64_t version, struct err *e)
{
    struct sql_db *db = NULL;
    int r;

    r = sql_open(path, NULL, &db, e);
    for (size_t i = (size_t)version; i < n && r == 0; i++)
        r = apply(db, &list[i], (int64_t)i + 1, e);
    sql_close(db);
    return r;
}

int migrate_run(const char *path, const struct migration *list, size_t n, struct err *e)
{
    int64_t version = 0;
    int r;

    r = version_of_file(path, &version, e);
    if (r == 0)
        r = refuse_newer(path, version, n, e);
    if (r < 0 || version == (int64_t)n)
        return r;
    if (version > 0)
        r = keep_copy(path, version, e);
    return r < 0 ? r : apply_from(path, list, n, version, e);
}
