/* Vectors in PostgreSQL with pgvector: one table an app, one HNSW index a number of dimensions (docs/vectors.md).
 *
 * Unfiltered queries go through the index and are approximate; those with a filter look at every row that matches. */
#include "vector/pgvector.h"

#include "vector/pgvector_conninfo.h"
#include "vector/pgvector_session.h"
#include "vector/vector_check.h"
#include "vector/vector_filter.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS_A_STATEMENT = 500, INDEXED_DIMENSIONS = 2000 /* the most HNSW takes */, TABLE_CHARS = 40 };

struct pgvector {
    struct vectors vectors;             /* first */
    struct pg_pool pool;
    char table[TABLE_CHARS + 1];        /* letters, digits and _ only */
};

/* What one call does on a session; done again on a fresh connection when an idle one turns out dead. All of them may be repeated. */
typedef int pg_work(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e);

static int with_session(struct vectors *v, pg_work *work, void *arg, struct err *e)
{
    struct pgvector *pg = (struct pgvector *)v;
    struct pg_session s = { 0 };
    struct err why = { 0 };
    int r = pg_session_open(&pg->pool, false, &s, e);

    if (r < 0)
        return r;
    r = work(pg, &s, arg, &why);
    if (r < 0 && pg_session_is_stale(&s)) {
        pg_session_close(&s);
        why = (struct err){ 0 };
        r = pg_session_open(&pg->pool, true, &s, &why);
        if (r == 0)
            r = work(pg, &s, arg, &why);
    }
    pg_session_close(&s);
    if (r < 0 && e)
        *e = why;
    return r;
}

static struct vectors *pg_close(struct vectors *v)
{
    struct pgvector *pg = (struct pgvector *)v;

    pg_pool_clear(&pg->pool);
    free(pg);
    return NULL;
}

/* ---- check: the extension and the table ---- */

static int make_table(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = pg_run(s, NULL, e, "CREATE EXTENSION IF NOT EXISTS vector", NULL, 0);

    if (r < 0)
        return err_prefix(e, r, "the extension `vector` (pgvector) is not there and cannot be made");
    r = pg_run(s, NULL, e,
               arena_printf(a, "CREATE TABLE IF NOT EXISTS \"%s\" (namespace text NOT NULL, id text NOT NULL, n_dimensions integer NOT NULL, "
                               "embedding vector NOT NULL, metadata jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), "
                               "PRIMARY KEY (namespace, id))", pg->table), NULL, 0);
    if (r == 0)
        r = pg_run(s, NULL, e, arena_printf(a, "SELECT namespace, id, n_dimensions, embedding, metadata FROM \"%s\" LIMIT 0", pg->table), NULL, 0);
    return r;
}

static int pg_check(struct vectors *v, struct err *e)
{
    return with_session(v, make_table, NULL, e);
}

/* ---- upsert ---- */

struct upsert { const char *ns; const struct vector_batch *batch; };

/* 0: the namespace is empty. */
static int read_dimensions(struct pgvector *pg, struct pg_session *s, const char *ns, int64_t *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(pg_result_freep) struct pg_result *rows = NULL;
    int r = pg_run(s, &rows, e, arena_printf(a, "SELECT n_dimensions FROM \"%s\" WHERE namespace = $1 LIMIT 1", pg->table), &ns, 1);

    if (r == 0)
        *ret = pg_rows(rows) > 0 ? pg_int(rows, 0, 0) : 0;
    return r;
}

static int make_index(struct pgvector *pg, struct pg_session *s, size_t n_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    if (n_dimensions > INDEXED_DIMENSIONS)
        return 0;
    return pg_run(s, NULL, e,
                  arena_printf(a, "CREATE INDEX IF NOT EXISTS \"%s_hnsw_%zu\" ON \"%s\" USING hnsw ((embedding::vector(%zu)) vector_cosine_ops) "
                                  "WHERE n_dimensions = %zu", pg->table, n_dimensions, pg->table, n_dimensions, n_dimensions), NULL, 0);
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

/* The text of a JSON array of numbers is the text of a vector. Of equal ids the last counts. */
static int put_rows(struct pgvector *pg, struct pg_session *s, const struct upsert *u, size_t first, size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *sql = arena_printf(
        a, "INSERT INTO \"%s\" (namespace, id, n_dimensions, embedding, metadata) SELECT DISTINCT ON (r.value->>'id') $1, r.value->>'id', $2::integer, "
           "(r.value->>'v')::vector, (r.value->'m')::jsonb FROM json_array_elements($3::json) WITH ORDINALITY AS r(value, place) "
           "ORDER BY r.value->>'id', r.place DESC ON CONFLICT (namespace, id) DO UPDATE SET n_dimensions = excluded.n_dimensions, "
           "embedding = excluded.embedding, metadata = excluded.metadata", pg->table);
    const char *params[] = { u->ns, arena_printf(a, "%zu", u->batch->n_dimensions), NULL };
    struct buf rows;
    int r;

    buf_init(&rows, LIMIT_BODY_VECTORS);
    write_rows(&rows, u->batch->items + first, n, u->batch->n_dimensions);
    r = buf_check(&rows, e);
    params[2] = buf_str(&rows);
    if (r == 0)
        r = pg_run(s, NULL, e, sql, params, 3);
    buf_clear(&rows);
    return r;
}

/* Two first upserts of a namespace must agree on its dimensions: they come one after the other. */
static int put_all(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    const struct upsert *u = arg;
    int64_t n_dimensions = 0;
    int r = pg_run(s, NULL, e, "BEGIN", NULL, 0);

    if (r == 0)
        r = pg_run(s, NULL, e, "SELECT pg_advisory_xact_lock(hashtext($1))", &u->ns, 1);
    if (r == 0)
        r = read_dimensions(pg, s, u->ns, &n_dimensions, e);
    if (r == 0 && n_dimensions > 0)
        r = vector_check_dimensions(u->ns, n_dimensions, u->batch->n_dimensions, e);
    else if (r == 0)
        r = make_index(pg, s, u->batch->n_dimensions, e);
    for (size_t i = 0; r == 0 && i < u->batch->n; i += ROWS_A_STATEMENT)
        r = put_rows(pg, s, u, i, MIN((size_t)ROWS_A_STATEMENT, u->batch->n - i), e);
    return r < 0 ? r : pg_run(s, NULL, e, "COMMIT", NULL, 0);
}

static int pg_upsert(struct vectors *v, const char *ns, const struct vector_batch *b, struct err *e)
{
    struct upsert u = { ns, b };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_batch(b, e);
    return r < 0 || b->n == 0 ? r : with_session(v, put_all, &u, e);
}

/* ---- filters ---- */

/* Keys and values travel as one JSON parameter, [{k, v}]; the SQL names only their places in it. */
static char *filter_param(struct arena *a, const struct vector_filter *f)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < f->n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "k", f->items[i].key);
        json_add_value(&w, "v", f->items[i].value);
        json_end(&w);
    }
    json_end(&w);
    return buf_to_arena(&out, a);
}

static const char *order_of(enum vector_op op)
{
    static const char *const signs[] = { [VECTOR_GT] = ">", [VECTOR_GTE] = ">=", [VECTOR_LT] = "<", [VECTOR_LTE] = "<=" };

    return signs[op];
}

/* As src/vector/vector_filter.h says: numbers with numbers, strings by code point, null as a key that is missing. */
static char *condition_sql(struct arena *a, const struct vector_condition *c, int param, size_t i)
{
    const char *key = arena_printf(a, "(metadata -> ($%d::jsonb->%zu->>'k'))", param, i), *value = arena_printf(a, "($%d::jsonb->%zu->'v')", param, i);
    const char *given = arena_printf(a, "coalesce(%s, 'null'::jsonb)", key);

    if (c->op == VECTOR_EQ)
        return arena_printf(a, "%s = %s", given, value);
    if (c->op == VECTOR_NE)
        return arena_printf(a, "%s <> %s", given, value);
    if (c->op == VECTOR_IN)
        return arena_printf(a, "EXISTS (SELECT 1 FROM jsonb_array_elements(%s) AS one WHERE one = %s)", value, given);
    if (json_type(c->value) == JSON_STRING)
        return arena_printf(a, "CASE WHEN jsonb_typeof(%s) = 'string' THEN (%s #>> '{}') COLLATE \"C\" %s (%s #>> '{}') ELSE false END", key, key,
                            order_of(c->op), value);
    return arena_printf(a, "CASE WHEN jsonb_typeof(%s) = 'number' THEN %s::numeric %s %s::numeric ELSE false END", key, key, order_of(c->op), value);
}

static char *filter_sql(struct arena *a, const struct vector_filter *f, int param)
{
    char *sql = arena_strdup(a, "");

    for (size_t i = 0; i < f->n; i++)
        sql = arena_printf(a, "%s AND %s", sql, condition_sql(a, &f->items[i], param, i));
    return sql;
}

/* ---- query and list ---- */

struct query { const char *ns; const struct vector_query *q; struct vector_filter filter; struct arena *arena; struct vector_hits *hits; };

static char *vector_param(struct arena *a, const float *vector, size_t n)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_add_floats(&w, NULL, vector, n);
    return buf_to_arena(&out, a);
}

static int read_vector(struct arena *a, const char *text, const float **ret, struct err *e)
{
    struct json_value v;
    float *vector;
    size_t n;
    int r = json_parse(a, slice_of(text), &v, e);

    if (r < 0)
        return r;
    n = json_length(v);
    vector = arena_array(a, n + 1, sizeof(*vector));
    if (json_read_floats(v, vector, n) < n)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "the table holds a vector that cannot be read");
    *ret = vector;
    return 0;
}

/* Columns id, score, metadata, embedding (NULL when not asked for). The distance to a zero vector is NaN: it scores 0. Rounding may pass 1. */
static int read_hits(const struct pg_result *rows, struct arena *a, struct vector_hits *ret, struct err *e)
{
    size_t n = pg_rows(rows);
    struct vector_hit *hits = arena_array(a, n + 1, sizeof(*hits));
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *vector;
        double score = pg_double(rows, i, 1);

        if (!arena_has_room(a, LIMIT_ARENA_BYTES / 4 + 4 * pg_bytes(rows, i)))
            return err_set(e, -EMSGSIZE, "VECTOR_STORE_FAILED", "the table's rows are larger than an answer may be");
        vector = pg_text(rows, a, i, 3);

        hits[i] = (struct vector_hit){ .id = pg_text(rows, a, i, 0), .score = isnan(score) ? 0 : fmax(-1, fmin(1, score)), .metadata = pg_text(rows, a, i, 2) };
        if (vector)
            r = read_vector(a, vector, &hits[i].vector, e);
    }
    if (r == 0)
        *ret = (struct vector_hits){ hits, n };
    return r;
}

static void drop_low_scores(struct vector_hits *hits, double min_score)
{
    size_t n = 0;

    for (size_t i = 0; i < hits->n; i++)
        if (hits->items[i].score >= min_score)
            hits->items[n++] = hits->items[i];
    hits->n = n;
}

/* Past the index: it knows no zero vectors, whose distance is NaN and counts as 1, and with a filter it would look at the nearest rows only
 * and then throw most of them away. */
#define EXACT_ORDER "coalesce(nullif(%s, 'NaN'), 1)"

static int run_nearest(struct pg_session *s, const char *table, const struct query *q, bool is_exact, struct err *e)
{
    AUTO(pg_result_freep) struct pg_result *rows = NULL;
    struct arena *a = q->arena;
    size_t n = q->q->n_dimensions;
    const char *distance = arena_printf(a, "(embedding::vector(%zu) <=> $2::vector(%zu))", n, n);
    const char *sql = arena_printf(
        a, "SELECT id, 1 - %s, metadata::text, %s FROM \"%s\" WHERE namespace = $1 AND n_dimensions = %zu%s ORDER BY %s LIMIT $4::integer", distance,
        q->q->with_vectors ? "embedding::text" : "NULL::text", table, n, filter_sql(a, &q->filter, 3), is_exact ? arena_printf(a, EXACT_ORDER, distance) : distance);
    const char *params[] = { q->ns, vector_param(a, q->q->vector, n), filter_param(a, &q->filter), arena_printf(a, "%lld", (long long)q->q->top_k) };
    int r = pg_run(s, &rows, e, sql, params, 4);

    return r < 0 ? r : read_hits(rows, a, q->hits, e);
}

static bool is_zero(const float *vector, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (vector[i] != 0)
            return false;
    return true;
}

/* Zero vectors, or rows the index gave up on, may belong into the answer. */
static bool may_lack(const struct query *q)
{
    const struct vector_hits *hits = q->hits;

    return hits->n < (size_t)q->q->top_k || hits->items[hits->n - 1].score <= 0;
}

static int find_nearest(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    const struct query *q = arg;
    bool is_exact = q->filter.n > 0 || is_zero(q->q->vector, q->q->n_dimensions);
    int64_t n_dimensions = 0;
    int r = read_dimensions(pg, s, q->ns, &n_dimensions, e);

    if (r == 0 && n_dimensions > 0)
        r = vector_check_dimensions(q->ns, n_dimensions, q->q->n_dimensions, e);
    if (r == 0)
        r = run_nearest(s, pg->table, q, is_exact, e);
    if (r == 0 && !is_exact && may_lack(q))
        r = run_nearest(s, pg->table, q, true, e);
    if (r == 0)
        drop_low_scores(q->hits, q->q->min_score);
    return r;
}

static int pg_query(struct vectors *v, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct query query = { .ns = ns, .q = q, .arena = a, .hits = ret };
    int r = vector_check_search(ns, q, a, &query.filter, e);

    return r < 0 ? r : with_session(v, find_nearest, &query, e);
}

struct page { const char *ns; int64_t limit, offset; bool with_vectors; struct arena *arena; struct vector_hits *hits; };

static int read_page(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(pg_result_freep) struct pg_result *rows = NULL;
    const struct page *p = arg;
    struct arena *a = p->arena;
    const char *sql = arena_printf(a, "SELECT id, 0, metadata::text, %s FROM \"%s\" WHERE namespace = $1 ORDER BY id COLLATE \"C\" LIMIT $2::bigint OFFSET $3::bigint",
                                   p->with_vectors ? "embedding::text" : "NULL::text", pg->table);
    const char *params[] = { p->ns, arena_printf(a, "%lld", (long long)p->limit), arena_printf(a, "%lld", (long long)p->offset) };
    int r = pg_run(s, &rows, e, sql, params, 3);

    return r < 0 ? r : read_hits(rows, a, p->hits, e);
}

static int pg_list(struct vectors *v, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                   struct err *e)
{
    struct page page = { ns, limit, offset, with_vectors, a, ret };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(limit, offset, e);
    return r < 0 ? r : with_session(v, read_page, &page, e);
}

/* ---- remove, count, namespaces ---- */

struct removal { const char *ns; const struct vector_removal *r; struct vector_filter filter; struct arena *arena; int64_t n; };

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
    AUTO(pg_result_freep) struct pg_result *done = NULL;
    struct removal *r = arg;
    const char *which = r->r->ids ? " AND id IN (SELECT json_array_elements_text($2::json))" : filter_sql(r->arena, &r->filter, 2);
    const char *params[] = { r->ns, r->r->ids ? ids_param(r->arena, r->r) : filter_param(r->arena, &r->filter) };
    int ret = pg_run(s, &done, e, arena_printf(r->arena, "DELETE FROM \"%s\" WHERE namespace = $1%s", pg->table, which), params, 2);

    if (ret == 0)
        r->n = pg_changes(done);
    return ret;
}

static int pg_remove(struct vectors *v, const char *ns, const struct vector_removal *what, int64_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct removal removal = { .ns = ns, .r = what, .arena = a };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_removal(what, e);
    if (r == 0)
        r = vector_filter_parse(a, what->filter, &removal.filter, e);
    if (r == 0)
        r = with_session(v, remove_rows, &removal, e);
    if (r == 0)
        *ret_n = removal.n;
    return r;
}

struct tally { const char *ns; int64_t n, n_dimensions; };

static int count_rows(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(pg_result_freep) struct pg_result *rows = NULL;
    struct tally *t = arg;
    int r = pg_run(s, &rows, e, arena_printf(a, "SELECT count(*), coalesce(max(n_dimensions), 0) FROM \"%s\" WHERE namespace = $1", pg->table), &t->ns, 1);

    if (r < 0)
        return r;
    t->n = pg_int(rows, 0, 0);
    t->n_dimensions = pg_int(rows, 0, 1);
    return 0;
}

static int pg_count(struct vectors *v, const char *ns, int64_t *ret_n, int64_t *ret_dimensions, struct err *e)
{
    struct tally t = { .ns = ns };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = with_session(v, count_rows, &t, e);
    if (r < 0)
        return r;
    *ret_n = t.n;
    *ret_dimensions = t.n_dimensions;
    return 0;
}

struct naming { const char *prefix; struct arena *arena; struct field_strings *names; };

static int read_names(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(pg_result_freep) struct pg_result *rows = NULL;
    const struct naming *n = arg;
    const char **names;
    const char *sql = arena_printf(n->arena, "SELECT DISTINCT namespace COLLATE \"C\" AS name FROM \"%s\" WHERE starts_with(namespace, $1) ORDER BY name", pg->table);
    int r = pg_run(s, &rows, e, sql, &n->prefix, 1);

    if (r < 0)
        return r;
    names = arena_array(n->arena, pg_rows(rows) + 1, sizeof(*names));
    for (size_t i = 0; i < pg_rows(rows); i++)
        names[i] = pg_text(rows, n->arena, i, 0);
    *n->names = (struct field_strings){ names, pg_rows(rows) };
    return 0;
}

static int pg_namespaces(struct vectors *v, const char *prefix, struct arena *a, struct field_strings *ret, struct err *e)
{
    struct naming n = { prefix, a, ret };

    return with_session(v, read_names, &n, e);
}

/* ---- opening ---- */

static const struct vectors_ops ops = {
    .name = "pgvector", .close = pg_close, .check = pg_check, .upsert = pg_upsert, .query = pg_query, .remove = pg_remove, .count = pg_count,
    .list = pg_list, .namespaces = pg_namespaces,
};

const struct vectors_field pgvector_fields[] = {
    { "connectionString", "Connection string", "url", "postgresql://user:password@localhost:5432/database", .is_required = true, .is_secret = true },
    { "tableName", "Table", "text", "hv_<app id>" },
    { NULL },
};

static int name_table(const char *scope, const char *given, char *ret, struct err *e)
{
    size_t n = 0;

    if (given && *given) {
        n = strlen(given);
        if (n > TABLE_CHARS || strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n)
            return err_set(e, -EINVAL, "VALIDATION_ERROR", "tableName must have at most %d letters, digits and _", TABLE_CHARS);
        snprintf(ret, TABLE_CHARS + 1, "%s", given);
        return 0;
    }
    n = (size_t)snprintf(ret, TABLE_CHARS + 1, "hv_");
    for (const char *c = scope; *c && n < TABLE_CHARS; c++)
        if (isalnum((unsigned char)*c))
            ret[n++] = *c;
    ret[n] = '\0';
    return 0;
}

int pgvector_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e)
{
    const char *url = json_cstr(json_get(config, "connectionString"));
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
