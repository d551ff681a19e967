/* Vectors in an index of Pinecone: one namespace of Pinecone for each namespace of Hearth (docs/vectors.md). The person
 * makes the index, with a number of dimensions and the metric cosine or dotproduct; queries find stored vectors some
 * seconds later. Pinecone stores no zero vectors. */
#include "vector/remote/pinecone.h"

#include "base/percent.h"
#include "vector/remote/remote_record.h"
#include "vector/vector_check.h"

enum {
    VECTORS_A_PUT = 1000,
    PUT_BYTES = 1500000, /* the limit is 2 MB */
    IDS_A_REMOVAL = 1000,
    IDS_A_PAGE = 100,   /* of a list, and of a fetch, whose address contains the ids */
    NEAREST_MAX = 1000, /* with metadata and vectors */
    IDS_AMONG = 1000,
    TOKEN_CHARS = 2048,
};

/* ---- the index ---- */

static int request_stats(const struct remote_op *op, struct arena *a, struct json_value *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    remote_begin(&b);
    r = remote_send(op, a, "POST", "describe_index_stats", &b, &reply, e);
    if (r == 0)
        *ret = reply.body;
    return r;
}

static int read_index(const struct remote_op *op, struct json_value stats, int64_t *ret_dimensions, struct err *e)
{
    struct json_value metric = json_get(stats, "metric");

    if (json_type(json_get(stats, "namespaces")) != JSON_OBJECT && !json_is_absent(json_get(stats, "namespaces")))
        return remote_fault(op, e, "`namespaces` must be an object");
    if (!json_is_absent(metric) && !slice_eq_str(json_string(metric), "cosine") &&
        !slice_eq_str(json_string(metric), "dotproduct"))
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "Pinecone: the index must have the metric cosine or dotproduct");
    return remote_read_dimensions(op, json_get(stats, "dimension"), ret_dimensions, e);
}

static int pinecone_check(const struct remote_op *op, struct arena *a, struct err *e)
{
    struct json_value stats = { 0 };
    int64_t n_dimensions;
    int r = request_stats(op, a, &stats, e);

    return r < 0 ? r : read_index(op, stats, &n_dimensions, e);
}

/* A namespace counts as existing: whether it exists is unknown, as the counts are some seconds old. */
static int pinecone_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                         struct err *e)
{
    struct remote_collection col = { .name = remote_collection_name(a, ns), .is_there = true };
    struct json_value stats = { 0 };
    int r = request_stats(op, a, &stats, e);

    if (r == 0)
        r = read_index(op, stats, &col.n_dimensions, e);
    if (r == 0)
        *ret = col;
    return r;
}

static int pinecone_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                          int64_t *ret, struct err *e)
{
    struct json_value stats = { 0 }, space;
    int r = request_stats(op, a, &stats, e);

    if (r < 0)
        return r;
    space = json_get(json_get(stats, "namespaces"), col->name);
    *ret = 0;
    return json_is_absent(space) ? 0 : remote_read_count(op, json_get(space, "vectorCount"), ret, e);
}

/* At least 1, so that a query also searches a namespace whose first vectors were stored a moment ago. */
static int pinecone_probe(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                          int64_t *ret, struct err *e)
{
    int r = pinecone_count(op, a, col, ret, e);

    *ret = MAX(*ret, (int64_t)1);
    return r;
}

/* ---- changes ---- */

static int delete_by(const struct remote_op *op, const struct remote_collection *col, struct remote_body *b,
                     struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_reply reply = { 0 };
    int r;

    json_add_string(&b->w, "namespace", col->name);
    json_end(&b->w);
    r = remote_call(op, a, "POST", "vectors/delete", &b->text, &reply, e);
    buf_clear(&b->text);
    return r == 0 && reply.status >= 300 && reply.status != 404 ? remote_refused(op, &reply, e)
                                                                : r; /* 404: the namespace is empty */
}

static int pinecone_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                         struct err *e)
{
    struct remote_body b;

    remote_begin(&b);
    json_add_bool(&b.w, "deleteAll", true);
    return delete_by(op, col, &b, e);
}

static int pinecone_delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                               size_t n, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += IDS_A_REMOVAL) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct field_strings uuids = remote_uuids_of(a, ids + i, MIN(n - i, (size_t)IDS_A_REMOVAL));
        struct remote_body b;

        remote_begin(&b);
        json_add_strings(&b.w, "ids", uuids.items, uuids.n);
        r = delete_by(op, col, &b, e);
    }
    return r;
}

static void write_vector(struct json_writer *w, const struct remote_put *put, const struct vector_record *record,
                         float *unit)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    double length = remote_unit(record->vector, put->n_dimensions, unit);
    const char *uuid = remote_uuids_of(a, &record->id, 1).items[0];

    json_begin_object(w);
    json_add_string(w, "id", uuid);
    json_add_floats(w, "values", unit, put->n_dimensions);
    json_begin_object_as(w, "metadata");
    remote_add_members(w, put->ns, record, length, uuid);
    json_end(w);
    json_end(w);
}

static int pinecone_put(const struct remote_op *op, const struct remote_put *put, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, put->n_dimensions, sizeof(*unit));
    struct remote_reply reply = { 0 };
    struct remote_body b;

    remote_begin(&b);
    json_begin_array_as(&b.w, "vectors");
    for (size_t i = 0; i < put->n; i++)
        write_vector(&b.w, put, &put->items[i], unit);
    json_end(&b.w);
    json_add_string(&b.w, "namespace", put->collection->name);
    return remote_send(op, a, "POST", "vectors/upsert", &b, &reply, e);
}

/* ---- query ---- */

static void add_any(struct json_writer *w, const struct field_strings *tokens)
{
    json_begin_object(w);
    json_begin_object_as(w, REMOTE_TOKENS);
    json_add_strings(w, "$in", tokens->items, tokens->n);
    json_end(w);
    json_end(w);
}

static void add_condition(struct json_writer *w, const struct vector_condition *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct field_strings tokens = remote_tokens_of(a, c);

    add_any(w, &tokens);
}

static const struct remote_dialect dialect = {
    .member = "filter", .all = "$and", .can_express = remote_has_tokens, .add = add_condition
};

static void add_among(struct json_writer *w, struct arena *a, const struct remote_ids *ids)
{
    struct field_strings uuids = remote_uuids_of(a, ids->items, ids->n);

    json_begin_object_as(w, "filter");
    json_begin_array_as(w, "$and");
    add_any(w, &uuids);
    json_end(w);
    json_end(w);
}

static int read_vector(const struct remote_op *op, struct arena *a, struct json_value vector, size_t n_dimensions,
                       struct vector_hit *ret, struct err *e)
{
    const struct remote_raw raw = { .score = json_get(vector, "score"), .unit = json_get(vector, "values") };

    return remote_read_members(op, a, json_get(vector, "metadata"), &raw, n_dimensions, ret, e);
}

static int read_matches(const struct remote_op *op, struct arena *a, struct json_value matches, size_t n_most,
                        size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct vector_hits hits = { 0 };
    struct json_iter it = json_iter(matches);
    struct json_value match;
    int r = remote_read_list(op, "matches", matches, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n && json_next(&it, NULL, &match); i++)
        r = read_vector(op, a, match, n_dimensions, &hits.items[i], e);
    if (r == 0)
        *ret = hits;
    return r;
}

static int pinecone_nearest(const struct remote_op *op, const struct remote_collection *col,
                            const struct remote_search *s, int64_t n, struct arena *a, struct vector_hits *ret,
                            struct err *e)
{
    const struct vector_query *q = s->query;
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    remote_begin(&b);
    json_add_string(&b.w, "namespace", col->name);
    json_add_floats(&b.w, "vector", remote_direction(a, q->vector, q->n_dimensions), q->n_dimensions);
    json_add_int(&b.w, "topK", n);
    if (s->among.n > 0)
        add_among(&b.w, a, &s->among);
    else
        remote_add_filter(&dialect, &b.w, s->filter);
    json_add_bool(&b.w, "includeValues", q->with_vectors);
    json_add_bool(&b.w, "includeMetadata", true);
    r = remote_send(op, a, "POST", "query", &b, &reply, e);
    return r < 0 ? r
                 : read_matches(op, a, json_get(reply.body, "matches"), (size_t)n,
                                q->with_vectors ? q->n_dimensions : 0, ret, e);
}

/* ---- reading by ids and page by page ---- */

static const char *fetch_path(struct arena *a, const struct remote_collection *col, const char *const *uuids, size_t n)
{
    struct buf path;

    buf_init(&path, LIMIT_BODY_DEFAULT);
    buf_printf(&path, "vectors/fetch?namespace=%s", col->name);
    for (size_t i = 0; i < n; i++)
        buf_printf(&path, "&ids=%s", uuids[i]);
    return buf_to_arena(&path, a);
}

struct fetch_request {
    const char *const *uuids;
    size_t n;            /* of uuids; at most IDS_A_PAGE */
    size_t n_dimensions; /* 0: without vectors */
};

/* ret->items has room for request->n hits. */
static int fetch(const struct remote_op *op, const struct remote_collection *col, const struct fetch_request *request,
                 struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_value vectors, vector;
    int r = remote_request_records(op, a, fetch_path(a, col, request->uuids, request->n), &reply, e);

    vectors = json_get(reply.body, "vectors");
    if (r == 0 && (json_type(vectors) != JSON_OBJECT || json_length(vectors) > request->n))
        r = remote_fault(op, e, "`vectors` must be an object of at most the %zu that were asked for", request->n);
    for (struct json_iter it = json_iter(vectors); r == 0 && json_next(&it, NULL, &vector);)
        r = read_vector(op, a, vector, request->n_dimensions, &ret->items[ret->n++], e);
    return r;
}

static int pinecone_read(const struct remote_op *op, const struct remote_collection *col,
                         const struct remote_read_request *request, struct arena *a, struct vector_hits *ret,
                         struct err *e)
{
    struct field_strings uuids = remote_uuids_of(a, request->ids, request->n);
    size_t n_dimensions = request->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0;
    struct vector_hits hits = { arena_array(a, request->n + 1, sizeof(*hits.items)), 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < request->n; i += IDS_A_PAGE) {
        const struct fetch_request page = { .uuids = uuids.items + i,
                                            .n = MIN(request->n - i, (size_t)IDS_A_PAGE),
                                            .n_dimensions = n_dimensions };

        r = fetch(op, col, &page, a, &hits, e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

struct page {
    const char *uuids[IDS_A_PAGE];
    size_t n;
    char next[TOKEN_CHARS];
};

static int read_page(const struct remote_op *op, struct json_value body, struct page *p, struct err *e)
{
    const char *next = json_cstr(json_get(json_get(body, "pagination"), "next"));
    struct json_value list = json_get(body, "vectors"), item;
    int r = json_is_absent(list) ? 0 : remote_read_list(op, "vectors", list, IDS_A_PAGE, &p->n, e);
    size_t i = 0;

    for (struct json_iter it = json_iter(list); r == 0 && json_next(&it, NULL, &item); i++) {
        p->uuids[i] = json_cstr(json_get(item, "id"));
        if (!remote_is_uuid(p->uuids[i]))
            r = remote_fault(op, e, "the namespace has ids that are not of this service");
    }
    if (r == 0 && next && (strlen(next) >= TOKEN_CHARS || p->n == 0 || strcmp(next, p->next) == 0))
        r = remote_fault(op, e, "a page is empty, or leads to itself, or has a token of more than %d bytes",
                         TOKEN_CHARS - 1);
    if (r == 0)
        snprintf(p->next, sizeof(p->next), "%s", next ? next : "");
    return r;
}

static const char *list_path(struct arena *a, const struct remote_collection *col, const char *token)
{
    struct buf path;

    buf_init(&path, LIMIT_BODY_DEFAULT);
    buf_printf(&path, "vectors/list?namespace=%s&limit=%d", col->name, IDS_A_PAGE);
    if (*token) {
        buf_add_str(&path, "&paginationToken=");
        percent_encode(&path, slice_of(token));
    }
    return buf_to_arena(&path, a);
}

static int list_page(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct page *p,
                     struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "GET", list_path(a, col, p->next), NULL, &reply, e);

    p->n = 0;
    if (r == 0 && reply.status == 404) { /* no such namespace */
        p->next[0] = '\0';
        return 0;
    }
    if (r == 0 && reply.status >= 300)
        return remote_refused(op, &reply, e);
    return r < 0 ? r : read_page(op, reply.body, p, e);
}

/* A list has only the UUIDs: further requests fetch ids and metadata. */
static int pinecone_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                                const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    struct page p = { .n = 0 };
    size_t n_pages = 0;
    int r = 0;

    do {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { arena_array(a, IDS_A_PAGE + 1, sizeof(*hits.items)), 0 };

        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = list_page(op, a, col, &p, e);
        if (r == 0 && p.n > 0)
            r = fetch(op, col, &(struct fetch_request){ .uuids = p.uuids, .n = p.n }, a, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, a, e);
    } while (r == 0 && p.next[0]);
    return r;
}

/* ---- namespaces ---- */

/* Any vector of a namespace with a hashed name shows its real name. */
static int add_hashed(const struct remote_op *op, const char *name, const char *prefix, struct remote_ids *names,
                      struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_collection col = { .name = name };
    struct remote_reply reply = { 0 };
    struct json_value vector = { 0 };
    struct json_iter it;
    struct page p = { .n = 0 };
    const char *ns;
    int r = list_page(op, a, &col, &p, e);

    if (r < 0 || p.n == 0)
        return r;
    r = remote_request_records(op, a, fetch_path(a, &col, p.uuids, 1), &reply, e);
    it = json_iter(json_get(reply.body, "vectors"));
    if (r < 0 || !json_next(&it, NULL, &vector))
        return r;
    ns = json_cstr(json_get(json_get(vector, "metadata"), REMOTE_NAMESPACE));
    return vector_check_prefix(ns, prefix) ? remote_ids_add(names, ns, e) : 0;
}

static int pinecone_names(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value stats = { 0 }, spaces, space;
    struct slice key;
    int r = request_stats(op, a, &stats, e);

    spaces = json_get(stats, "namespaces");
    if (r == 0 && json_length(spaces) > LIMIT_VECTOR_NAMESPACES)
        r = remote_fault(op, e, "it has more than %d namespaces", LIMIT_VECTOR_NAMESPACES);
    for (struct json_iter it = json_iter(spaces); r == 0 && json_next(&it, &key, &space);) {
        const char *name = arena_slicedup(a, key);

        if (json_int(json_get(space, "vectorCount")) < 1)
            continue;
        if (remote_is_hashed_name(name, "hearth_"))
            r = add_hashed(op, name, prefix, names, e);
        else if (vector_check_prefix(name, prefix))
            r = remote_ids_add(names, name, e);
    }
    return r;
}

/* ---- opening ---- */

static const struct remote_peer peer = {
    .dialect = &dialect,
    .check = pinecone_check,
    .find = pinecone_find,
    .count = pinecone_count,
    .probe = pinecone_probe,
    .drop = pinecone_drop,
    .put = pinecone_put,
    .n_put = VECTORS_A_PUT,
    .put_bytes = PUT_BYTES,
    .delete_ids = pinecone_delete_ids,
    .nearest = pinecone_nearest,
    .n_nearest = NEAREST_MAX,
    .n_among = IDS_AMONG,
    .read = pinecone_read,
    .collect_ids = pinecone_collect_ids,
    .names = pinecone_names,
    .needs_direction = true,
};

const struct vectors_field pinecone_fields[] = {
    { "url", "Address of the index", VECTORS_STRING, "https://index-abc123.svc.region.pinecone.io", .is_required = true,
      .secrecy = VECTORS_ADDRESS },
    { "apiKey", "API key", VECTORS_PASSWORD, "pcsk_…", .is_required = true, .secrecy = VECTORS_SECRET },
    { NULL },
};

int pinecone_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e)
{
    static const struct vectors_ops ops = REMOTE_STORE_OPS("pinecone");
    static const struct remote_kind kind = {
        .ops = &ops,
        .peer = &peer,
        .label = "Pinecone",
        .header = "api-key",
        .key_field = "apiKey",
        .version = { "x-pinecone-api-version", "2025-01" },
    };

    return remote_store_open(&kind, config, guard, ret, e);
}
