#include "backend/postgres/postgres_logical.h"
#include "backend/postgres/pgoutput.h"
#include "backend/postgres/postgres_stream.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 1000,
    STATUS_MS = 10000, /* at least that often */
    CONFIRM_MS = 100,  /* at most that often after changes */
    WHY_BYTES = 400
};
static const int64_t epoch_2000_us = 946684800000000;

struct postgres_logical {
    struct pg_link *link, *catalog; /* borrowed */
    struct postgres_stream *stream; /* owned */
    uint64_t done, confirmed;       /* places in the server's log: reported up to here; of the last status */
    uint64_t after;                 /* of the call that runs */
    const struct net_wait *wait;    /* of the call that runs */
    bool must_reply;
    int64_t status_ms, heard_ms;
};

/* --- what is missing --- */

/* The first thing that is missing, and the first table with work or with a recorder that the publication lacks. */
static const char lack_sql[] =
    "SELECT CASE"
    " WHEN current_setting('wal_level') <> 'logical' THEN 'wal_level is ' || current_setting('wal_level')"
    " WHEN NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = current_user AND (rolreplication OR rolsuper))"
    "  THEN 'the role ' || current_user || ' has no right of replication'"
    " WHEN NOT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = '%1$s_events'"
    "  AND pubinsert AND pubupdate AND pubdelete AND pubtruncate)"
    "  THEN 'there is no publication %1$s_events of all changes'"
    " WHEN (SELECT count(*) FROM pg_replication_slots) >= current_setting('max_replication_slots')::int"
    "  THEN 'every replication slot of the server is in use' END,"
    " (SELECT format('%%I.%%I', t.schema_name, t.table_name) FROM (SELECT schema_name, table_name FROM"
    "   \"public\".\"%1$s_tables\" UNION SELECT 'public', '%1$s_deletions'"
    "   UNION SELECT n.nspname, c.relname FROM pg_trigger g JOIN pg_proc f ON f.oid = g.tgfoid"
    "    AND f.proname = '%1$s_outbox_record' AND f.pronamespace = 'public'::regnamespace"
    "    JOIN pg_class c ON c.oid = g.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace) t"
    "  WHERE NOT EXISTS (SELECT 1 FROM pg_publication_tables p JOIN pg_class c"
    "   ON c.oid = to_regclass(format('%%I.%%I', p.schemaname, p.tablename)) WHERE p.pubname = '%1$s_events'"
    "   AND p.schemaname = t.schema_name AND p.tablename = t.table_name AND c.relreplident = 'f') LIMIT 1)";

struct lacking {
    struct arena *arena;
    const char *lack, *table;
};

static int take_words(const struct pg_row *row, int column, struct arena *a, const char **ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    int r = pg_row_is_null(row, column) ? 0 : pg_row_text(row, column, WHY_BYTES, &text, e);

    *ret = text.n > 0 ? arena_slicedup(a, text) : NULL;
    return r;
}

static int take_lack(void *arg, const struct pg_row *row, struct err *e)
{
    struct lacking *l = arg;
    int r = take_words(row, 0, l->arena, &l->lack, e);

    return r < 0 ? r : take_words(row, 1, l->arena, &l->table, e);
}

int postgres_logical_lack(struct pg_link *link, const char *abbr, const struct net_wait *wait, struct arena *a,
                          const char **ret_lack, const char **ret_table, struct err *e)
{
    struct lacking lacking = { .arena = a };
    const struct pg_statement st = {
        .sql = arena_printf(a, lack_sql, abbr), .n_columns = 2, .max_rows = 1, .on_row = take_lack, .arg = &lacking
    };
    int r = pg_link_run(link, wait, &st, e);

    if (r < 0)
        return r;
    *ret_lack = lacking.lack;
    *ret_table = lacking.table;
    return 0;
}

/* --- opening --- */

static int make_slot(struct postgres_logical *l, const char *name, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct pg_statement st = {
        .sql = arena_printf(a, "CREATE_REPLICATION_SLOT \"%s\" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT", name),
        .is_script = true
    };

    int r = pg_link_run(l->link, wait, &st, e);

    if (r < 0 && strcmp(pg_link_sqlstate(l->link), "55P03") == 0)
        return err_set(e, r, "STORE_BUSY", "a transaction that was open did not end within %d seconds",
                       LIMIT_LOGICAL_SLOT_MS / 1000);
    return r;
}

static int start(struct postgres_logical *l, const char *abbr, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char id[UUID_SIZE], *name;
    int r;

    uuid_v4(id);
    name = arena_printf(a, "hearth_%.8s%.4s%.4s", id, id + 9, id + 14);
    r = make_slot(l, name, wait, e);
    if (r < 0)
        return r;
    return pg_link_stream(l->link, wait,
                          arena_printf(a,
                                       "START_REPLICATION SLOT \"%s\" LOGICAL 0/0 (proto_version '1',"
                                       " publication_names '\"%s_events\"')",
                                       name, abbr),
                          e);
}

static int read_columns(void *arg, uint32_t relation, struct arena *a, struct postgres_columns *ret, struct err *e)
{
    const struct postgres_logical *l = arg;

    return postgres_columns_read(l->catalog, relation, l->wait, a, ret, e);
}

int postgres_logical_open(struct pg_link *link, struct pg_link *catalog, const char *abbr,
                          const struct postgres_outbox_sink *sink, const struct net_wait *wait,
                          struct postgres_logical **ret, struct err *e)
{
    struct postgres_logical *l = xcalloc(1, sizeof(*l));
    int r;

    l->link = link;
    l->catalog = catalog;
    l->stream = postgres_stream_new(abbr, sink, &(struct postgres_stream_catalog){ read_columns, l });
    l->status_ms = l->heard_ms = clock_mono_ms();
    pg_link_allow(link, LIMIT_EVENT_MESSAGE);
    r = start(l, abbr, wait, e);
    if (r < 0) {
        postgres_logical_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

struct postgres_logical *postgres_logical_close(struct postgres_logical *l)
{
    if (!l)
        return NULL;
    postgres_stream_free(l->stream);
    free(l);
    return NULL;
}

/* --- status --- */

static int send_status(struct postgres_logical *l, bool must_reply, const struct net_wait *wait, struct err *e)
{
    unsigned char status[PGOUTPUT_STATUS_BYTES];

    pgoutput_write_status(l->done, clock_wall_ms() * 1000 - epoch_2000_us, must_reply, status);
    l->confirmed = l->done;
    l->must_reply = false;
    l->status_ms = clock_mono_ms();
    return pg_link_stream_write(l->link, wait, (struct slice){ (const char *)status, sizeof(status) }, e);
}

static int send_status_if_due(struct postgres_logical *l, const struct net_wait *wait, struct err *e)
{
    int64_t now_ms = clock_mono_ms();
    bool is_due = now_ms >= l->status_ms + STATUS_MS;

    if (now_ms >= l->heard_ms + LIMIT_LOGICAL_SILENT_MS)
        return pg_fault(e, "nothing came for %d seconds", LIMIT_LOGICAL_SILENT_MS / 1000);
    if (is_due || l->must_reply || (l->done > l->confirmed && now_ms >= l->status_ms + CONFIRM_MS))
        return send_status(l, is_due, wait, e);
    return 0;
}

/* --- taking --- */

/* What a keepalive names is behind every change that was sent, unless a transaction is under way. */
static int take_message(void *arg, struct slice message, struct err *e)
{
    struct postgres_logical *l = arg;
    struct pgoutput_frame frame = { .kind = PGOUTPUT_KEEPALIVE };
    int r = pgoutput_read_frame(message, &frame, e);

    if (r == 0 && frame.kind == PGOUTPUT_DATA)
        r = postgres_stream_take(l->stream, frame.body, l->after, e);
    l->must_reply = l->must_reply || frame.must_reply;
    if (r == 0 && !postgres_stream_is_open(l->stream))
        l->done = MAX(l->done, frame.end);
    return r;
}

int postgres_logical_take(struct postgres_logical *l, uint64_t after, const struct net_wait *wait, struct err *e)
{
    int n, r;

    l->after = after;
    l->wait = wait;
    n = pg_link_stream_take(l->link, BATCH, take_message, l, e);
    if (n > 0)
        l->heard_ms = clock_mono_ms();
    r = n < 0 ? n : send_status_if_due(l, wait, e);
    return r < 0 ? r : n;
}
