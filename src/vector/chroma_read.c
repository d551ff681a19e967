/* Reading from Chroma: the nearest, pages, and ids that match. */
#include "vector/chroma.h"
#include "vector/vector_check.h"

#include <math.h>

/* ---- query ---- */

struct search {
    const struct chroma *c;
    const struct chroma_collection *col;
    const struct vector_query *q;
    const struct vector_filter *filter;
    struct remote_ids among;            /* n 0: all that match as far as Chroma can tell */
};

static void write_search(struct json_writer *w, const struct search *s, int64_t n, struct arena *a)
{
    float *unit = arena_array(a, s->q->n_dimensions, sizeof(*unit));

    remote_unit(s->q->vector, s->q->n_dimensions, unit);
    json_begin_array_as(w, "query_embeddings");
    json_add_floats(w, NULL, unit, s->q->n_dimensions);
    json_end(w);
    json_add_int(w, "n_results", n);
    json_add_raw(w, "include", s->q->with_vectors ? "[\"metadatas\",\"distances\",\"embeddings\"]" : "[\"metadatas\",\"distances\"]");
    if (s->among.n > 0)
        json_add_strings(w, "ids", s->among.items, s->among.n);
    else
        chroma_add_where(w, s->filter);
}

static int read_hit(struct arena *a, const char *id, struct json_value metadata, struct json_value unit, struct vector_hit *ret, struct err *e)
{
    const char *text = json_cstr(json_get(metadata, CHROMA_JSON));

    *ret = (struct vector_hit){ .id = id, .metadata = text ? text : "{}" };
    if (!id)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "Chroma answered with a record that has no id");
    return json_is_absent(unit) ? 0 : remote_read_vector(a, unit, json_double(json_get(metadata, CHROMA_LENGTH)), &ret->vector, e);
}

static struct json_value first_of(struct json_value lists)
{
    struct json_iter it = json_iter(lists);
    struct json_value first = { 0 };

    (void)!json_next(&it, NULL, &first);
    return first;
}

static struct json_value next_of(struct json_iter *it)
{
    struct json_value value = { 0 };

    return json_next(it, NULL, &value) ? value : (struct json_value){ 0 };
}

/* Lists side by side: ids, metadatas, embeddings, and of a query distances. */
static int read_hits(struct arena *a, struct json_value ids, struct json_value metadatas, struct json_value units, struct json_value distances,
                     struct vector_hits *ret, struct err *e)
{
    struct json_iter metadata = json_iter(metadatas), unit = json_iter(units), distance = json_iter(distances);
    struct vector_hit *hits = arena_array(a, json_length(ids) + 1, sizeof(*hits));
    struct json_value id, d;
    size_t n = 0;
    int r = 0;

    for (struct json_iter it = json_iter(ids); r == 0 && json_next(&it, NULL, &id); n++) {
        r = read_hit(a, json_cstr(id), next_of(&metadata), next_of(&unit), &hits[n], e);
        d = next_of(&distance);
        hits[n].score = json_is_absent(d) ? 0 : fmax(-1, fmin(1, 1 - json_double(d)));
    }
    if (r == 0)
        *ret = (struct vector_hits){ hits, n };
    return r;
}

static int ask_nearest(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct search *s = arg;
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    write_search(&w, s, n, a);
    json_end(&w);
    r = chroma_send(s->c, a, chroma_path(s->c, a, s->col, "query"), &body, &reply, e);
    if (r == 0)
        r = read_hits(a, first_of(json_get(reply.body, "ids")), first_of(json_get(reply.body, "metadatas")), first_of(json_get(reply.body, "embeddings")),
                      first_of(json_get(reply.body, "distances")), ret, e);
    return r;
}

static bool is_told(const struct vector_filter *f)
{
    struct json_writer w;
    struct buf scratch;
    bool is_whole;

    chroma_begin(&w, &scratch);
    is_whole = chroma_add_where(&w, f);
    json_end(&w);
    buf_clear(&scratch);
    return is_whole;
}

/* ---- reading by ids and page by page ---- */

struct reading {
    const struct chroma *c;
    const struct chroma_collection *col;
    const char *const *ids;             /* NULL: all, or those of the filter */
    size_t n_ids;
    const struct vector_filter *filter; /* NULL: all */
    const char *include;
};

static int read_page(const struct reading *what, int64_t limit, int64_t offset, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    if (what->ids)
        json_add_strings(&w, "ids", what->ids, what->n_ids);
    if (what->filter)
        chroma_add_where(&w, what->filter);
    json_add_raw(&w, "include", what->include);
    json_add_int(&w, "limit", limit);
    json_add_int(&w, "offset", offset);
    json_end(&w);
    r = chroma_send(what->c, a, chroma_path(what->c, a, what->col, "get"), &body, &reply, e);
    if (r == 0)
        r = read_hits(a, json_get(reply.body, "ids"), json_get(reply.body, "metadatas"), json_get(reply.body, "embeddings"), (struct json_value){ 0 }, ret, e);
    return r;
}

/* The ids of all, or of those that match the filter. */
int chroma_collect_ids(const struct chroma *c, const struct chroma_collection *col, const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    const struct reading what = { .c = c, .col = col, .filter = filter, .include = filter ? "[\"metadatas\"]" : "[]" };
    size_t n_read = REMOTE_ROWS_A_READ;
    int r = 0;

    for (int64_t offset = 0; r == 0 && n_read == REMOTE_ROWS_A_READ; offset += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = read_page(&what, REMOTE_ROWS_A_READ, offset, scratch, &hits, e);
        n_read = hits.n;
        for (size_t i = 0; i < hits.n; i++)
            if (!filter || remote_is_match(filter, hits.items[i].metadata, scratch))
                remote_ids_add(ids, hits.items[i].id);
    }
    return r;
}

int chroma_list(struct vectors *v, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                       struct err *e)
{
    struct chroma_collection col = { 0 };
    struct reading what = { .c = (struct chroma *)v, .col = &col, .include = with_vectors ? "[\"metadatas\",\"embeddings\"]" : "[\"metadatas\"]" };
    struct remote_ids ids = { .arena = a };
    struct vector_hits hits = { 0 };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(limit, offset, e);
    if (r == 0)
        r = chroma_find(what.c, a, ns, &col, e);
    if (r == 0 && col.id)
        r = chroma_collect_ids(what.c, &col, NULL, &ids, e);
    if (r == 0 && (size_t)offset < ids.n) {
        remote_ids_sort(&ids);
        what.ids = ids.items + offset;
        what.n_ids = MIN(ids.n - (size_t)offset, (size_t)limit);
        r = read_page(&what, limit, 0, a, &hits, e);
    }
    if (r < 0)
        return r;
    remote_hits_sort(&hits);
    *ret = hits;
    return 0;
}

/* Which of the ids are there. */
int chroma_find_ids(const struct chroma *c, const struct chroma_collection *col, const struct vector_removal *what, struct remote_ids *ids, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < what->n_ids; i += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        const struct reading some = { .c = c, .col = col, .ids = what->ids + i, .n_ids = MIN(what->n_ids - i, (size_t)REMOTE_ROWS_A_READ), .include = "[]" };
        struct vector_hits hits = { 0 };

        r = read_page(&some, REMOTE_ROWS_A_READ, 0, scratch, &hits, e);
        for (size_t k = 0; k < hits.n; k++)
            remote_ids_add(ids, hits.items[k].id);
    }
    remote_ids_unique(ids);
    return r;
}

/* ---- query, once ids can be collected ---- */

/* A filter Chroma cannot decide, and few match: which ones is read here, and Chroma asked for the nearest of these. */
static int find_among_matches(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = chroma_collect_ids(s->c, s->col, s->filter, &s->among, e);

    if (r < 0 || s->among.n > REMOTE_CANDIDATES)
        return r < 0 ? r : remote_undecided(e);
    if (s->among.n == 0)
        *ret = (struct vector_hits){ 0 };
    return s->among.n == 0 ? 0 : remote_nearest(s->q, s->filter, true, ask_nearest, s, a, ret, e);
}

static int find_nearest(struct search *s, int64_t n_rows, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = remote_nearest(s->q, s->filter, is_told(s->filter), ask_nearest, s, a, ret, e);

    if (r != -ERANGE)
        return r;
    return n_rows > REMOTE_SCAN_ROWS ? remote_undecided(e) : find_among_matches(s, a, ret, e);
}

int chroma_query(struct vectors *v, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct vector_filter filter = { 0 };
    struct chroma_collection col = { 0 };
    struct search s = { (struct chroma *)v, &col, q, &filter, { .arena = a } };
    int64_t n = 0;
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_query(q, e);
    if (r == 0)
        r = vector_refuse_text(q, e);
    if (r == 0)
        r = vector_filter_parse(a, q->filter, &filter, e);
    if (r == 0)
        r = chroma_find(s.c, a, ns, &col, e);
    if (r == 0)
        r = chroma_count_records(s.c, a, &col, &n, e);
    if (r == 0 && n > 0)
        r = vector_check_dimensions(ns, col.n_dimensions, q->n_dimensions, e);
    if (r < 0)
        return r;
    if (n == 0)
        *ret = (struct vector_hits){ 0 };
    return n == 0 ? 0 : find_nearest(&s, n, a, ret, e);
}
