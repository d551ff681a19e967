/* Reading from Chroma: the nearest, pages, and ids that match. */
#include "vector/chroma.h"

#include <math.h>

/* ---- query ---- */

static void write_search(struct json_writer *w, const struct remote_search *s, int64_t n, struct arena *a)
{
    float *unit = arena_array(a, s->query->n_dimensions, sizeof(*unit));

    remote_unit(s->query->vector, s->query->n_dimensions, unit);
    json_begin_array_as(w, "query_embeddings");
    json_add_floats(w, NULL, unit, s->query->n_dimensions);
    json_end(w);
    json_add_int(w, "n_results", n);
    json_add_raw(w, "include", s->query->with_vectors ? "[\"metadatas\",\"distances\",\"embeddings\"]" : "[\"metadatas\",\"distances\"]");
    if (s->among.n > 0)
        json_add_strings(w, "ids", s->among.items, s->among.n);
    else
        remote_add_filter(&chroma_dialect, w, s->filter);
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

int chroma_nearest(const struct remote_store *s, const struct remote_collection *col, const struct remote_search *search, int64_t n, struct arena *a,
                   struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    write_search(&w, search, n, a);
    json_end(&w);
    r = chroma_send(s, a, chroma_path(s, a, col, "query"), &body, &reply, e);
    if (r == 0)
        r = read_hits(a, first_of(json_get(reply.body, "ids")), first_of(json_get(reply.body, "metadatas")), first_of(json_get(reply.body, "embeddings")),
                      first_of(json_get(reply.body, "distances")), ret, e);
    return r;
}

/* ---- reading by ids and page by page ---- */

struct reading {
    const char *const *ids;             /* NULL: all, or those of the filter */
    size_t n_ids;
    const struct vector_filter *filter; /* NULL: all */
    enum remote_parts parts;
};

static int read_page(const struct remote_store *s, const struct remote_collection *col, const struct reading *what, int64_t limit, int64_t offset,
                     struct arena *a, struct vector_hits *ret, struct err *e)
{
    static const char *const includes[] = { [REMOTE_IDS] = "[]", [REMOTE_METADATA] = "[\"metadatas\"]", [REMOTE_VECTORS] = "[\"metadatas\",\"embeddings\"]" };
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    if (what->ids)
        json_add_strings(&w, "ids", what->ids, what->n_ids);
    if (what->filter)
        remote_add_filter(&chroma_dialect, &w, what->filter);
    json_add_raw(&w, "include", includes[what->parts]);
    json_add_int(&w, "limit", limit);
    json_add_int(&w, "offset", offset);
    json_end(&w);
    r = chroma_send(s, a, chroma_path(s, a, col, "get"), &body, &reply, e);
    if (r == 0)
        r = read_hits(a, json_get(reply.body, "ids"), json_get(reply.body, "metadatas"), json_get(reply.body, "embeddings"), (struct json_value){ 0 }, ret, e);
    return r;
}

int chroma_read(const struct remote_store *s, const struct remote_collection *col, const char *const *ids, size_t n, enum remote_parts parts, struct arena *a,
                struct vector_hits *ret, struct err *e)
{
    const struct reading what = { .ids = ids, .n_ids = n, .parts = parts };

    return read_page(s, col, &what, (int64_t)n, 0, a, ret, e);
}

int chroma_collect_ids(const struct remote_store *s, const struct remote_collection *col, const struct vector_filter *filter, struct remote_ids *ids,
                       struct err *e)
{
    const struct reading what = { .filter = filter, .parts = filter ? REMOTE_METADATA : REMOTE_IDS };
    size_t n_read = REMOTE_ROWS_A_READ;
    int r = 0;

    for (int64_t offset = 0; r == 0 && n_read == REMOTE_ROWS_A_READ; offset += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = read_page(s, col, &what, REMOTE_ROWS_A_READ, offset, scratch, &hits, e);
        n_read = hits.n;
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, scratch, e);
    }
    return r;
}
