#include "store/store.h"
#include "base/arena.h"
#include "store/backup.h"
#include "store/readers.h"
#include "store/schema.h"
#include "store/schema_check.h"
#include "store/sql_private.h"

#define STORE_FILE "hearth.db"

struct store {
    char *path;              /* owned */
    struct writer *writer;   /* owned */
    struct readers *readers; /* owned */
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

static int open_parts(struct store *s, struct instance *instance, struct err *e)
{
    struct writer_config config = { .path = s->path, .label = "store", .instance = instance, .file = INSTANCE_STORE };
    int r;

    r = migrate_run(s->path, store_migrations, store_n_migrations, e);
    if (r < 0)
        return r;
    r = readers_new(s->path, &s->readers, e);
    if (r < 0)
        return r;
    return writer_start(&config, &s->writer, e);
}

static int open_once(struct instance *instance, const char *path, struct store **ret, struct err *e)
{
    struct store *s = xcalloc(1, sizeof(*s));
    int r;

    s->path = xstrdup(path);
    r = open_parts(s, instance, e);
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int store_open(const char *data_dir, struct store **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return open_once(NULL, arena_printf(a, "%s/" STORE_FILE, data_dir), ret, e);
}

int store_open_of(struct instance *instance, const char *data_dir, struct store **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *path = arena_printf(a, "%s/" STORE_FILE, data_dir);
    int r = instance_admit(instance, INSTANCE_STORE, path, e);

    if (r < 0)
        return r;
    r = open_once(instance, path, ret, e);
    if (r < 0 && instance_give_up(instance, INSTANCE_STORE, path, r, e) == 0)
        r = open_once(instance, path, ret, e);
    return r;
}

/* Closes the writer last: the last connection folds the write-ahead log into the file, and readers may not write. */
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

int store_begin(struct store *s, struct writer_job *job, struct err *e)
{
    return writer_begin(s->writer, job, e);
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

/* --- copies --- */

int store_check(struct store *s, const struct backup_patience *patience, struct err *e)
{
    int r = backup_check_while(s->path, patience, e);

    return r < 0 ? r : schema_check_file(s->path, store_migrations, store_n_migrations, e);
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
                ? 0
                : err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no database of Hearth", path);
    sql_rows_endp(&rows);
    sql_close(db);
    return r;
}

int store_check_file(const char *path, struct err *e)
{
    int r = check_is_ours(path, e);

    if (r == 0)
        r = backup_check(path, e);
    return r < 0 ? r : migrate_check(path, store_n_migrations, e);
}
