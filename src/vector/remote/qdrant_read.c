/* Reading from Qdrant: nearest vectors, pages, and ids that match.
 *
 * Searches go to /points/query, or to /points/search of servers before 1.10, which do not know /points/query. */
#include "vector/remote/qdrant.h"

#include "base/uuid.h"

#define PAYLOAD_OF_IDS "[\"" QDRANT_ID "\"]"

/* ---- query ---- */

/* n_most: the number of requested points. n_dimensions 0: vectors are not read. */
static int read_hits(const struct remote_op *op, struct arena *a, struct json_value points, size_t n_most,
                     size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct vector_hits hits = { 0 };
    struct json_iter it = json_iter(points);
    struct json_value point;
    int r = remote_read_list(op, "points", points, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n && json_next(&it, NULL, &point); i++) {
        struct json_value payload = json_get(point, "payload");
        const struct remote_raw raw = {
            .id = json_get(payload, QDRANT_ID),
            .id_name = QDRANT_ID,
            .score = json_get(point, "score"),
            .metadata = json_get(payload, QDRANT_METADATA),
            .unit = json_get(point, "vector"),
            .length = json_get(payload, QDRANT_LENGTH),
        };

        r = remote_read_record(op, a, &raw, n_dimensions, &hits.items[i], e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

static void add_among(struct json_writer *w, const struct remote_ids *ids)
{
    json_begin_object_as(w, "filter");
    json_begin_array_as(w, "must");
    json_begin_object(w);
    qdrant_add_uuids(w, "has_id", ids->items, ids->n);
    json_end(w);
    json_end(w);
    json_end(w);
}

static void write_search(struct qdrant_body *body, const struct remote_search *s, const char *vector_name, int64_t n,
                         struct arena *a)
{
    float *unit = arena_array(a, s->query->n_dimensions, sizeof(*unit));

    remote_unit(s->query->vector, s->query->n_dimensions, unit);
    qdrant_begin(body);
    json_add_floats(&body->w, vector_name, unit, s->query->n_dimensions);
    if (s->among.n > 0)
        add_among(&body->w, &s->among);
    else
        remote_add_filter(&qdrant_dialect, &body->w, s->filter);
    json_add_int(&body->w, "limit", n);
    json_add_bool(&body->w, "with_payload", true);
    json_add_bool(&body->w, "with_vector", s->query->with_vectors);
}

/* The search of servers before 1.10. */
static int request_older(const struct remote_op *op, const struct remote_collection *col,
                         const struct remote_search *search, int64_t n, struct arena *a, struct json_value *ret,
                         struct err *e)
{
    struct qdrant_body body;

    write_search(&body, search, "vector", n, a);
    return qdrant_send(op, a, "POST", qdrant_path(a, col, "/points/search"), &body, ret, e);
}

int qdrant_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search,
                   int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_value points;
    struct qdrant_body body;
    int r;

    write_search(&body, search, "query", n, a);
    json_end(&body.w);
    r = remote_call(op, a, "POST", qdrant_path(a, col, "/points/query"), &body.text, &reply, e);
    buf_clear(&body.text);
    points = json_get(json_get(reply.body, "result"), "points");
    if (r == 0 && reply.status == 404)
        r = request_older(op, col, search, n, a, &points, e);
    else if (r == 0 && reply.status >= 300)
        r = remote_refused(op, &reply, e);
    return r < 0 ? r
                 : read_hits(op, a, points, (size_t)n, search->query->with_vectors ? search->query->n_dimensions : 0,
                             ret, e);
}

/* ---- reading by ids and page by page ---- */

int qdrant_read(const struct remote_op *op, const struct remote_collection *col,
                const struct remote_read_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct json_value result = { 0 };
    struct qdrant_body body;
    int r;

    qdrant_begin(&body);
    qdrant_add_uuids(&body.w, "ids", request->ids, request->n);
    json_add_raw(&body.w, "with_payload", request->parts == REMOTE_IDS ? PAYLOAD_OF_IDS : "true");
    json_add_bool(&body.w, "with_vector", request->parts == REMOTE_VECTORS);
    r = qdrant_send(op, a, "POST", qdrant_path(a, col, "/points"), &body, &result, e);
    return r < 0 ? r
                 : read_hits(op, a, result, request->n,
                             request->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0, ret, e);
}

/* Where the next page begins; absent: there is no next page. An empty page, or a page that leads to itself, is a fault,
 * as reading would never end. */
static int read_next(const struct remote_op *op, struct json_value given, struct json_value before, size_t n_points,
                     struct json_value *ret, struct err *e)
{
    enum json_type type = json_type(given);
    bool is_id = type == JSON_INT || (type == JSON_STRING && json_string(given).n < UUID_SIZE);

    *ret = given;
    if (json_is_absent(given))
        return 0;
    if (!is_id || n_points == 0)
        return remote_fault(op, e, "a page has no point, or a next_page_offset that is no id");
    if (type == json_type(before) && slice_eq(json_string(given), json_string(before)) &&
        json_int(given) == json_int(before))
        return remote_fault(op, e, "a page leads to itself");
    return 0;
}

/* after: where the page begins, then where the next page begins; absent before the first page and after the last. */
static int read_page(const struct remote_op *op, const struct remote_collection *col,
                     const struct vector_filter *filter, struct json_value *after, struct arena *a,
                     struct vector_hits *ret, struct err *e)
{
    struct json_value result = { 0 };
    struct qdrant_body body;
    int r;

    qdrant_begin(&body);
    json_add_int(&body.w, "limit", REMOTE_ROWS_A_READ);
    if (!json_is_absent(*after))
        json_add_value(&body.w, "offset", *after);
    if (filter)
        remote_add_filter(&qdrant_dialect, &body.w, filter);
    json_add_raw(&body.w, "with_payload", filter ? "true" : PAYLOAD_OF_IDS);
    json_add_bool(&body.w, "with_vector", false);
    r = qdrant_send(op, a, "POST", qdrant_path(a, col, "/points/scroll"), &body, &result, e);
    if (r == 0)
        r = read_hits(op, a, json_get(result, "points"), REMOTE_ROWS_A_READ, 0, ret, e);
    return r < 0 ? r : read_next(op, json_get(result, "next_page_offset"), *after, ret->n, after, e);
}

int qdrant_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    AUTO(arena_freep) struct arena *before = NULL; /* holds the value of `after` */
    struct json_value after = { 0 };
    size_t n_pages = 0;
    int r;

    do {
        struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = read_page(op, col, filter, &after, scratch, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, scratch, e);
        arena_free(before);
        before = scratch;
    } while (r == 0 && !json_is_absent(after));
    return r;
}
