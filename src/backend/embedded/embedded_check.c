/* Which file may be the embedded backend's. */
#include "backend/embedded/embedded.h"
#include "backend/embedded/embedded_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_path(struct err *e, const char *path, const char *why)
{
    return err_set(e, -EINVAL, "BAD_SETTING", "backend.file must be a database, or the name of a new one: %.300s %s",
                   path, why);
}

static bool is_same_file(const char *path, const struct stat *st)
{
    struct stat own;

    return stat(path, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

int backend_embedded_check_own(const char *path, const char *data_dir, struct err *e)
{
    static const char *const own[] = { "hearth.db", "vectors.db" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (is_same_file(arena_printf(a, "%s/%s", data_dir, own[i]), &st))
            return refuse_path(e, path, "is Hearth's own database for something else");
    return 0;
}

/* A file is made and removed: access() does not know what a file system refuses. */
static int check_new(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return refuse_path(e, path, "cannot be made: its folder is missing or cannot be written");
    close(fd);
    unlink(path);
    return 0;
}

/* A file that holds something else would be taken for a damaged database. */
static int check_content(const char *path, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    struct err why = { 0 };
    int r = sql_open(path, &options, &db, &why);

    if (r == 0)
        r = sql_query(db, &rows, &why, "SELECT count(*) FROM sqlite_schema", NULL);
    if (r == 0)
        r = sql_step(rows, &why);
    sql_rows_endp(&rows);
    sql_close(db);
    return r >= 0 || r == -EBUSY ? 0 : refuse_path(e, path, "is no database that can be read");
}

int backend_embedded_check(const char *path, const char *data_dir, struct err *e)
{
    struct stat st;
    int r;

    if (*path != '/')
        return refuse_path(e, path, "is not a whole path, beginning with /");
    if (stat(path, &st) < 0)
        return check_new(path, e);
    if (!S_ISREG(st.st_mode))
        return refuse_path(e, path, "is no file");
    if (access(path, R_OK | W_OK) < 0)
        return refuse_path(e, path, "cannot be read and written");
    r = backend_embedded_check_own(path, data_dir, e);
    return r < 0 || st.st_size == 0 ? r : check_content(path, e);
}
