#include "backend/embedded/embedded.h"
#include "base/limits.h"

enum { KEEP_CHANGES_S = 600, BATCH = 2000 };

/* Work of deletions: waiting work may wait for a person, but most of it has no listener at all. */
#define OLD_TOMBSTONE "status NOT IN ({leased}) AND created_at < " EMBEDDED_BEFORE("'-7 days'")
/* The newest change stays, so that the end of the log can be read. ?1 how many, ?2 seconds. */
#define OLD_CHANGE                                                                                                     \
    "seq < (SELECT max(seq) FROM _changes) AND (seq <= (SELECT max(seq) FROM _changes) - ?1 OR at < unixepoch() - ?2)"

static int is_any_old(struct embedded *b, struct err *e)
{
    static const char sql[] =
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM _changes WHERE seq = (SELECT min(seq) FROM _changes) AND " OLD_CHANGE ")"
        " OR EXISTS (SELECT 1 FROM {deletions} WHERE " OLD_TOMBSTONE ")";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(readers_get(b->readers), &rows, e, embedded_sql(embedded_table_deletions(b->tables), sql), "ii",
                      (int64_t)LIMIT_CHANGE_LOG, (int64_t)KEEP_CHANGES_S);

    return r < 0 ? r : sql_step(rows, e);
}

struct batch {
    struct embedded_table *deletions;
    int64_t n_changes;
};

/* Few rows at a time: other changes wait for the same writer. */
static int trim_batch(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "DELETE FROM _changes WHERE seq < (SELECT min(seq) FROM _changes) + ?3 AND " OLD_CHANGE;
    struct batch *batch = arg;
    int r = sql_exec(db, e, sql, "iii", (int64_t)LIMIT_CHANGE_LOG, (int64_t)KEEP_CHANGES_S, (int64_t)BATCH);

    if (r < 0)
        return r;
    batch->n_changes = sql_changes(db);
    return sql_exec(db, e, embedded_sql(batch->deletions, "DELETE FROM {deletions} WHERE " OLD_TOMBSTONE), NULL);
}

int embedded_trim(struct embedded *b, struct err *e)
{
    struct batch batch = { .deletions = embedded_table_deletions(b->tables) };
    int r = is_any_old(b, e);

    if (r <= 0)
        return r;
    do
        r = writer_run(b->writer, trim_batch, &batch, e);
    while (r == 0 && batch.n_changes == BATCH);
    return r;
}
