/* Vectors in Astra DB, or another server of the Data API (docs/vectors.md). A database allows few collections: one
 * collection for each number of dimensions has documents that name their namespace, and one more collection lists the
 * namespaces. A refusal is a list `errors`, with status 200. Astra stores no zero vectors. */
#include "vector/remote/astra.h"

#include "vector/remote/remote_record.h"
#include "vector/vector_check.h"

enum { DOCUMENTS_A_PUT = 50, NEAREST_MAX = 1000 };

#define SPACES "hearth_namespaces"
#define VECTORS "hearth_vectors_"
#define DIMENSIONS "hearth_dimensions"
#define NO_COLLECTION "COLLECTION_NOT_EXIST"

static int astra_check(const struct remote_op *op, struct arena *a, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    astra_begin(&b, "findCollections");
    json_end(&b.w);
    r = astra_command(op, a, NULL, &b, &reply, e);
    if (r == 0 && json_type(json_get(json_get(reply.body, "status"), "collections")) != JSON_ARRAY)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "what answers there is no Data API: it has no list of collections");
    return r;
}

/* ---- namespaces ---- */

static const char *collection_of(struct arena *a, int64_t n_dimensions)
{
    return arena_printf(a, VECTORS "%lld", (long long)n_dimensions);
}

static int read_space(const struct remote_op *op, struct arena *a, struct json_value document, const char *ns,
                      struct remote_collection *ret, struct err *e)
{
    struct remote_collection col = { .id = ns };
    int r = 0;

    if (json_type(document) == JSON_OBJECT)
        r = remote_read_dimensions(op, json_get(document, DIMENSIONS), &col.n_dimensions, e);
    if (r < 0)
        return r;
    col.is_there = col.n_dimensions > 0;
    col.name = collection_of(a, col.n_dimensions);
    *ret = col;
    return 0;
}

/* The id of the returned collection is the namespace. */
static int astra_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                      struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_value document;
    struct remote_body b;
    int r;

    astra_begin(&b, "findOne");
    json_begin_object_as(&b.w, "filter");
    json_add_string(&b.w, "_id", astra_key(a, ns, ""));
    json_end(&b.w);
    json_end(&b.w);
    r = astra_call(op, a, SPACES, &b, &reply, e);
    if (r == 0 && json_length(json_get(reply.body, "errors")) > 0 && strcmp(astra_code(&reply), NO_COLLECTION) != 0)
        r = remote_refused(op, &reply, e);
    document = json_get(json_get(reply.body, "data"), "document");
    if (r == 0 && json_type(document) == JSON_ABSENT && strcmp(astra_code(&reply), NO_COLLECTION) != 0)
        r = remote_fault(op, e, "it has no `document`");
    return r < 0 ? r : read_space(op, a, document, ns, ret, e);
}

/* Succeeds if a collection of the right form exists already. */
static int make_collection(const struct remote_op *op, const char *name, int64_t n_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_reply reply = { 0 };
    struct remote_body b;

    astra_begin(&b, "createCollection");
    json_add_string(&b.w, "name", name);
    json_begin_object_as(&b.w, "options");
    if (n_dimensions > 0) {
        json_begin_object_as(&b.w, "vector");
        json_add_int(&b.w, "dimension", n_dimensions);
        json_add_string(&b.w, "metric", "cosine");
        json_end(&b.w);
        json_add_raw(&b.w, "indexing", "{\"allow\":[\"" REMOTE_NAMESPACE "\",\"" REMOTE_TOKENS "\"]}");
    }
    json_end(&b.w);
    json_end(&b.w);
    return astra_command(op, a, NULL, &b, &reply, e);
}

static int replace(const struct remote_op *op, const char *collection, const char *key, const char *document,
                   struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_reply reply = { 0 };
    struct remote_body b;

    astra_begin(&b, "findOneAndReplace");
    json_begin_object_as(&b.w, "filter");
    json_add_string(&b.w, "_id", key);
    json_end(&b.w);
    json_add_raw(&b.w, "replacement", document);
    json_add_raw(&b.w, "projection", "{\"_id\":1}");
    json_add_raw(&b.w, "options", "{\"upsert\":true}");
    json_end(&b.w);
    return astra_command(op, a, collection, &b, &reply, e);
}

static int note_space(const struct remote_op *op, struct arena *a, const char *ns, int64_t n_dimensions, struct err *e)
{
    struct remote_body b;
    int r;

    remote_begin(&b);
    json_add_string(&b.w, "_id", astra_key(a, ns, ""));
    json_add_string(&b.w, REMOTE_NAMESPACE, ns);
    json_add_int(&b.w, DIMENSIONS, n_dimensions);
    json_end(&b.w);
    r = replace(op, SPACES, astra_key(a, ns, ""), buf_str(&b.text), e);
    buf_clear(&b.text);
    return r;
}

static int astra_make(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                      struct remote_collection *ret, struct err *e)
{
    struct remote_collection col = { .name = collection_of(a, (int64_t)n_dimensions),
                                     .id = ns,
                                     .is_there = true,
                                     .n_dimensions = (int64_t)n_dimensions };
    int r = make_collection(op, SPACES, 0, e);

    if (r == 0)
        r = make_collection(op, col.name, col.n_dimensions, e);
    if (r == 0)
        r = note_space(op, a, ns, col.n_dimensions, e);
    if (r == 0)
        *ret = col;
    return r;
}

/* ---- changes ---- */

/* One request deletes at most 20 documents, so the request is repeated until none is left. ids NULL: deletes all
 * documents of the namespace. */
static int delete_many(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                       size_t n, struct err *e)
{
    bool has_more = true;
    size_t n_pages = 0;
    int r = 0;

    while (r == 0 && has_more) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct remote_reply reply = { 0 };
        struct remote_body b;

        astra_begin(&b, "deleteMany");
        astra_begin_filter(&b.w, col);
        if (ids)
            astra_add_keys(&b.w, a, col, ids, n);
        astra_end_filter(&b.w);
        json_end(&b.w);
        r = remote_count_page(op, &n_pages, e);
        if (r < 0)
            buf_clear(&b.text);
        else
            r = astra_command(op, a, col->name, &b, &reply, e);
        has_more = json_bool(json_get(json_get(reply.body, "status"), "moreData"));
    }
    return r;
}

static int astra_delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                            size_t n, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += ASTRA_IDS_A_FILTER)
        r = delete_many(op, col, ids + i, MIN(n - i, (size_t)ASTRA_IDS_A_FILTER), e);
    return r;
}

static int astra_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r = delete_many(op, col, NULL, 0, e);

    if (r < 0)
        return r;
    astra_begin(&b, "deleteOne");
    json_begin_object_as(&b.w, "filter");
    json_add_string(&b.w, "_id", astra_key(a, col->id, ""));
    json_end(&b.w);
    json_end(&b.w);
    return astra_command(op, a, SPACES, &b, &reply, e);
}

static char *document_of(struct arena *a, const struct remote_put *put, const struct vector_record *record, float *unit)
{
    double length = remote_unit(record->vector, put->n_dimensions, unit);
    struct remote_body b;

    remote_begin(&b);
    json_add_string(&b.w, "_id", astra_key(a, put->ns, record->id));
    json_add_floats(&b.w, "$vector", unit, put->n_dimensions);
    remote_add_members(&b.w, put->ns, record, length, NULL);
    json_end(&b.w);
    return buf_to_arena(&b.text, a);
}

/* Replaces, one by one, the documents that could not be inserted because they existed. */
static int replace_others(const struct remote_op *op, struct arena *a, const struct remote_put *put,
                          struct json_value responses, float *unit, struct err *e)
{
    struct json_iter it = json_iter(responses);
    struct json_value response;
    size_t n = 0;
    int r = remote_read_list(op, "documentResponses", responses, put->n, &n, e);

    if (r == 0 && n < put->n)
        return remote_fault(op, e, "`documentResponses` has %zu elements for %zu documents", n, put->n);
    for (size_t i = 0; r == 0 && i < n && json_next(&it, NULL, &response); i++) {
        const struct vector_record *record = &put->items[i];

        if (!slice_eq_str(json_string(json_get(response, "status")), "OK"))
            r = replace(op, put->collection->name, astra_key(a, put->ns, record->id), document_of(a, put, record, unit),
                        e);
    }
    return r;
}

static int astra_put(const struct remote_op *op, const struct remote_put *put, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, put->n_dimensions, sizeof(*unit));
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    astra_begin(&b, "insertMany");
    json_begin_array_as(&b.w, "documents");
    for (size_t i = 0; i < put->n; i++)
        json_add_raw(&b.w, NULL, document_of(a, put, &put->items[i], unit));
    json_end(&b.w);
    json_add_raw(&b.w, "options", "{\"ordered\":false,\"returnDocumentResponses\":true}");
    json_end(&b.w);
    r = astra_call(op, a, put->collection->name, &b, &reply, e);
    if (r == 0 && json_length(json_get(reply.body, "errors")) > 0 &&
        strcmp(astra_code(&reply), "DOCUMENT_ALREADY_EXISTS") != 0)
        return remote_refused(op, &reply, e);
    return r < 0 ? r
                 : replace_others(op, a, put, json_get(json_get(reply.body, "status"), "documentResponses"), unit, e);
}

/* ---- namespaces ---- */

static int add_space(const struct remote_op *op, struct json_value document, const char *prefix,
                     struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *ns = json_cstr(json_get(document, REMOTE_NAMESPACE));
    struct remote_collection col = { 0 };
    int64_t n = 0;
    int r;

    if (!vector_check_prefix(ns, prefix))
        return 0;
    r = read_space(op, a, document, ns, &col, e);
    if (r == 0)
        r = astra_probe(op, a, &col, &n, e);
    return r == 0 && n > 0 ? remote_ids_add(names, ns, e) : r;
}

static int add_spaces(const struct remote_op *op, struct astra_reading *what, const char *prefix,
                      struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_reply reply = { 0 };
    struct json_value data, documents, item;
    struct remote_body b;
    size_t n = 0;
    int r;

    astra_write_reading(&b, a, what);
    r = astra_call(op, a, SPACES, &b, &reply, e);
    data = json_get(reply.body, "data");
    documents = json_get(data, "documents");
    if (r == 0 && json_length(json_get(reply.body, "errors")) > 0)
        return strcmp(astra_code(&reply), NO_COLLECTION) == 0 ? 0 : remote_refused(op, &reply, e);
    if (r == 0)
        r = remote_read_list(op, "documents", documents, ASTRA_DOCUMENTS_A_PAGE, &n, e);
    for (struct json_iter it = json_iter(documents); r == 0 && json_next(&it, NULL, &item);)
        r = add_space(op, item, prefix, names, e);
    return r < 0 ? r : astra_read_state(op, data, n, what, e);
}

static int astra_names(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e)
{
    struct astra_reading what = { .projection = "{\"" REMOTE_NAMESPACE "\":1,\"" DIMENSIONS "\":1}" };
    size_t n_pages = 0;
    int r;

    do {
        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = add_spaces(op, &what, prefix, names, e);
    } while (r == 0 && what.state[0]);
    return r;
}

/* ---- opening ---- */

static const struct remote_dialect dialect = { .can_express = astra_can_express };

static const struct remote_peer peer = {
    .dialect = &dialect,
    .check = astra_check,
    .find = astra_find,
    .make = astra_make,
    .count = astra_count,
    .probe = astra_probe,
    .drop = astra_drop,
    .put = astra_put,
    .n_put = DOCUMENTS_A_PUT,
    .delete_ids = astra_delete_ids,
    .nearest = astra_nearest,
    .n_nearest = NEAREST_MAX,
    .n_among = ASTRA_IDS_A_FILTER,
    .read = astra_read,
    .collect_ids = astra_collect_ids,
    .names = astra_names,
    .needs_direction = true,
};

const struct vectors_field astra_fields[] = {
    { "url", "API endpoint", VECTORS_STRING, "https://database-region.apps.astra.datastax.com", .is_required = true,
      .secrecy = VECTORS_ADDRESS },
    { "token", "Application token", VECTORS_PASSWORD, "AstraCS:…", .is_required = true, .secrecy = VECTORS_SECRET },
    { "keyspace", "Keyspace", VECTORS_STRING, "default_keyspace" },
    { NULL },
};

int astra_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
               struct err *e)
{
    static const struct vectors_ops ops = REMOTE_STORE_OPS("astra");
    static const struct remote_kind kind = {
        .ops = &ops,
        .peer = &peer,
        .label = "Astra DB",
        .header = "token",
        .key_field = "token",
        .space_field = "keyspace",
        .space_default = "default_keyspace",
        .is_space_in_path = true,
    };

    return remote_store_open(&kind, config, guard, ret, e);
}
