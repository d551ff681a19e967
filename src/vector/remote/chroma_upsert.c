/* Storing in Chroma: in one request, or in several requests in the order of the ids when a call is too large for one.
 */
#include "vector/remote/chroma.h"
#include "vector/vector_check.h"

#include <stdlib.h>

static const char *metadata_of(const struct vector_record *record)
{
    return record->metadata ? record->metadata : "{}";
}

static int by_bytes(const void *one, const void *other)
{
    const struct slice *a = one, *b = other;
    int order = memcmp(a->p, b->p, MIN(a->n, b->n));

    return order ? order : (a->n > b->n) - (a->n < b->n);
}

/* Keys that are copied beside the metadata, in order: the peer's keys are looked up among them. */
struct copies {
    struct slice *keys;
    size_t n;
};

static struct copies copies_of(struct json_value metadata, struct arena *a)
{
    struct copies c = { arena_array(a, json_length(metadata) + 1, sizeof(*c.keys)), 0 };
    struct json_value value;
    struct slice key;

    for (struct json_iter it = json_iter(metadata); json_next(&it, &key, &value);)
        if (chroma_holds(key, value))
            c.keys[c.n++] = key;
    qsort(c.keys, c.n, sizeof(*c.keys), by_bytes);
    return c;
}

/* held: the metadata that Chroma has for the id; may be absent. Chroma merges metadata, so removed keys must be sent
 * as null. */
static void write_metadata(struct json_writer *w, const struct vector_record *record, double length,
                           struct json_value held, struct arena *a)
{
    struct json_value metadata = { 0 }, value;
    struct copies copies;
    struct slice key;

    (void)!json_parse(a, slice_of(metadata_of(record)), &metadata, NULL);
    copies = copies_of(metadata, a);
    json_begin_object(w);
    json_add_string(w, CHROMA_JSON, metadata_of(record));
    json_add_raw(w, CHROMA_LENGTH, remote_double_text(length, (char[40]){ 0 }));
    for (struct json_iter it = json_iter(metadata); json_next(&it, &key, &value);)
        if (chroma_holds(key, value))
            json_add_value(w, arena_slicedup(a, key), value);
    for (struct json_iter it = json_iter(held); json_next(&it, &key, &value);)
        if (chroma_holds(key, value) && !bsearch(&key, copies.keys, copies.n, sizeof(key), by_bytes))
            json_add_null(w, arena_slicedup(a, key));
    json_end(w);
}

static void write_ids(struct json_writer *w, const struct vector_record *items, size_t n)
{
    json_begin_array_as(w, "ids");
    for (size_t i = 0; i < n; i++)
        json_add_string(w, NULL, items[i].id);
    json_end(w);
}

/* The items are in the order of their ids; ret gets one value for each item, absent for new items. */
static void sort_held(const struct vector_record *items, size_t n, struct json_value reply, struct json_value *ret)
{
    struct json_iter metadatas = json_iter(json_get(reply, "metadatas"));
    struct json_value id, metadata;

    for (struct json_iter it = json_iter(json_get(reply, "ids"));
         json_next(&it, NULL, &id) && json_next(&metadatas, NULL, &metadata);) {
        size_t from = 0, to = n;

        while (from < to) { /* finds the first id that is not less */
            size_t middle = from + (to - from) / 2;

            if (strcmp(items[middle].id, json_cstr(id) ? json_cstr(id) : "") < 0)
                from = middle + 1;
            else
                to = middle;
        }
        if (from < n && json_cstr(id) && strcmp(items[from].id, json_cstr(id)) == 0)
            ret[from] = metadata;
    }
}

static int read_held(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                     const struct vector_record *items, size_t n, struct json_value *ret, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += REMOTE_ROWS_A_READ) {
        size_t n_here = MIN(n - i, (size_t)REMOTE_ROWS_A_READ);
        struct remote_reply reply = { 0 };
        struct json_writer w;
        struct buf body;

        chroma_begin(&w, &body);
        write_ids(&w, items + i, n_here);
        json_add_raw(&w, "include", "[\"metadatas\"]");
        json_end(&w);
        r = chroma_send(op, a, chroma_path(op, a, col, "get"), &body, &reply, e);
        if (r == 0)
            sort_held(items + i, n_here, reply.body, ret + i);
    }
    return r;
}

static void write_records(struct json_writer *w, const struct vector_record *items, size_t n, size_t n_dimensions,
                          const struct json_value *held, struct arena *a)
{
    float *unit = arena_array(a, n_dimensions, sizeof(*unit));
    double *lengths = arena_array(a, n, sizeof(*lengths));

    write_ids(w, items, n);
    json_begin_array_as(w, "embeddings");
    for (size_t i = 0; i < n; i++) {
        lengths[i] = remote_unit(items[i].vector, n_dimensions, unit);
        json_add_floats(w, NULL, unit, n_dimensions);
    }
    json_end(w);
    json_begin_array_as(w, "metadatas");
    for (size_t i = 0; i < n; i++)
        write_metadata(w, &items[i], lengths[i], held[i], a);
    json_end(w);
}

static int put_records(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_record *items, size_t n, size_t n_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value *held = arena_array(a, n, sizeof(*held));
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r = read_held(op, a, col, items, n, held, e);

    if (r < 0)
        return r;
    chroma_begin(&w, &body);
    write_records(&w, items, n, n_dimensions, held, a);
    json_end(&w);
    return chroma_send(op, a, chroma_path(op, a, col, "upsert"), &body, &reply, e);
}

/* Finds or makes the collection for these vectors. An empty collection with other dimensions is made anew. */
static int ready_collection(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                            struct remote_collection *col, struct err *e)
{
    int64_t n = 0;
    int r = chroma_find(op, a, ns, col, e);

    if (r < 0 || (col->is_there && (col->n_dimensions == 0 || col->n_dimensions == (int64_t)n_dimensions)))
        return r;
    if (col->is_there) {
        r = chroma_count(op, a, col, &n, e);
        if (r == 0 && n > 0)
            r = vector_check_dimensions(ns, col->n_dimensions, n_dimensions, e);
        if (r == 0)
            r = chroma_drop(op, a, col, e);
    }
    return r < 0 ? r : chroma_make(op, a, ns, col, e);
}

/* The number of dimensions that Chroma's refusal names; the refusal may come before the collection reports the number.
 * 0: Chroma refused for another reason. */
static int64_t dimensions_of_refusal(const struct err *e)
{
    static const char words[] = "expecting embedding with dimension of ";
    const char *place = e ? strstr(e->text, words) : NULL;

    return place ? strtoll(place + strlen(words), NULL, 10) : 0;
}

/* Another client's first upsert may have set the dimensions in the meantime. */
static int err_refusal(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions, int result,
                       struct err *e)
{
    struct remote_collection col = { .n_dimensions = dimensions_of_refusal(e) };

    if (col.n_dimensions == 0 && chroma_find(op, a, ns, &col, NULL) < 0)
        return result;
    if (col.n_dimensions > 0 && col.n_dimensions != (int64_t)n_dimensions)
        return vector_check_dimensions(ns, col.n_dimensions, n_dimensions, e);
    return result;
}

static int put_all(struct chroma *c, const struct remote_op *op, struct arena *a, const char *ns,
                   const struct vector_batch *b, struct err *e)
{
    const struct vector_record *items = NULL;
    struct remote_collection col = { 0 };
    size_t n = remote_last_of_each(a, b, &items), n_here;
    int r = ready_collection(op, a, ns, b->n_dimensions, &col, e);

    if (r == 0 && atomic_load(&c->n_batch) == 0)
        r = chroma_request_batch(c, op, a, e);
    for (size_t i = 0; r == 0 && i < n; i += n_here) {
        n_here = remote_chunk(items + i, n - i, b->n_dimensions, (size_t)atomic_load(&c->n_batch), REMOTE_BODY_BYTES);
        r = put_records(op, &col, items + i, n_here, b->n_dimensions, e);
        if (r < 0 && i == 0)
            return err_refusal(op, a, ns, b->n_dimensions, r, e);
        if (r < 0)
            return err_prefix(e, r, "%zu of %zu vectors were stored before this", i, n);
    }
    return r;
}

int chroma_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_batch(b, e);
    return r < 0 || b->n == 0 ? r : put_all((struct chroma *)v, &op, a, ns, b, e);
}
