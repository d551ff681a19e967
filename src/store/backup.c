#include "store/backup.h"
#include "base/arena.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

static int first_complaint(struct sql_db *db, const char *pragma, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *said;
    int r;

    r = sql_query_text(db, &rows, e, pragma, "");
    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r;
    said = sql_text(rows, a, 0);
    if (said && strcmp(said, "ok") == 0)
        return 0;
    return err_set(e, -EUCLEAN, "STORE_DAMAGED", "the database %s is damaged: %s", path, said ? said : "unknown");
}

enum { CHECK_STEPS = 100000 }; /* of SQLite's virtual machine, between two calls of the patience's goes_on() */

static int must_end(void *arg)
{
    const struct backup_patience *patience = arg;

    return !patience->goes_on(patience->arg);
}

int backup_check(const char *path, struct err *e)
{
    return backup_check_while(path, NULL, e);
}

int backup_check_while(const char *path, const struct backup_patience *patience, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    int r;

    r = sql_open(path, &options, &db, e);
    if (r < 0)
        return r;
    if (patience)
        sqlite3_progress_handler(sql_handle(db), CHECK_STEPS, must_end, (void *)patience);
    r = first_complaint(db, "PRAGMA integrity_check(1)", path, e);
    if (r == 0)
        r = first_complaint(db,
                            "SELECT 'a row of ' || \"table\" || ' refers to one that is missing' "
                            "FROM pragma_foreign_key_check",
                            path, e);
    sql_close(db);
    return r;
}

static int sync_path(const char *path, int flags, struct err *e)
{
    int fd = open(path, flags | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;

    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r < 0 ? err_errno(e, -r, "cannot write %s to disk", path) : 0;
}

int backup_sync_folder(const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));

    return sync_path(folder, O_RDONLY | O_DIRECTORY, e);
}

/* Makes the file before the copy fills it, so that its mode is set while it is empty. */
static int make_empty(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(e, errno, "cannot make %s", path);
    close(fd);
    return 0;
}

static int fail_copy(sqlite3 *db, const char *to, struct err *e)
{
    bool is_full = (sqlite3_errcode(db) & 0xff) == SQLITE_FULL;

    return err_set(e, is_full ? -ENOSPC : -EIO, is_full ? "STORE_FULL" : "STORE_ERROR",
                   "cannot copy the database to %s: %s", to, sqlite3_errmsg(db));
}

/* All pages in one step, so within one reading transaction (sqlite.org/backup.html); VACUUM INTO cannot copy a table
 * with a generated column. The copy leaves WAL mode, so that it is a single file. */
static int copy_pages(struct sql_db *from, sqlite3 *target, const char *to, struct err *e)
{
    sqlite3_backup *copy = sqlite3_backup_init(target, "main", sql_handle(from), "main");
    int code = copy ? sqlite3_backup_step(copy, -1) : SQLITE_ERROR;

    if (copy)
        sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE || sqlite3_exec(target, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        return fail_copy(target, to, e);
    return 0;
}

/* Opens the target with sqlite3_open_v2(): the settings of sql_open() would disable functions that the copied schema
 * needs. */
static int copy_into(const char *from, const char *to, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *source = NULL;
    sqlite3 *target = NULL;
    int r;

    r = sql_open(from, &options, &source, e);
    if (r < 0)
        return r;
    r = sqlite3_open_v2(to, &target, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK ? copy_pages(source, target, to, e)
                                                                               : fail_copy(target, to, e);
    sqlite3_close(target);
    sql_close(source);
    return r;
}

int backup_copy(const char *from, const char *to, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *part = arena_printf(a, "%s.part", to);
    int r;

    if (access(to, F_OK) == 0)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already", to);
    unlink(part); /* left by an interrupted copy */
    r = make_empty(part, e);
    if (r == 0)
        r = copy_into(from, part, e);
    if (r == 0)
        r = backup_check(part, e);
    if (r == 0)
        r = sync_path(part, O_RDONLY, e);
    if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_NOREPLACE) < 0)
        r = err_errno(e, errno, "cannot name the copy %s", to);
    if (r < 0) {
        unlink(part);
        return r;
    }
    return backup_sync_folder(to, e);
}
