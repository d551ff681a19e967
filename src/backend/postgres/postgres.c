#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_open.h"
#include "backend/postgres/postgres_query.h"
#include "backend/postgres/postgres_session.h"
#include "backend/refusals.h"
#include "base/limits.h"
#include "base/log.h"

#include <libpq-fe.h>
#include <stdlib.h>

/* --- calls of the service itself --- */

static int take_number(void *arg, const struct pg_row *row, struct err *e)
{
    return pg_row_int(row, 0, 0, INT64_MAX, arg, e);
}

static int read_number(struct postgres *pg, const char *template, int64_t most_ms, int64_t *ret, struct err *e)
{
    struct postgres_call c = {
        .sql = postgres_sql(postgres_table_activities(pg->tables), template),
        .table = "schema",
        .repeat = POSTGRES_REPEATABLE,
        .most_ms = most_ms,
        .takes_any = true,
        .n_columns = 1,
        .max_rows = 1,
        .on_row = take_number,
        .arg = ret,
    };

    return postgres_call(pg, &c, e);
}

static int postgres_is_ready(struct backend *b, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    int64_t one = 0;
    int r = postgres_check_fit(pg, LIMIT_BACKEND_READY_MS, e);

    return r < 0 ? r : read_number(pg, "SELECT 1", LIMIT_BACKEND_READY_MS, &one, e);
}

static int postgres_clock(struct backend *b, int64_t *ret_ms, struct err *e)
{
    return read_number(postgres_of(b), "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", 0, ret_ms, e);
}

static int check_version(struct postgres *pg, int64_t most_ms, struct err *e)
{
    int64_t version = 0;
    struct err why = { 0 };
    int r = read_number(pg, "SELECT coalesce(max(version), 0) FROM {schema}", most_ms, &version, &why);

    if (r == -ENOENT || (r == 0 && version == 0))
        return err_set(e, -ENOENT, "SCHEMA_MISSING",
                       "The database has no tables of this service: `hearth backend setup`");
    if (r < 0) {
        if (e)
            *e = why;
        return r;
    }
    if (version > POSTGRES_SCHEMA_VERSION)
        return err_set(e, -EPROTONOSUPPORT, "SCHEMA_TOO_NEW",
                       "The database was set up by a newer version (schema %lld, this program knows %d)",
                       (long long)version, POSTGRES_SCHEMA_VERSION);
    if (version < POSTGRES_SCHEMA_VERSION)
        return err_set(e, -EPROTONOSUPPORT, "SCHEMA_TOO_OLD",
                       "The database was set up by an older version (schema %lld, this program needs %d): `hearth "
                       "backend setup`",
                       (long long)version, POSTGRES_SCHEMA_VERSION);
    atomic_store(&pg->is_fit, true);
    return 0;
}

int postgres_check_fit(struct postgres *pg, int64_t most_ms, struct err *e)
{
    return atomic_load(&pg->is_fit) ? 0 : check_version(pg, most_ms, e);
}

/* A service may start before its database. */
static int check_at_open(struct postgres *pg, struct err *e)
{
    struct err why = { 0 };
    int r = postgres_check_fit(pg, LIMIT_BACKEND_READY_MS, &why);

    if (r != -EAGAIN) {
        if (r < 0 && e)
            *e = why;
        return r;
    }
    log_warn("backend", NULL, "the database of backend.url cannot be reached now, rows are there when it can: %s",
             LOG_Q(why.text));
    return 0;
}

/* --- tables --- */

/* Only the owner of a publication can add a table to it. */
static void warn_unpublished(struct postgres *pg, struct postgres_table *t)
{
    int64_t n = 0;
    struct postgres_call c = {
        .sql = "SELECT count(*) FROM pg_publication_tables WHERE pubname = '{abbr}_events'"
               " AND schemaname = {schema_literal} AND tablename = {bare_literal}",
        .repeat = POSTGRES_REPEATABLE,
        .n_columns = 1,
        .max_rows = 1,
        .on_row = take_number,
        .arg = &n,
    };

    if (postgres_events_status(pg->events).is_logical && postgres_call_on(pg, t, c.sql, &c, NULL) == 0 && n == 0)
        log_warn("backend", NULL,
                 "changes of the table %s are found by the sweep only, it is not published: `hearth backend setup`",
                 LOG_Q(postgres_table_name(t)));
}

static int make_table(struct postgres *pg, const char *name, struct err *e)
{
    const char *const names[] = { name };
    const struct postgres_schema s = { .abbr = pg->abbr, .tables = names, .n_tables = 1, .events = pg->mode };

    return postgres_schema_apply(&pg->place, &s, e);
}

/* Needs the rights of the owner; a table that was set up before needs none. */
static int postgres_ensure_table(struct backend *b, const char *declared, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres *pg = postgres_of(b);
    struct postgres_table *t;
    char *name = NULL;
    struct err why = { 0 };
    int r = backend_table_name(a, declared, &name, e);

    if (r < 0)
        return r;
    if (name[0] == '_' || strcmp(name, postgres_table_name(postgres_table_deletions(pg->tables))) == 0)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name);
    r = postgres_find_table(pg, name, &t, &why);
    if (r < 0 && r != -ENOENT && e)
        *e = why;
    if (r == -ENOENT) {
        r = make_table(pg, name, e);
        if (r == 0)
            r = postgres_find_table(pg, name, &t, e);
    }
    if (r == 0)
        warn_unpublished(pg, t);
    return r;
}

static int postgres_publications(struct backend *b, struct arena *a, struct backend_publications *ret, struct err *e)
{
    struct backend_publication *one = ARENA_NEW(a, struct backend_publication);
    const char **names = NULL;
    int r;

    *one = (struct backend_publication){ .name = b->abbr, .ops = BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE };
    r = postgres_published_names(postgres_of(b), a, &names, &one->n_tables, e);
    if (r < 0)
        return r;
    one->tables = names;
    *ret = (struct backend_publications){ one, 1 };
    return 0;
}

static int refuse_missing(const struct postgres_missings *missings, struct err *e)
{
    return err_set(e, -EINVAL, "TABLE_UNFIT",
                   "The database lacks %zu of what it needs, the first is %.300s: `hearth backend check`", missings->n,
                   missings->items[0].what);
}

static int postgres_check(struct backend *b, const struct backup_patience *patience, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres *pg = postgres_of(b);
    struct postgres_schema s = { .abbr = pg->abbr, .events = pg->mode };
    struct postgres_missings missings = { 0 };
    const char **names = NULL;
    int r = postgres_table_names(pg, a, &names, &s.n_tables, e);

    s.tables = names;
    if (r == 0)
        r = postgres_schema_check(&pg->place, &s, a, &missings, e);
    if (r == 0)
        r = postgres_session_lacks(&pg->place, a, &missings, e);
    return r < 0 || missings.n == 0 ? r : refuse_missing(&missings, e);
}

/* --- events --- */

static int connect_events(void *arg, bool is_replication, const struct net_wait *wait, struct pg_link **ret,
                          struct err *e)
{
    struct postgres *pg = arg;

    return postgres_session_connect(&pg->place, is_replication, wait, ret, e);
}

static int run_for_events(void *arg, const struct pg_statement *st, struct err *e)
{
    struct postgres *pg = arg;
    const struct net_wait wait = net_wait_of(pg->call_ms, NULL, &pg->is_closing);
    struct pg_link *link = NULL;
    int r = 0;

    if (!atomic_load(&pg->is_fit))
        return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "The database has not been reached yet");
    r = postgres_pool_take(pg->pool, &wait, &link, e);
    if (r < 0)
        return r;
    r = pg_link_run(link, &wait, st, e);
    postgres_pool_give(pg->pool, &link);
    return r;
}

static int open_events(struct postgres *pg, struct err *e)
{
    const struct postgres_events_config config = {
        .abbr = pg->abbr, .mode = pg->mode, .connect = connect_events, .run = run_for_events, .arg = pg
    };

    return postgres_events_open(&config, &pg->events, e);
}

static int postgres_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    return postgres_events_subscribe(postgres_of(b)->events, fn, on_gap, arg, e);
}

static void postgres_unsubscribe(struct backend *b, void *arg)
{
    postgres_events_unsubscribe(postgres_of(b)->events, arg);
}

static int postgres_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json,
                              struct err *e)
{
    return postgres_events_broadcast(postgres_of(b)->events, channel, event, payload_json, e);
}

static int postgres_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e)
{
    return postgres_events_listen(postgres_of(b)->events, channel, fn, arg, e);
}

static void postgres_unlisten(struct backend *b, void *arg)
{
    postgres_events_unlisten(postgres_of(b)->events, arg);
}

/* --- open and close --- */

static void postgres_leave(struct backend *b)
{
    struct postgres *pg = postgres_of(b);

    atomic_store(&pg->is_closing, true);
    postgres_events_leave(pg->events);
}

static struct backend *postgres_close(struct backend *b)
{
    struct postgres *pg = postgres_of(b);

    atomic_store(&pg->is_closing, true);
    pg->events = postgres_events_close(pg->events);
    pg->pool = postgres_pool_free(pg->pool);
    pg->tables = postgres_tables_free(pg->tables);
    postgres_batch_free(pg->claims);
    postgres_batch_free(pg->completions);
    postgres_shapes_free(pg->shapes);
    free(pg->abbr);
    free(pg);
    return NULL;
}

static const struct backend_ops postgres_ops = {
    .name = "postgres",
    .close = postgres_close,
    .leave = postgres_leave,
    .is_ready = postgres_is_ready,
    .ensure_table = postgres_ensure_table,
    .insert = postgres_insert,
    .get = postgres_get,
    .list = postgres_list,
    .update = postgres_update,
    .remove = postgres_remove,
    .claim = postgres_claim,
    .heartbeat = postgres_heartbeat,
    .heartbeats = postgres_heartbeats,
    .complete = postgres_complete,
    .fail = postgres_fail,
    .release = postgres_release,
    .release_machine = postgres_release_machine,
    .rearm = postgres_rearm,
    .replay = postgres_replay,
    .recover_stale = postgres_recover_stale,
    .claimable = postgres_claimable,
    .owners = postgres_owners,
    .check = postgres_check,
    .subscribe = postgres_subscribe,
    .unsubscribe = postgres_unsubscribe,
    .broadcast = postgres_broadcast,
    .listen = postgres_listen,
    .unlisten = postgres_unlisten,
    .presence_put = postgres_presence_put,
    .presence_remove = postgres_presence_remove,
    .presence_list = postgres_presence_list,
    .monitor = postgres_monitor,
    .publications = postgres_publications,
    .query = postgres_query,
    .shape = postgres_shape,
    .declare = postgres_declare,
    .clock = postgres_clock,
    .probe = postgres_probe,
};

int backend_postgres_open(const struct backend_postgres_config *c, struct backend **ret, struct err *e)
{
    const struct postgres_place place = {
        .url = c->url, .events_url = c->events_url, .password = c->password, .n_connections = c->n_connections
    };
    struct postgres *pg;
    int r = refusals_check_abbr(c->abbr, e);

    if (r == 0)
        r = backend_postgres_check(c->url, NULL, e);
    if (r < 0)
        return r;
    pg = xcalloc(1, sizeof(*pg));
    pg->backend.ops = &postgres_ops;
    pg->call_ms = c->call_ms > 0 ? c->call_ms : LIMIT_BACKEND_CALL_MS;
    pg->backend.abbr = pg->abbr = xstrdup(c->abbr);
    pg->tables = postgres_tables_new(c->abbr, NULL);
    postgres_table_set_made(pg->tables, postgres_table_deletions(pg->tables), true);
    postgres_table_set_made(pg->tables, postgres_table_activities(pg->tables), true);
    pg->claims = postgres_batch_new(postgres_claims_alike);
    pg->completions = postgres_batch_new(postgres_completions_alike);
    pg->shapes = postgres_shapes_new();
    pg->mode = c->events;
    pg->pool = postgres_pool_new(&place);
    pg->place = postgres_pool_place(pg->pool);
    r = check_at_open(pg, e);
    if (r == 0)
        r = open_events(pg, e);
    if (r < 0) {
        postgres_close(&pg->backend);
        return r;
    }
    *ret = &pg->backend;
    return 0;
}

static bool has_password(const PQconninfoOption *o)
{
    for (; o && o->keyword; o++)
        if (o->val && (strcmp(o->keyword, "password") == 0 || strcmp(o->keyword, "sslpassword") == 0))
            return true;
    return false;
}

/* A setting is shown to everyone who may see settings. */
int backend_postgres_check(const char *url, const char *data_dir, struct err *e)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    bool is_valid = options != NULL, is_secret = has_password(options);

    PQconninfoFree(options);
    if (is_secret)
        return err_set(
            e, -EINVAL, "BAD_SETTING",
            "The address of a database must not hold a password: `hearth backend password` keeps it sealed, or ~/.pgpass has it");
    return *url && is_valid ? 0
                            : err_set(e, -EINVAL, "BAD_SETTING",
                                      "backend.url must be a connection string of PostgreSQL, like "
                                      "postgresql://user@host:5432/database?sslmode=verify-full");
}
