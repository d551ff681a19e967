/* Reading from Qdrant: the nearest, pages, and ids that match.
 *
 * Searches go to /points/query, and to /points/search where a server (before 1.10) does not know it. */
#include "vector/qdrant.h"

#include <math.h>

#define PAYLOAD_OF_IDS "[\"" QDRANT_ID "\"]"

/* ---- query ---- */

static int read_hit(struct arena *a, struct json_value point, struct vector_hit *ret, struct err *e)
{
    struct json_value payload = json_get(point, "payload"), metadata = json_get(payload, QDRANT_METADATA), unit = json_get(point, "vector");

    *ret = (struct vector_hit){
        .id = json_cstr(json_get(payload, QDRANT_ID)),
        .score = fmax(-1, fmin(1, json_double(json_get(point, "score")))),
        .metadata = json_type(metadata) == JSON_OBJECT ? json_to_str(a, metadata) : "{}",
    };
    if (!ret->id)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "Qdrant answered with a point that is not of this service: its payload has no " QDRANT_ID);
    return json_type(unit) == JSON_ARRAY ? remote_read_vector(a, unit, json_double(json_get(payload, QDRANT_LENGTH)), &ret->vector, e) : 0;
}

static int read_hits(struct arena *a, struct json_value points, struct vector_hits *ret, struct err *e)
{
    struct vector_hit *hits = arena_array(a, json_length(points) + 1, sizeof(*hits));
    struct json_value point;
    size_t n = 0;
    int r = 0;

    for (struct json_iter it = json_iter(points); r == 0 && json_next(&it, NULL, &point);)
        r = read_hit(a, point, &hits[n++], e);
    if (r == 0)
        *ret = (struct vector_hits){ hits, n };
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

static void write_search(struct qdrant_body *body, const struct remote_search *s, const char *vector_name, int64_t n, struct arena *a)
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
static int ask_older(const struct remote_store *s, const struct remote_collection *col, const struct remote_search *search, int64_t n, struct arena *a,
                     struct json_value *ret, struct err *e)
{
    struct qdrant_body body;

    write_search(&body, search, "vector", n, a);
    return qdrant_send(s, a, "POST", qdrant_path(a, col, "/points/search"), &body, ret, e);
}

int qdrant_nearest(const struct remote_store *s, const struct remote_collection *col, const struct remote_search *search, int64_t n, struct arena *a,
                   struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_value points;
    struct qdrant_body body;
    int r;

    write_search(&body, search, "query", n, a);
    json_end(&body.w);
    r = remote_call(&s->remote, a, "POST", qdrant_path(a, col, "/points/query"), &body.text, &reply, e);
    buf_clear(&body.text);
    points = json_get(json_get(reply.body, "result"), "points");
    if (r == 0 && reply.status == 404)
        r = ask_older(s, col, search, n, a, &points, e);
    else if (r == 0 && reply.status >= 300)
        r = remote_refused(&s->remote, &reply, e);
    return r < 0 ? r : read_hits(a, points, ret, e);
}

/* ---- reading by ids and page by page ---- */

int qdrant_read(const struct remote_store *s, const struct remote_collection *col, const char *const *ids, size_t n, enum remote_parts parts, struct arena *a,
                struct vector_hits *ret, struct err *e)
{
    struct json_value result = { 0 };
    struct qdrant_body body;
    int r;

    qdrant_begin(&body);
    qdrant_add_uuids(&body.w, "ids", ids, n);
    json_add_raw(&body.w, "with_payload", parts == REMOTE_IDS ? PAYLOAD_OF_IDS : "true");
    json_add_bool(&body.w, "with_vector", parts == REMOTE_VECTORS);
    r = qdrant_send(s, a, "POST", qdrant_path(a, col, "/points"), &body, &result, e);
    return r < 0 ? r : read_hits(a, result, ret, e);
}

/* after: where the page before ended; absent at first and at the end. */
static int read_page(const struct remote_store *s, const struct remote_collection *col, const struct vector_filter *filter, struct json_value *after,
                     struct arena *a, struct vector_hits *ret, struct err *e)
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
    r = qdrant_send(s, a, "POST", qdrant_path(a, col, "/points/scroll"), &body, &result, e);
    *after = json_get(result, "next_page_offset");
    return r < 0 ? r : read_hits(a, json_get(result, "points"), ret, e);
}

int qdrant_collect_ids(const struct remote_store *s, const struct remote_collection *col, const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    AUTO(arena_freep) struct arena *before = NULL;      /* holds the place where the last page ended */
    struct json_value after = { 0 };
    int r = 0;

    do {
        struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = read_page(s, col, filter, &after, scratch, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, scratch, e);
        arena_free(before);
        before = scratch;
    } while (r == 0 && !json_is_absent(after));
    return r;
}
