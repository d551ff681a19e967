#include "store/store.h"
#include "base/arena.h"
#include "base/clock.h"
#include "store/backup.h"
#include "store/readers.h"
#include "store/schema.h"
#include "store/sql_private.h"
#include <fcntl.h>
#include <unistd.h>

#define STORE_FILE "hearth.db"

struct store {
    char *path;                         /* owned */
    struct writer *writer;              /* owned */
    struct readers *readers;            /* owned */
};

struct sql_db *store_reader(struct store *s)
{
    return readers_get(s->readers);
}

void store_thread_end(struct store *s)
{
    readers_thread_end(s->readers);
}

/* --- open and close --- */

static int open_parts(struct store *s, struct err *e)
{
    struct writer_config config = { .path = s->path, .label = "store" };
    int r;

    r = migrate_run(s->path, store_migrations, store_n_migrations, e);
    if (r < 0)
        return r;
    r = readers_new(s->path, &s->readers, e);
    if (r < 0)
        return r;
    return writer_start(&config, &s->writer, e);
}

int store_open(const char *data_dir, struct store **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct store *s = xcalloc(1, sizeof(*s));
    int r;

    s->path = xstrdup(arena_printf(a, "%s/" STORE_FILE, data_dir));
    r = open_parts(s, e);
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* The writer last: the connection that closes last folds the write-ahead log into the file, and readers may not write. */
struct store *store_close(struct store *s)
{
    if (!s)
        return NULL;
    readers_free(s->readers);
    writer_stop(s->writer);
    free(s->path);
    free(s);
    return NULL;
}

/* --- writing --- */

int store_write(struct store *s, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg, struct err *e)
{
    return writer_run(s->writer, fn, arg, e);
}

struct statement {
    const char *sql, *binds;
    va_list args;
    int64_t n_changes;
};

static int run_statement(struct sql_db *db, void *arg, struct err *e)
{
    struct statement *st = arg;
    int r;

    r = sql_vexec(db, e, st->sql, st->binds, st->args);
    st->n_changes = r < 0 ? 0 : sql_changes(db);
    return r;
}

int store_exec(struct store *s, struct err *e, int64_t *ret_changes, const char *sql, const char *binds, ...)
{
    struct statement st = { .sql = sql, .binds = binds };
    int r;

    va_start(st.args, binds);
    r = store_write(s, run_statement, &st, e);
    va_end(st.args);
    if (r == 0 && ret_changes)
        *ret_changes = st.n_changes;
    return r;
}

/* --- backup and restore --- */

int store_backup(struct store *s, const char *path, struct err *e)
{
    return backup_copy(s->path, path, e);
}

int store_check(struct store *s, struct err *e)
{
    return backup_check(s->path, e);
}

static int check_is_ours(const char *path, struct err *e)
{
    struct sql_options options = { .is_readonly = true };
    struct sql_db *db = NULL;
    struct sql_rows *rows = NULL;
    int r;

    r = sql_open(path, &options, &db, e);
    if (r == 0)
        r = sql_query(db, &rows, e, "PRAGMA application_id", "");
    if (r == 0)
        r = sql_step(rows, e);
    if (r >= 0)
        r = sql_int(rows, 0) == STORE_APPLICATION_ID
                ? 0 : err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no database of Hearth", path);
    sql_rows_endp(&rows);
    sql_close(db);
    return r;
}

static int move_aside(struct arena *a, const char *path, const char *kept, const char *suffix, struct err *e)
{
    if (rename(arena_printf(a, "%s%s", path, suffix), arena_printf(a, "%s%s", kept, suffix)) < 0 && errno != ENOENT)
        return err_errno(e, errno, "cannot move %s%s aside", path, suffix);
    return 0;
}

/* The log leaves first: beside another database file it would be played into that one. The database itself gets a second
 * name and is then replaced in one step, so that the folder is never without one. */
static int replace_file(struct arena *a, const char *path, const char *with, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    const char *kept;
    int r;

    clock_now_text(now);
    kept = arena_printf(a, "%s.before-restore-%s", path, now);
    r = move_aside(a, path, kept, "-wal", e);
    if (r == 0)
        r = move_aside(a, path, kept, "-shm", e);
    if (r == 0 && link(path, kept) < 0 && errno != ENOENT)
        r = err_errno(e, errno, "cannot keep %s", path);
    if (r == 0 && rename(with, path) < 0)
        r = err_errno(e, errno, "cannot put %s in place", path);
    return r < 0 ? r : backup_sync_folder(path, e);
}

int store_restore(const char *data_dir, const char *backup_path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *path = arena_printf(a, "%s/" STORE_FILE, data_dir);
    const char *fresh = arena_printf(a, "%s.restoring", path);
    int r;

    r = check_is_ours(backup_path, e);
    if (r == 0)
        r = backup_check(backup_path, e);
    if (r == 0)
        r = migrate_check(backup_path, store_n_migrations, e);
    if (r < 0)
        return r;
    unlink(fresh);                      /* of a restore that was interrupted */
    r = backup_copy(backup_path, fresh, e);
    return r < 0 ? r : replace_file(a, path, fresh, e);
}
