/* Reading from Chroma: nearest vectors, pages, and ids that match. */
#include "vector/remote/chroma.h"

/* ---- query ---- */

static void write_search(struct json_writer *w, const struct remote_search *s, int64_t n, struct arena *a)
{
    float *unit = arena_array(a, s->query->n_dimensions, sizeof(*unit));

    remote_unit(s->query->vector, s->query->n_dimensions, unit);
    json_begin_array_as(w, "query_embeddings");
    json_add_floats(w, NULL, unit, s->query->n_dimensions);
    json_end(w);
    json_add_int(w, "n_results", n);
    json_add_raw(w, "include",
                 s->query->with_vectors ? "[\"metadatas\",\"distances\",\"embeddings\"]"
                                        : "[\"metadatas\",\"distances\"]");
    if (s->among.n > 0)
        json_add_strings(w, "ids", s->among.items, s->among.n);
    else
        remote_add_filter(&chroma_dialect, w, s->filter);
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

/* Parallel lists: ids, metadatas, embeddings, and for a query distances. */
struct lists {
    struct json_value ids, metadatas, units, distances;
};

/* n_most: the number of requested records. n_dimensions 0: vectors are not read. */
static int read_hits(const struct remote_op *op, struct arena *a, const struct lists *from, size_t n_most,
                     size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct json_iter id = json_iter(from->ids), metadata = json_iter(from->metadatas), unit = json_iter(from->units),
                     distance = json_iter(from->distances);
    struct vector_hits hits = { 0 };
    int r = remote_read_list(op, "ids", from->ids, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n; i++) {
        struct json_value about = next_of(&metadata);
        const struct remote_raw raw = {
            .id = next_of(&id),
            .id_name = "ids",
            .score = next_of(&distance),
            .scale = REMOTE_DISTANCE,
            .metadata = json_get(about, CHROMA_JSON),
            .unit = next_of(&unit),
            .length = json_get(about, CHROMA_LENGTH),
        };

        r = remote_read_record(op, a, &raw, n_dimensions, &hits.items[i], e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

int chroma_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search,
                   int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct lists found;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    write_search(&w, search, n, a);
    json_end(&w);
    r = chroma_send(op, a, chroma_path(op, a, col, "query"), &body, &reply, e);
    if (r < 0)
        return r;
    found = (struct lists){ first_of(json_get(reply.body, "ids")), first_of(json_get(reply.body, "metadatas")),
                            first_of(json_get(reply.body, "embeddings")), first_of(json_get(reply.body, "distances")) };
    return read_hits(op, a, &found, (size_t)n, search->query->with_vectors ? search->query->n_dimensions : 0, ret, e);
}

/* ---- reading by ids and page by page ---- */

struct reading {
    const char *const *ids; /* NULL: all ids, or those that match the filter */
    size_t n_ids;
    const struct vector_filter *filter; /* NULL: all */
    enum remote_parts parts;
    int64_t limit, offset;
};

static int read_page(const struct remote_op *op, const struct remote_collection *col, const struct reading *what,
                     struct arena *a, struct vector_hits *ret, struct err *e)
{
    static const char *const includes[] = {
        [REMOTE_IDS] = "[]", [REMOTE_METADATA] = "[\"metadatas\"]", [REMOTE_VECTORS] = "[\"metadatas\",\"embeddings\"]"
    };
    size_t n_dimensions = what->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0;
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct lists found;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    if (what->ids)
        json_add_strings(&w, "ids", what->ids, what->n_ids);
    if (what->filter)
        remote_add_filter(&chroma_dialect, &w, what->filter);
    json_add_raw(&w, "include", includes[what->parts]);
    json_add_int(&w, "limit", what->limit);
    json_add_int(&w, "offset", what->offset);
    json_end(&w);
    r = chroma_send(op, a, chroma_path(op, a, col, "get"), &body, &reply, e);
    found = (struct lists){
        json_get(reply.body, "ids"), json_get(reply.body, "metadatas"), json_get(reply.body, "embeddings"), { 0 }
    };
    return r < 0 ? r : read_hits(op, a, &found, (size_t)what->limit, n_dimensions, ret, e);
}

int chroma_read(const struct remote_op *op, const struct remote_collection *col,
                const struct remote_read_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct reading what = {
        .ids = request->ids, .n_ids = request->n, .parts = request->parts, .limit = (int64_t)request->n
    };

    return read_page(op, col, &what, a, ret, e);
}

int chroma_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    struct reading what = { .filter = filter,
                            .parts = filter ? REMOTE_METADATA : REMOTE_IDS,
                            .limit = REMOTE_ROWS_A_READ };
    size_t n_read = REMOTE_ROWS_A_READ, n_pages = 0;
    int r = 0;

    for (; r == 0 && n_read == REMOTE_ROWS_A_READ; what.offset += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = read_page(op, col, &what, scratch, &hits, e);
        n_read = hits.n;
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, scratch, e);
    }
    return r;
}
