#include "store/migrate.h"
#include "base/arena.h"
#include "base/clock.h"
#include "store/backup.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- copies --- */

/* "<name>.v<number>-<time>.bak" */
static bool is_copy_of(const char *entry, const char *name)
{
    size_t n = strlen(name), n_entry = strlen(entry), n_number;

    if (n_entry < n + strlen(".v0-.bak") || strncmp(entry, name, n) != 0 || strncmp(entry + n, ".v", 2) != 0)
        return false;
    n_number = strspn(entry + n + 2, "0123456789");
    return n_number > 0 && entry[n + 2 + n_number] == '-' && strcmp(entry + n_entry - 4, ".bak") == 0;
}

size_t migrate_copies(struct arena *a, const char *path, const struct migrate_copy **ret)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_strndup(a, path, (size_t)(slash - path) + 1) : "./";
    struct migrate_copy *copies = arena_array(a, MIGRATE_MAX_COPIES, sizeof(*copies));
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    while (dir && n < MIGRATE_MAX_COPIES && (entry = readdir(dir))) {
        struct stat st;

        if (!is_copy_of(entry->d_name, slash ? slash + 1 : path))
            continue;
        copies[n].path = arena_printf(a, "%s%s", folder, entry->d_name);
        if (lstat(copies[n].path, &st) == 0 && S_ISREG(st.st_mode))
            copies[n++].bytes = st.st_size;
    }
    if (dir)
        closedir(dir);
    *ret = copies;
    return n;
}

/* A copy is kept until the next upgrade. */
static void remove_other_copies(struct arena *a, const char *path, const char *kept)
{
    const struct migrate_copy *copies;
    size_t n = migrate_copies(a, path, &copies);

    for (size_t i = 0; i < n; i++)
        if (strcmp(copies[i].path, kept) != 0)
            unlink(copies[i].path);
}

static int keep_copy(const char *path, int64_t version, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *copy;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    copy = arena_printf(a, "%s.v%lld-%s.bak", path, (long long)version, now);
    r = backup_copy(path, copy, e);
    if (r == -EEXIST)
        return 0; /* another process that migrates the same file made the copy */
    if (r < 0)
        return err_prefix(e, r, "this version changes the schema of %s, and a copy comes first; nothing was changed",
                          path);
    remove_other_copies(a, path, copy);
    return 0;
}

/* --- migrations --- */

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

static int prepare(const char *path, size_t n_known, int64_t *ret_version, struct err *e)
{
    int r = version_of_file(path, ret_version, e);

    if (r == 0)
        r = refuse_newer(path, *ret_version, n_known, e);
    return r < 0 || *ret_version == 0 || *ret_version == (int64_t)n_known ? r : keep_copy(path, *ret_version, e);
}

int migrate_prepare(const char *path, size_t n_known, struct err *e)
{
    int64_t version = 0;

    return prepare(path, n_known, &version, e);
}

int migrate_run(const char *path, const struct migration *list, size_t n, struct err *e)
{
    int64_t version = 0;
    int r = prepare(path, n, &version, e);

    return r < 0 || version == (int64_t)n ? r : apply_from(path, list, n, version, e);
}
