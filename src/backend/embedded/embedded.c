#include "backend/embedded/embedded.h"
#include "backend/embedded/embedded_functions.h"
#include "backend/embedded/embedded_open.h"
#include "backend/embedded/embedded_query.h"
#include "backend/refusals.h"
#include "base/limits.h"
#include "backend/embedded/embedded_schema.h"
#include "store/backup.h"
#include "store/migrate.h"
#include "store/schema_check.h"

/* After a checkpoint the log file is truncated to 64 MiB; checkpoints are fewer and larger than with SQLite's default
 * of 1000 pages. */
#define WRITER_PRAGMAS "PRAGMA journal_size_limit = 67108864"
enum { CHECKPOINT_PAGES = 4000 };

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

static int embedded_publications(struct backend *b, struct arena *a, struct backend_publications *ret, struct err *e)
{
    struct backend_publication *one = ARENA_NEW(a, struct backend_publication);
    struct sql_db *db = readers_get(embedded_of(b)->readers);
    const char **names = NULL;
    int r;

    *one = (struct backend_publication){ .name = b->abbr, .ops = BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE };
    r = embedded_published_list(db, a, &names, &one->n_tables, e);
    if (r < 0)
        return r;
    one->tables = names;
    one->n_tables = MIN(one->n_tables, (size_t)LIMIT_ITEMS_DEFAULT);
    *ret = (struct backend_publications){ one, 1 };
    return 0;
}

/* Other programs may have their own tables and triggers in the file. */
static int embedded_check(struct backend *b, const struct backup_patience *patience, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct sql_options options = { .is_readonly = true };
    struct sql_db *expected = NULL, *found = NULL;
    int r = backup_check_while(em->path, patience, e);

    if (r == 0)
        r = sql_open(em->path, &options, &found, e);
    if (r == 0)
        r = sql_open_memory(&expected, e);
    if (r == 0)
        r = embedded_tables_expect(em->tables, found, expected, e);
    if (r == 0)
        r = schema_compare(expected, found, false, e);
    sql_close(expected);
    sql_close(found);
    return r;
}

/* The writer closes after the readers: the last connection to close folds the write-ahead log into the file, and a
 * reader may not write. */
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
    .check = embedded_check,
    .subscribe = embedded_subscribe,
    .unsubscribe = embedded_unsubscribe,
    .broadcast = embedded_broadcast,
    .listen = embedded_listen,
    .unlisten = embedded_unlisten,
    .presence_put = embedded_presence_put,
    .presence_remove = embedded_presence_remove,
    .presence_list = embedded_presence_list,
    .monitor = embedded_monitor,
    .publications = embedded_publications,
    .query = embedded_query,
    .shape = embedded_shape,
    .declare = embedded_declare,
};

static void on_commit(void *arg)
{
    struct embedded *em = arg;

    embedded_events_wake(em->events);
}

static int tune_writer(struct sql_db *db, void *arg, struct err *e)
{
    int r = sql_script(db, WRITER_PRAGMAS, e);

    return r < 0 ? r : embedded_functions_add(db, e);
}

static int open_parts(struct embedded *em, const struct backend_embedded_config *c, struct err *e)
{
    const struct writer_config config = {
        .path = em->path,
        .label = "backend",
        .on_commit = on_commit,
        .arg = em,
        .checkpoint_pages = CHECKPOINT_PAGES,
        .instance = c->instance,
        .file = INSTANCE_BACKEND,
        .is_schema_trusted = true, /* its checks and triggers use SQLite's JSON functions */
    };
    int r;

    r = migrate_prepare(em->path, EMBEDDED_SCHEMA_VERSION, e);
    if (r == 0)
        r = writer_start(&config, &em->writer, e);
    if (r == 0)
        r = writer_run(em->writer, tune_writer, NULL, e);
    if (r == 0)
        r = embedded_tables_make(em->tables, em->writer, e);
    if (r == 0)
        r = readers_new(em->path, &em->readers, e);
    if (r == 0)
        readers_prepare_with(em->readers, embedded_functions_add);
    if (r == 0)
        r = embedded_events_start(em->events, e);
    return r;
}

static int open_once(const struct backend_embedded_config *c, struct backend **ret, struct err *e)
{
    struct embedded *em = xcalloc(1, sizeof(*em));
    int r;

    em->backend.ops = &embedded_ops;
    em->path = xstrdup(c->path);
    em->backend.abbr = em->abbr = xstrdup(c->abbr);
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

int backend_embedded_open(const struct backend_embedded_config *c, struct backend **ret, struct err *e)
{
    int r = refusals_check_abbr(c->abbr, e);

    if (r == 0 && c->instance)
        r = instance_admit(c->instance, INSTANCE_BACKEND, c->path, e);
    if (r < 0)
        return r;
    r = open_once(c, ret, e);
    if (r < 0 && c->instance && instance_give_up(c->instance, INSTANCE_BACKEND, c->path, r, e) == 0)
        r = open_once(c, ret, e);
    return r;
}
