#include "store/backup.h"
#include "base/arena.h"
#include <fcntl.h>
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

int backup_check(const char *path, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    int r;

    r = sql_open(path, &options, &db, e);
    if (r < 0)
        return r;
    r = first_complaint(db, "PRAGMA integrity_check(1)", path, e);
    if (r == 0)
        r = first_complaint(db, "SELECT 'a row of ' || \"table\" || ' refers to one that is missing' "
                                "FROM pragma_foreign_key_check", path, e);
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

/* VACUUM INTO takes a file that is there and empty, so its mode can be set before it holds anything. */
static int make_empty(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(e, errno, "cannot make %s", path);
    close(fd);
    return 0;
}

static int vacuum_into(const char *from, const char *to, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    int r;

    r = sql_open(from, &options, &db, e);
    if (r == 0)
        r = sql_exec_text(db, e, "VACUUM INTO ?", "s", to);
    sql_close(db);
    return r;
}

int backup_copy(const char *from, const char *to, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *part = arena_printf(a, "%s.part", to);
    int r;

    if (access(to, F_OK) == 0)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already", to);
    unlink(part);                       /* of a copy that was interrupted */
    r = make_empty(part, e);
    if (r == 0)
        r = vacuum_into(from, part, e);
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
