#include "backend/embedded.h"
#include "base/limits.h"

/* Checks and triggers use SQLite's JSON functions, which count as unsafe in a schema that is not trusted. Fewer and larger
 * checkpoints than SQLite's 1000 pages; the log file is cut back to 64 MiB afterwards. */
#define WRITER_PRAGMAS                                                                                                 \
    "PRAGMA trusted_schema = ON; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864"

static int embedded_is_ready(struct backend *b, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(readers_get(embedded_of(b)->readers), &rows, e, "SELECT 1 FROM _tables LIMIT 1", NULL);

    if (r == 0)
        r = sql_step(rows, e);
    return MIN(r, 0);
}

static int embedded_ensure_table(struct backend *b, const char *table, struct err *e)
{
    struct embedded *em = embedded_of(b);

    return embedded_table_ensure(em->tables, em->readers, em->writer, table, e);
}

/* The writer closes after the readers: the last connection folds the write-ahead log into the file, and they may not write. */
static struct backend *embedded_close(struct backend *b)
{
    struct embedded *em = embedded_of(b);

    embedded_events_stop(em->events);
    em->readers = readers_free(em->readers);
    em->writer = writer_stop(em->writer);
    em->events = embedded_events_free(em->events);
    em->tables = embedded_tables_free(em->tables);
    free(em->path);
    free(em->abbr);
    free(em);
    return NULL;
}

static const struct backend_ops embedded_ops = {
    .name = "embedded",
    .close = embedded_close,
    .is_ready = embedded_is_ready,
    .ensure_table = embedded_ensure_table,
    .insert = embedded_insert,
    .get = embedded_get,
    .list = embedded_list,
    .update = embedded_update,
    .remove = embedded_remove,
    .claim = embedded_claim,
    .heartbeat = embedded_heartbeat,
    .complete = embedded_complete,
    .fail = embedded_fail,
    .release = embedded_release,
    .release_machine = embedded_release_machine,
    .rearm = embedded_rearm,
    .replay = embedded_replay,
    .recover_stale = embedded_recover_stale,
    .claimable = embedded_claimable,
    .owners = embedded_owners,
    .subscribe = embedded_subscribe,
    .unsubscribe = embedded_unsubscribe,
    .broadcast = embedded_broadcast,
    .listen = embedded_listen,
    .unlisten = embedded_unlisten,
    .presence_put = embedded_presence_put,
    .presence_remove = embedded_presence_remove,
    .presence_list = embedded_presence_list,
    .call = embedded_call,
};

static void on_commit(void *arg)
{
    struct embedded *em = arg;

    embedded_events_wake(em->events);
}

static int tune_writer(struct sql_db *db, void *arg, struct err *e)
{
    return sql_script(db, WRITER_PRAGMAS, e);
}

static int open_parts(struct embedded *em, const struct backend_embedded_config *c, struct err *e)
{
    int r;

    r = writer_start(&(struct writer_config){ .path = em->path, .label = "backend", .on_commit = on_commit, .arg = em },
                     &em->writer, e);
    if (r == 0)
        r = writer_run(em->writer, tune_writer, NULL, e);
    if (r == 0)
        r = embedded_tables_make(em->tables, em->writer, e);
    if (r == 0)
        r = readers_new(em->path, &em->readers, e);
    if (r == 0)
        r = embedded_events_start(em->events, e);
    return r;
}

static int check_abbr(const char *abbr, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *name;

    if (strchr(abbr, '.') || backend_table_name(a, arena_printf(a, "%s_activities", abbr), &name, NULL) < 0)
        return err_set(
            e, -EINVAL, "VALIDATION_ERROR",
            "identity.abbr must be letters, digits and underscores, not beginning with a digit, at most %d of them",
            LIMIT_TABLE_NAME_PART - (int)strlen("_activities"));
    return 0;
}

int backend_embedded_open(const struct backend_embedded_config *c, struct backend **ret, struct err *e)
{
    struct embedded *em;
    int r = check_abbr(c->abbr, e);

    if (r < 0)
        return r;
    em = xcalloc(1, sizeof(*em));
    em->backend.ops = &embedded_ops;
    em->path = xstrdup(c->path);
    em->abbr = xstrdup(c->abbr);
    em->tables = embedded_tables_new(c->abbr);
    em->events = embedded_events_new(em, c->poll_ms);
    r = open_parts(em, c, e);
    if (r < 0) {
        embedded_close(&em->backend);
        return r;
    }
    *ret = &em->backend;
    return 0;
}
