/* Reading from PostgreSQL: the nearest, pages, counts and names.
 *
 * Unfiltered queries use the index and are approximate; queries with a filter read every matching row.
 */
#include "vector/pgvector/pgvector.h"

#include "net/pay.h"
#include "vector/vector_check.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBER_CHARS = 20 /* of the largest of 64 bits */, COLUMN_BYTES = LIMIT_STORE_LOOSE_BYTES };

/* ---- rows ---- */

/* Is the whole number (digits, perhaps a minus before them) beyond 64 bits? */
static bool is_beyond_64_bits(struct slice digits, bool is_negative)
{
    char text[NUMBER_CHARS + 2];

    if (digits.n > NUMBER_CHARS)
        return true;
    snprintf(text, sizeof(text), "%s%.*s", is_negative ? "-" : "", (int)digits.n, digits.p);
    errno = 0;
    if (is_negative)
        (void)!strtoll(text, NULL, 10);
    else
        (void)!strtoull(text, NULL, 10);
    return errno == ERANGE;
}

/* The place after the string that begins at `at`. */
static size_t skip_string(struct slice text, size_t at)
{
    for (at++; at < text.n && text.p[at] != '"'; at++)
        at += text.p[at] == '\\';
    return MIN(at + 1, text.n);
}

/* jsonb writes 1e30 with all its digits: integers beyond 64 bits get a decimal point, so that they are read as doubles
 * again. */
static struct slice with_points(struct arena *a, struct slice text)
{
    char *out = arena_alloc(a, text.n + text.n / 8 + 4);
    size_t n = 0, at = 0;

    while (at < text.n) {
        size_t n_digits = slice_digits((struct slice){ text.p + at, text.n - at }),
               end = text.p[at] == '"' ? skip_string(text, at) : at + MAX(n_digits, (size_t)1);
        char before = at > 0 ? text.p[at - 1] : ' ', after = end < text.n ? text.p[end] : ' ';

        memcpy(out + n, text.p + at, end - at);
        n += end - at;
        if (n_digits >= NUMBER_CHARS - 1 && before != '.' && !strchr(".eE", after) &&
            is_beyond_64_bits((struct slice){ text.p + at, n_digits }, before == '-')) {
            memcpy(out + n, ".0", 2);
            n += 2;
        }
        at = end;
    }
    return (struct slice){ out, n };
}

static int read_metadata(const struct pg_row *row, int column, struct arena *a, const char **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct slice text = { 0 };
    int r = pg_row_text(row, column, COLUMN_BYTES, &text, e);

    if (r == 0 && vector_check_metadata(a, with_points(scratch, text), ret) < 0)
        r = pg_fault(e, "a record's metadata is no JSON object");
    return r;
}

static int read_vector(const struct pg_row *row, int column, size_t n, struct arena *a, struct vector_hit *ret,
                       struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value list = { 0 };
    struct slice text = { 0 };
    float *vector;
    int r = pg_row_text(row, column, COLUMN_BYTES, &text, e);

    if (r < 0)
        return r;
    if (json_parse(scratch, text, &list, NULL) < 0 || json_type(list) != JSON_ARRAY)
        return pg_fault(e, "a record's vector cannot be read");
    if (json_length(list) != n)
        return pg_fault(e, "a record's vector has %zu dimensions where the namespace has %zu", json_length(list), n);
    vector = arena_array(a, n, sizeof(*vector));
    if (json_read_floats(list, vector, n) < n)
        return pg_fault(e, "a record's vector must be of numbers");
    ret->vector = vector;
    ret->n_dimensions = n;
    return 0;
}

/* Rows of id, score, metadata, embedding; n_dimensions 0: the last is NULL. */
struct taking {
    struct arena *arena;
    struct budget_holder *holder;
    size_t n_dimensions, cap;
    struct vector_hits hits;
};

static int take_hit(void *arg, const struct pg_row *row, struct err *e)
{
    struct taking *t = arg;
    struct vector_hit *hit = &t->hits.items[t->hits.n];
    struct slice id = { 0 };
    double score = 0;
    int r;

    if (t->hits.n == t->cap || !arena_has_room(t->arena, LIMIT_ARENA_BYTES / 4 + (size_t)COLUMN_BYTES))
        return err_set(e, -EMSGSIZE, "VECTOR_STORE_FAILED",
                       "PostgreSQL: the table's rows are larger than an answer may be");
    r = pg_row_text(row, 0, LIMIT_VECTOR_ID_BYTES, &id, e);
    if (r == 0)
        r = pg_row_double(row, 1, &score, e);
    if (r < 0)
        return r;
    /* The distance to a zero vector is NaN: it scores 0. Rounding may exceed 1. */
    *hit =
        (struct vector_hit){ .id = arena_slicedup(t->arena, id), .score = isnan(score) ? 0 : fmax(-1, fmin(1, score)) };
    r = read_metadata(row, 2, t->arena, &hit->metadata, e);
    if (r == 0 && t->n_dimensions > 0)
        r = read_vector(row, 3, t->n_dimensions, t->arena, hit, e);
    if (r == 0)
        r = net_pay(t->holder, t->arena, id.n + strlen(hit->metadata) + hit->n_dimensions * sizeof(float), e);
    t->hits.n += r == 0;
    return r;
}

static int take_hits(struct pg_session *s, const char *sql, const char *const *params, size_t n_params,
                     struct taking *t, struct err *e)
{
    t->holder = s->wait->holder;
    t->hits = (struct vector_hits){ arena_array(t->arena, t->cap + 1, sizeof(struct vector_hit)), 0 };
    return pg_run(s,
                  &(struct pg_statement){ .sql = sql,
                                          .params = params,
                                          .n_params = n_params,
                                          .n_columns = 4,
                                          .max_rows = t->cap,
                                          .on_row = take_hit,
                                          .arg = t },
                  e);
}

static int take_dimensions(void *arg, const struct pg_row *row, struct err *e)
{
    return pg_row_int(row, 0, 1, LIMIT_DIMENSIONS, arg, e);
}

int pgvector_read_dimensions(struct pgvector *pg, struct pg_session *s, const char *ns, int64_t *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct pg_statement st = {
        .sql = arena_printf(a, "SELECT n_dimensions FROM \"%s\" WHERE namespace = $1 LIMIT 1", pg->table),
        .params = &ns,
        .n_params = 1,
        .n_columns = 1,
        .max_rows = 1,
        .on_row = take_dimensions,
        .arg = ret,
    };

    *ret = 0;
    return pg_run(s, &st, e);
}

/* ---- query ---- */

struct query {
    const char *ns;
    const struct vector_query *q;
    struct vector_filter filter;
    struct taking taking;
};

static char *vector_param(struct arena *a, const float *vector, size_t n)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_add_floats(&w, NULL, vector, n);
    return buf_to_arena(&out, a);
}

static void drop_low_scores(struct vector_hits *hits, double min_score)
{
    size_t n = 0;

    for (size_t i = 0; i < hits->n; i++)
        if (hits->items[i].score >= min_score)
            hits->items[n++] = hits->items[i];
    hits->n = n;
}

/* An order that bypasses the index: the index lacks zero vectors, whose distance is NaN and counts as 1, and with a
 * filter it would read only the nearest rows and then discard most of them. */
#define EXACT_ORDER "coalesce(nullif(%s, 'NaN'), 1)"

static int run_nearest(struct pg_session *s, const char *table, struct query *q, bool is_exact, struct err *e)
{
    struct arena *a = q->taking.arena;
    size_t n = q->q->n_dimensions;
    const char *distance = arena_printf(a, "(embedding::vector(%zu) <=> $2::vector(%zu))", n, n);
    const char *sql = arena_printf(
        a,
        "SELECT id, 1 - %s, metadata::text, %s FROM \"%s\" WHERE namespace = $1 AND n_dimensions = %zu%s ORDER BY %s LIMIT $4::integer",
        distance, q->q->with_vectors ? "embedding::text" : "NULL::text", table, n,
        pgvector_filter_sql(a, &q->filter, 3), is_exact ? arena_printf(a, EXACT_ORDER, distance) : distance);
    const char *params[] = { q->ns, vector_param(a, q->q->vector, n), pgvector_filter_param(a, &q->filter),
                             arena_printf(a, "%lld", (long long)q->q->top_k) };

    return take_hits(s, sql, params, ARRAY_SIZE(params), &q->taking, e);
}

static bool is_zero(const float *vector, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (vector[i] != 0)
            return false;
    return true;
}

/* May the answer lack zero vectors, or rows that the index did not find? */
static bool may_lack(const struct query *q)
{
    const struct vector_hits *hits = &q->taking.hits;

    return hits->n < (size_t)q->q->top_k || hits->items[hits->n - 1].score <= 0;
}

static int find_nearest(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    struct query *q = arg;
    bool is_exact = q->filter.n > 0 || is_zero(q->q->vector, q->q->n_dimensions);
    int64_t n_dimensions = 0;
    int r = pgvector_read_dimensions(pg, s, q->ns, &n_dimensions, e);

    if (r == 0 && n_dimensions > 0)
        r = vector_check_dimensions(q->ns, n_dimensions, q->q->n_dimensions, e);
    if (r == 0)
        r = run_nearest(s, pg->table, q, is_exact, e);
    if (r == 0 && !is_exact && may_lack(q))
        r = run_nearest(s, pg->table, q, true, e);
    if (r == 0)
        drop_low_scores(&q->taking.hits, q->q->min_score);
    return r;
}

int pgvector_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                   struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct query query = {
        .ns = ns,
        .q = q,
        .taking = { .arena = a, .n_dimensions = q->with_vectors ? q->n_dimensions : 0, .cap = (size_t)q->top_k }
    };
    int r = vector_check_search(ns, q, a, &query.filter, e);

    if (r == 0)
        r = pgvector_with_session(v, wait, find_nearest, &query, e);
    if (r == 0)
        *ret = query.taking.hits;
    return r;
}

/* ---- list ---- */

struct page {
    const char *ns;
    const struct vector_list_request *request;
    struct taking taking;
};

static int read_page(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    struct page *p = arg;
    struct arena *a = p->taking.arena;
    const char *sql = arena_printf(
        a,
        "SELECT id, 0, metadata::text, %s FROM \"%s\" WHERE namespace = $1 ORDER BY id COLLATE \"C\" LIMIT $2::bigint OFFSET $3::bigint",
        p->request->with_vectors ? "embedding::text" : "NULL::text", pg->table);
    const char *params[] = { p->ns, arena_printf(a, "%lld", (long long)p->request->limit),
                             arena_printf(a, "%lld", (long long)p->request->offset) };
    int64_t n_dimensions = 0;
    int r = p->request->with_vectors ? pgvector_read_dimensions(pg, s, p->ns, &n_dimensions, e) : 0;

    p->taking.n_dimensions = (size_t)n_dimensions;
    return r < 0 ? r : take_hits(s, sql, params, ARRAY_SIZE(params), &p->taking, e);
}

int pgvector_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                  const struct vector_list_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct page page = { .ns = ns, .request = request, .taking = { .arena = a, .cap = (size_t)request->limit } };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(request->limit, request->offset, e);
    if (r == 0)
        r = pgvector_with_session(v, wait, read_page, &page, e);
    if (r == 0)
        *ret = page.taking.hits;
    return r;
}

/* ---- count and namespaces ---- */

struct tally {
    const char *ns;
    bool is_there;
    int64_t n, n_dimensions;
};

static int take_tally(void *arg, const struct pg_row *row, struct err *e)
{
    struct tally *t = arg;
    int r = pg_row_int(row, 0, 0, INT64_MAX, &t->n, e);

    t->is_there = true;
    return r < 0 ? r : pg_row_int(row, 1, 0, LIMIT_DIMENSIONS, &t->n_dimensions, e);
}

static int count_rows(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct tally *t = arg;
    const struct pg_statement st = {
        .sql = arena_printf(a, "SELECT count(*), coalesce(max(n_dimensions), 0) FROM \"%s\" WHERE namespace = $1",
                            pg->table),
        .params = &t->ns,
        .n_params = 1,
        .n_columns = 2,
        .max_rows = 1,
        .on_row = take_tally,
        .arg = t,
    };
    int r = pg_run(s, &st, e);

    return r == 0 && !t->is_there ? pg_fault(e, "a count has no row") : r;
}

int pgvector_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                   int64_t *ret_dimensions, struct err *e)
{
    struct tally t = { .ns = ns };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = pgvector_with_session(v, wait, count_rows, &t, e);
    if (r < 0)
        return r;
    *ret_n = t.n;
    *ret_dimensions = t.n_dimensions;
    return 0;
}

struct naming {
    const char *prefix;
    struct arena *arena;
    const char **names;
    size_t n;
};

static int take_name(void *arg, const struct pg_row *row, struct err *e)
{
    struct naming *n = arg;
    struct slice name = { 0 };
    int r = pg_row_text(row, 0, LIMIT_VECTOR_NAMESPACE_BYTES, &name, e);

    if (r == 0 && !vector_check_prefix(name.p, n->prefix))
        r = pg_fault(e, "a namespace does not begin with %.100s", n->prefix);
    if (r == 0)
        n->names[n->n++] = arena_slicedup(n->arena, name);
    return r;
}

static int read_names(struct pgvector *pg, struct pg_session *s, void *arg, struct err *e)
{
    struct naming *n = arg;
    const struct pg_statement st = {
        .sql = arena_printf(
            n->arena,
            "SELECT DISTINCT namespace COLLATE \"C\" AS name FROM \"%s\" WHERE starts_with(namespace, $1) ORDER BY name",
            pg->table),
        .params = &n->prefix,
        .n_params = 1,
        .n_columns = 1,
        .max_rows = LIMIT_VECTOR_NAMESPACES,
        .on_row = take_name,
        .arg = n,
    };

    n->n = 0;
    return pg_run(s, &st, e);
}

int pgvector_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                        struct field_strings *ret, struct err *e)
{
    struct naming n = { prefix, a, arena_array(a, LIMIT_VECTOR_NAMESPACES, sizeof(char *)), 0 };
    int r = pgvector_with_session(v, wait, read_names, &n, e);

    if (r == 0)
        *ret = (struct field_strings){ n.names, n.n };
    return r;
}
