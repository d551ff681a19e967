/* Reading from Qdrant: the nearest, pages, and ids that match.
 *
 * Searches go to /points/query, and to /points/search where a server (before 1.10) does not know it. */
#include "vector/qdrant.h"

#include "vector/vector_check.h"

#include <math.h>

/* ---- query ---- */

struct search {
    const struct qdrant *q;
    const struct qdrant_collection *col;
    const struct vector_query *query;
    const struct vector_filter *filter;
    struct remote_ids among;            /* n 0: all that match as far as Qdrant can tell */
};

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

static void write_search(struct qdrant_body *body, const struct search *s, const char *vector_name, int64_t n, struct arena *a)
{
    float *unit = arena_array(a, s->query->n_dimensions, sizeof(*unit));

    remote_unit(s->query->vector, s->query->n_dimensions, unit);
    qdrant_begin(body);
    json_add_floats(&body->w, vector_name, unit, s->query->n_dimensions);
    if (s->among.n > 0)
        add_among(&body->w, &s->among);
    else
        qdrant_add_filter(&body->w, s->filter);
    json_add_int(&body->w, "limit", n);
    json_add_bool(&body->w, "with_payload", true);
    json_add_bool(&body->w, "with_vector", s->query->with_vectors);
}

/* The search of servers before 1.10. */
static int ask_older(const struct search *s, int64_t n, struct arena *a, struct json_value *ret, struct err *e)
{
    struct qdrant_body body;

    write_search(&body, s, "vector", n, a);
    return qdrant_send(s->q, a, "POST", qdrant_path(a, s->col, "/points/search"), &body, ret, e);
}

static int ask_nearest(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct search *s = arg;
    struct remote_reply reply = { 0 };
    struct json_value points;
    struct qdrant_body body;
    int r;

    write_search(&body, s, "query", n, a);
    json_end(&body.w);
    r = remote_call(&s->q->remote, a, "POST", qdrant_path(a, s->col, "/points/query"), &body.text, &reply, e);
    buf_clear(&body.text);
    points = json_get(json_get(reply.body, "result"), "points");
    if (r == 0 && reply.status == 404)
        r = ask_older(s, n, a, &points, e);
    else if (r == 0 && reply.status >= 300)
        r = remote_refused(&s->q->remote, &reply, e);
    return r < 0 ? r : read_hits(a, points, ret, e);
}

static bool is_told(const struct vector_filter *f)
{
    struct qdrant_body scratch;
    bool is_whole;

    qdrant_begin(&scratch);
    is_whole = qdrant_add_filter(&scratch.w, f);
    buf_clear(&scratch.text);
    return is_whole;
}

static int check_query(const char *ns, const struct vector_query *q, struct arena *a, struct vector_filter *ret, struct err *e)
{
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_query(q, e);
    if (r == 0)
        r = vector_refuse_text(q, e);
    return r < 0 ? r : vector_filter_parse(a, q->filter, ret, e);
}

/* ---- reading by ids and page by page ---- */

static int read_points(const struct qdrant *q, const struct qdrant_collection *col, const char *const *ids, size_t n, const char *payload, bool with_vectors,
                       struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct json_value result = { 0 };
    struct qdrant_body body;
    int r;

    qdrant_begin(&body);
    qdrant_add_uuids(&body.w, "ids", ids, n);
    json_add_raw(&body.w, "with_payload", payload);
    json_add_bool(&body.w, "with_vector", with_vectors);
    r = qdrant_send(q, a, "POST", qdrant_path(a, col, "/points"), &body, &result, e);
    return r < 0 ? r : read_hits(a, result, ret, e);
}

/* after: where the page before ended; absent at first and at the end. */
static int read_page(const struct qdrant *q, const struct qdrant_collection *col, const struct vector_filter *filter, struct json_value *after,
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
        qdrant_add_filter(&body.w, filter);
    json_add_raw(&body.w, "with_payload", filter ? "true" : "[\"" QDRANT_ID "\"]");
    json_add_bool(&body.w, "with_vector", false);
    r = qdrant_send(q, a, "POST", qdrant_path(a, col, "/points/scroll"), &body, &result, e);
    *after = json_get(result, "next_page_offset");
    return r < 0 ? r : read_hits(a, json_get(result, "points"), ret, e);
}

/* The ids of all, or of those that match the filter. */
int qdrant_collect_ids(const struct qdrant *q, const struct qdrant_collection *col, const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    AUTO(arena_freep) struct arena *before = NULL;      /* holds the place where the last page ended */
    struct json_value after = { 0 };
    int r = 0;

    do {
        struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = read_page(q, col, filter, &after, scratch, &hits, e);
        for (size_t i = 0; r == 0 && i < hits.n; i++)
            if (!filter || remote_is_match(filter, hits.items[i].metadata, scratch))
                remote_ids_add(ids, hits.items[i].id);
        arena_free(before);
        before = scratch;
    } while (r == 0 && !json_is_absent(after));
    return r;
}

int qdrant_list(struct vectors *v, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                       struct err *e)
{
    struct qdrant_collection col = { 0 };
    struct remote_ids ids = { .arena = a };
    struct vector_hits hits = { 0 };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(limit, offset, e);
    if (r == 0)
        r = qdrant_find((struct qdrant *)v, a, remote_collection_name(a, ns), &col, e);
    if (r == 0 && col.is_there)
        r = qdrant_collect_ids((struct qdrant *)v, &col, NULL, &ids, e);
    if (r == 0 && (size_t)offset < ids.n) {
        remote_ids_sort(&ids);
        r = read_points((struct qdrant *)v, &col, ids.items + offset, MIN(ids.n - (size_t)offset, (size_t)limit), "true", with_vectors, a, &hits, e);
    }
    if (r < 0)
        return r;
    remote_hits_sort(&hits);
    *ret = hits;
    return 0;
}

/* Which of the ids are there. */
int qdrant_find_ids(const struct qdrant *q, const struct qdrant_collection *col, const struct vector_removal *what, struct remote_ids *ids, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < what->n_ids; i += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = read_points(q, col, what->ids + i, MIN(what->n_ids - i, (size_t)REMOTE_ROWS_A_READ), "[\"" QDRANT_ID "\"]", false, scratch, &hits, e);
        for (size_t k = 0; k < hits.n; k++)
            remote_ids_add(ids, hits.items[k].id);
    }
    remote_ids_unique(ids);
    return r;
}

/* ---- query, once ids can be collected ---- */

/* A filter Qdrant cannot decide, and few match: which ones is read here, and Qdrant asked for the nearest of these. */
static int find_among_matches(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = qdrant_collect_ids(s->q, s->col, s->filter, &s->among, e);

    if (r < 0 || s->among.n > REMOTE_CANDIDATES)
        return r < 0 ? r : remote_undecided(e);
    if (s->among.n == 0)
        *ret = (struct vector_hits){ 0 };
    return s->among.n == 0 ? 0 : remote_nearest(s->query, s->filter, true, ask_nearest, s, a, ret, e);
}

static int find_nearest(struct search *s, int64_t n_rows, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = remote_nearest(s->query, s->filter, is_told(s->filter), ask_nearest, s, a, ret, e);

    if (r != -ERANGE)
        return r;
    return n_rows > REMOTE_SCAN_ROWS ? remote_undecided(e) : find_among_matches(s, a, ret, e);
}

int qdrant_query(struct vectors *v, const char *ns, const struct vector_query *query, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct vector_filter filter = { 0 };
    struct qdrant_collection col = { 0 };
    struct search s = { (struct qdrant *)v, &col, query, &filter, { .arena = a } };
    int64_t n = 0;
    int r = check_query(ns, query, a, &filter, e);

    if (r == 0)
        r = qdrant_find(s.q, a, remote_collection_name(a, ns), &col, e);
    if (r == 0)
        r = qdrant_count_points(s.q, a, &col, &n, e);
    if (r == 0 && n > 0)
        r = vector_check_dimensions(ns, col.n_dimensions, query->n_dimensions, e);
    if (r < 0)
        return r;
    if (n == 0)
        *ret = (struct vector_hits){ 0 };
    return n == 0 ? 0 : find_nearest(&s, n, a, ret, e);
}
