/* Vectors in PostgreSQL with pgvector: one table for each app, one HNSW index for each number of dimensions
 * (docs/vectors.md).
 *
 * Unfiltered queries use the index and are approximate; queries with a filter read every matching row.
 */
#include "vector/pgvector/pgvector.h"

#include "vector/pgvector/pgvector_conninfo.h"
#include "vector/vector_check.h"

#include <ctype.h>
#include <stdlib.h>

enum { ROWS_A_STATEMENT = 500, INDEXED_DIMENSIONS = 2000 /* the maximum of HNSW */ };

/* The codes of src/pg are those of any database; apps know this store's. */
static int refuse_as_vectors(int r, struct err *why, struct err *e)
{
    if (strncmp(why->code, "STORE_", 6) == 0)
        snprintf(why->code, sizeof(why->code), "%s", r == -EAGAIN ? "VECTOR_STORE_UNAVAILABLE" : "VECTOR_STORE_FAILED");
    if (e)
        *e = *why;
    return r;
}

int pgvector_with_session(struct vectors *v, const struct net_wait *wait, pgvector_work *work, void *arg, struct err *e)
{
    struct pgvector *pg = (struct pgvector *)v;
    struct pg_session s = { 0 };
    struct err why = { 0 };
    int r = pg_session_open(&pg->pool, wait, false, &s, &why);

    if (r == 0)
        r = work(pg, &s, arg, &why);
    if (r < 0 && pg_session_is_stale(&s)) {
        pg_session_close(&s);
        why = (struct err){ 0 };
        r = pg_session_open(&pg->pool, wait, true, &s, &why);
        if (r == 0)
            r = work(pg, &s, arg, &why);
    }
    pg_session_close(&s);
    return r < 0 ? refuse_as_vectors(r, &why, e) : 0;
}

static struct vectors *pg_close(struct vectors *v)
{
    struct pgvector *pg = (struct pgvector *)v;

    pg_pool_clear(&pg->pool);
    free(pg);
    return NULL;
}

static int run(struct pg_session *s, const char *sql, const char *const *params, size_t n_params, struct err *e)
{
    return pg_run(s, &(struct pg_statement){ .sql = sql, .params = params, .n_params = n_params }, e);
}

/* ---- check: the extension and the table ---- */

static int make_table(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = run(s, "CREATE EXTENSION IF NOT EXISTS vector", NULL, 0, e);

    if (r < 0 && pg_session_is_broken(s))
        return r;
    if (r < 0)
        return err_prefix(e, r, "the extension `vector` (pgvector) is not there and cannot be made");
    r = run(
        s,
        arena_printf(
            a,
            "CREATE TABLE IF NOT EXISTS \"%s\" (namespace text NOT NULL, id text NOT NULL, n_dimensions integer NOT NULL, "
            "embedding vector NOT NULL, metadata jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), "
            "PRIMARY KEY (namespace, id))",
            pg->table),
        NULL, 0, e);
    if (r == 0)
        r = run(s,
                arena_printf(a, "SELECT namespace, id, n_dimensions, embedding, metadata FROM \"%s\" LIMIT 0",
                             pg->table),
                NULL, 0, e);
    return r;
}

static int pg_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    return pgvector_with_session(v, wait, make_table, NULL, e);
}

/* ---- upsert ---- */

struct upsert {
    const char *ns;
    const struct vector_batch *batch;
};

static int make_index(struct pgvector *pg, struct pg_session *s, size_t n_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    if (n_dimensions > INDEXED_DIMENSIONS)
        return 0;
    return run(
        s,
        arena_printf(
            a,
            "CREATE INDEX IF NOT EXISTS \"%s_hnsw_%zu\" ON \"%s\" USING hnsw ((embedding::vector(%zu)) vector_cosine_ops) "
            "WHERE n_dimensions = %zu",
            pg->table, n_dimensions, pg->table, n_dimensions, n_dimensions),
        NULL, 0, e);
}

static void write_rows(struct buf *out, const struct vector_record *items, size_t n, size_t n_dimensions)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_array(&w);
    for (size_t i = 0; i < n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "id", items[i].id);
        json_add_floats(&w, "v", items[i].vector, n_dimensions);
        json_add_raw(&w, "m", items[i].metadata ? items[i].metadata : "{}");
        json_end(&w);
    }
    json_end(&w);
}

/* The text of a JSON array of numbers is the text of a vector. Of equal ids the last one counts. */
static int put_rows(struct pgvector *pg, struct pg_session *s, const struct upsert *u, size_t first, size_t n,
                    struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *sql = arena_printf(
        a,
        "INSERT INTO \"%s\" (namespace, id, n_dimensions, embedding, metadata) SELECT DISTINCT ON (r.value->>'id') $1, r.value->>'id', $2::integer, "
        "(r.value->>'v')::vector, (r.value->'m')::jsonb FROM json_array_elements($3::json) WITH ORDINALITY AS r(value, place) "
        "ORDER BY r.value->>'id', r.place DESC ON CONFLICT (namespace, id) DO UPDATE SET n_dimensions = excluded.n_dimensions, "
        "embedding = excluded.embedding, metadata = excluded.metadata",
        pg->table);
    const char *params[] = { u->ns, arena_printf(a, "%zu", u->batch->n_dimensions), NULL };
    struct buf rows;
    int r;

    buf_init(&rows, LIMIT_BODY_VECTORS);
    write_rows(&rows, u->batch->items + first, n, u->batch->n_dimensions);
    r = buf_check(&rows, e);
    params[2] = buf_str(&rows);
    if (r == 0)
        r = run(s, sql, params, 3, e);
    buf_clear(&rows);
    return r;
}

/* Two concurrent first upserts of a namespace must agree on its dimensions, so they run one after the other. */
static int put_all(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    const struct upsert *u = arg;
    int64_t n_dimensions = 0;
    int r = run(s, "BEGIN", NULL, 0, e);

    if (r == 0)
        r = run(s, "SELECT pg_advisory_xact_lock(hashtext($1))", &u->ns, 1, e);
    if (r == 0)
        r = pgvector_read_dimensions(pg, s, u->ns, &n_dimensions, e);
    if (r == 0 && n_dimensions > 0)
        r = vector_check_dimensions(u->ns, n_dimensions, u->batch->n_dimensions, e);
    else if (r == 0)
        r = make_index(pg, s, u->batch->n_dimensions, e);
    for (size_t i = 0; r == 0 && i < u->batch->n; i += ROWS_A_STATEMENT)
        r = put_rows(pg, s, u, i, MIN((size_t)ROWS_A_STATEMENT, u->batch->n - i), e);
    return r < 0 ? r : run(s, "COMMIT", NULL, 0, e);
}

static int pg_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                     struct err *e)
{
    struct upsert u = { ns, b };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_batch(b, e);
    return r < 0 || b->n == 0 ? r : pgvector_with_session(v, wait, put_all, &u, e);
}

/* ---- remove ---- */

struct removal {
    const char *ns;
    const struct vector_removal *r;
    struct vector_filter filter;
    struct arena *arena;
    int64_t n;
};

static char *ids_param(struct arena *a, const struct vector_removal *r)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < r->n_ids; i++)
        json_add_string(&w, NULL, r->ids[i]);
    json_end(&w);
    return buf_to_arena(&out, a);
}

static int remove_rows(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    struct removal *r = arg;
    const char *which = r->r->ids ? " AND id IN (SELECT json_array_elements_text($2::json))"
                                  : pgvector_filter_sql(r->arena, &r->filter, 2);
    const char *params[] = { r->ns,
                             r->r->ids ? ids_param(r->arena, r->r) : pgvector_filter_param(r->arena, &r->filter) };
    const char *sql = arena_printf(r->arena, "DELETE FROM \"%s\" WHERE namespace = $1%s", pg->table, which);

    return pg_run(s, &(struct pg_statement){ .sql = sql, .params = params, .n_params = 2, .ret_changes = &r->n }, e);
}

static int pg_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *what,
                     int64_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct removal removal = { .ns = ns, .r = what, .arena = a };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_removal(what, e);
    if (r == 0)
        r = vector_filter_parse(a, what->filter, &removal.filter, e);
    if (r == 0)
        r = pgvector_with_session(v, wait, remove_rows, &removal, e);
    if (r == 0)
        *ret_n = removal.n;
    return r;
}

/* ---- opening ---- */

static const struct vectors_ops ops = {
    .name = "pgvector",
    .close = pg_close,
    .check = pg_check,
    .upsert = pg_upsert,
    .query = pgvector_query,
    .remove = pg_remove,
    .count = pgvector_count,
    .list = pgvector_list,
    .namespaces = pgvector_namespaces,
};

const struct vectors_field pgvector_fields[] = {
    { "databaseUrl", "Database URL", VECTORS_PASSWORD, "postgresql://user:password@localhost:5432/database",
      .alias = "connectionString", .is_required = true, .secrecy = VECTORS_ADDRESS },
    { "tableName", "Table", VECTORS_STRING, "hv_<app id>" },
    { NULL },
};

static int name_table(const char *scope, const char *given, char *ret, struct err *e)
{
    size_t n = 0;

    if (given && *given) {
        n = strlen(given);
        if (n > PGVECTOR_TABLE_CHARS ||
            strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n)
            return err_set(e, -EINVAL, "VALIDATION_ERROR", "tableName must have at most %d letters, digits and _",
                           PGVECTOR_TABLE_CHARS);
        snprintf(ret, PGVECTOR_TABLE_CHARS + 1, "%s", given);
        return 0;
    }
    n = (size_t)snprintf(ret, PGVECTOR_TABLE_CHARS + 1, "hv_");
    for (const char *c = scope; *c && n < PGVECTOR_TABLE_CHARS; c++)
        if (isalnum((unsigned char)*c))
            ret[n++] = *c;
    ret[n] = '\0';
    return 0;
}

int pgvector_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e)
{
    const char *url = json_cstr(vectors_field_value(&pgvector_fields[0], config, NULL));
    struct pgvector *pg;
    int r;

    r = pg_conninfo_check(url, e);
    if (r < 0)
        return r;
    pg = xcalloc(1, sizeof(*pg));
    r = name_table(scope, json_cstr(json_get(config, "tableName")), pg->table, e);
    if (r < 0) {
        free(pg);
        return r;
    }
    pg->vectors.ops = &ops;
    pg_pool_init(&pg->pool, url, guard);
    *ret = &pg->vectors;
    return 0;
}
