/* Vectors in Milvus (2.4 and newer) or Zilliz Cloud over REST v2: one collection for each namespace (docs/vectors.md).
 * Every request is a POST of JSON; a refusal is a `code` that is not 0, with status 200. The primary key is a UUID made
 * from Hearth's id. */
#include "vector/remote/milvus.h"

#include "vector/remote/remote_record.h"
#include "vector/vector_check.h"

#include <stdlib.h>

enum {
    ROWS_A_REQUEST = 16384, /* of a query or a search: the server's maximum for offset and limit together */
    NO_COLLECTION = 100,
    PREFIX_MAX = 3, /* hex digits of a page's key prefix: 4,096 pages */
    FILTER_BYTES = 1 << 20,
};

#define PRIMARY "id"
#define VECTOR "vector"
#define OUTPUT "[\"" REMOTE_ID "\",\"" REMOTE_JSON "\",\"" REMOTE_LENGTH "\"]"
#define OUTPUT_WITH_VECTOR "[\"" REMOTE_ID "\",\"" REMOTE_JSON "\",\"" REMOTE_LENGTH "\",\"" VECTOR "\"]"
#define OUTPUT_OF_IDS "[\"" REMOTE_ID "\"]"

/* ---- requests ---- */

struct body {
    struct buf text;
    struct json_writer w;
};

static void begin(struct body *b, const struct remote_op *op, const struct remote_collection *col)
{
    const char *database = remote_store_of(op)->space;

    buf_init(&b->text, LIMIT_BODY_VECTORS);
    json_write_init(&b->w, &b->text);
    json_begin_object(&b->w);
    if (database)
        json_add_string(&b->w, "dbName", database);
    if (col)
        json_add_string(&b->w, "collectionName", col->name);
}

static int call(const struct remote_op *op, struct arena *a, const char *verb, struct body *b, struct remote_reply *ret,
                struct err *e)
{
    int r;

    json_end(&b->w);
    r = remote_request(op, a, "POST", arena_printf(a, "v2/vectordb/%s", verb), &b->text, ret, e);
    buf_clear(&b->text);
    if (r == 0 && json_type(json_get(ret->body, "code")) != JSON_INT)
        return remote_fault(op, e, "it has no code");
    return r;
}

/* ret: the member `data` of a reply that is not a refusal. */
static int request(const struct remote_op *op, struct arena *a, const char *verb, struct body *b,
                   struct json_value *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = call(op, a, verb, b, &reply, e);

    if (r == 0 && json_int(json_get(reply.body, "code")) != 0)
        return remote_refused(op, &reply, e);
    if (r == 0)
        *ret = json_get(reply.body, "data");
    return r;
}

static int milvus_check(const struct remote_op *op, struct arena *a, struct err *e)
{
    struct json_value names = { 0 };
    struct body b;
    int r;

    begin(&b, op, NULL);
    r = request(op, a, "collections/list", &b, &names, e);
    if (r == 0 && json_type(names) != JSON_ARRAY)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "what answers there is no Milvus: it has no list of collections");
    return r;
}

/* ---- collections ---- */

/* A collection's name may contain letters, digits and _ only. */
static const char *name_of(struct arena *a, const char *ns)
{
    return remote_hashed_name(a, ns, "hearth_");
}

static struct json_value find_named(struct json_value list, const char *member, const char *wanted)
{
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (slice_eq_str(json_string(json_get(item, member)), wanted))
            return item;
    return (struct json_value){ 0 };
}

/* Some versions send the number as text. */
static int read_dimensions(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e)
{
    const char *text = json_cstr(v);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : 0;

    if (!text)
        return remote_read_dimensions(op, v, ret, e);
    if (*end || n < 1 || n > LIMIT_DIMENSIONS)
        return remote_fault(op, e, "the number of dimensions must be from 1 to %d", LIMIT_DIMENSIONS);
    *ret = n;
    return 0;
}

static int read_collection(const struct remote_op *op, struct json_value data, struct remote_collection *ret,
                           struct err *e)
{
    struct json_value field = find_named(json_get(data, "fields"), "name", VECTOR),
                      index = find_named(json_get(data, "indexes"), "fieldName", VECTOR);

    if (!slice_eq_str(json_string(json_get(index, "metricType")), "COSINE"))
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "Milvus has a collection %s that is not of this service, or has another metric than COSINE",
                       ret->name);
    ret->is_there = true;
    return read_dimensions(op, json_get(find_named(json_get(field, "params"), "key", "dim"), "value"),
                           &ret->n_dimensions, e);
}

static int milvus_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                       struct err *e)
{
    struct remote_collection col = { .name = name_of(a, ns) };
    struct remote_reply reply = { 0 };
    struct body b;
    int64_t code;
    int r;

    begin(&b, op, &col);
    r = call(op, a, "collections/describe", &b, &reply, e);
    code = json_int(json_get(reply.body, "code"));
    if (r == 0 && code == 0)
        r = read_collection(op, json_get(reply.body, "data"), &col, e);
    else if (r == 0 && code != NO_COLLECTION)
        r = remote_refused(op, &reply, e);
    if (r == 0)
        *ret = col;
    return r;
}

static void add_field(struct json_writer *w, const char *name, const char *type, const char *parameters)
{
    json_begin_object(w);
    json_add_string(w, "fieldName", name);
    json_add_string(w, "dataType", type);
    if (strcmp(name, PRIMARY) == 0)
        json_add_bool(w, "isPrimary", true);
    if (strcmp(type, "Array") == 0)
        json_add_string(w, "elementDataType", "VarChar");
    json_add_raw(w, "elementTypeParams", parameters);
    json_end(w);
}

/* The collection is strongly consistent: every query after an upsert's answer finds the stored rows. */
static void write_schema(struct json_writer *w, size_t n_dimensions)
{
    char dim[40];

    snprintf(dim, sizeof(dim), "{\"dim\":\"%zu\"}", n_dimensions);
    json_begin_object_as(w, "schema");
    json_add_bool(w, "autoID", false);
    json_add_bool(w, "enableDynamicField", false);
    json_begin_array_as(w, "fields");
    add_field(w, PRIMARY, "VarChar", "{\"max_length\":\"36\"}");
    add_field(w, VECTOR, "FloatVector", dim);
    add_field(w, REMOTE_ID, "VarChar", "{\"max_length\":\"512\"}");
    add_field(w, REMOTE_NAMESPACE, "VarChar", "{\"max_length\":\"512\"}");
    add_field(w, REMOTE_LENGTH, "Double", "{}");
    add_field(w, REMOTE_JSON, "VarChar", "{\"max_length\":\"65535\"}");
    add_field(w, REMOTE_TOKENS, "Array", "{\"max_length\":\"36\",\"max_capacity\":\"256\"}");
    json_end(w);
    json_end(w);
    json_add_raw(w, "indexParams",
                 "[{\"fieldName\":\"" VECTOR "\",\"indexName\":\"" VECTOR
                 "\",\"metricType\":\"COSINE\",\"params\":{\"index_type\":\"AUTOINDEX\"}}]");
    json_add_raw(w, "params", "{\"consistencyLevel\":\"Strong\"}");
}

/* Another client may make the collection at the same time: then that collection is used. */
static int milvus_make(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                       struct remote_collection *ret, struct err *e)
{
    struct remote_collection col = { .name = name_of(a, ns), .is_there = true, .n_dimensions = (int64_t)n_dimensions };
    struct json_value data;
    struct err why = { 0 };
    struct body b;
    int r;

    begin(&b, op, &col);
    write_schema(&b.w, n_dimensions);
    r = request(op, a, "collections/create", &b, &data, &why);
    if (r < 0 && milvus_find(op, a, ns, ret, NULL) == 0 && ret->is_there)
        return 0;
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    *ret = col;
    return 0;
}

static int milvus_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e)
{
    struct json_value data;
    struct body b;

    begin(&b, op, col);
    return request(op, a, "collections/drop", &b, &data, e);
}

static int milvus_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                        struct err *e)
{
    struct json_value data = { 0 };
    struct body b;
    int r;

    begin(&b, op, col);
    json_add_string(&b.w, "filter", "");
    json_add_raw(&b.w, "outputFields", "[\"count(*)\"]");
    r = request(op, a, "entities/query", &b, &data, e);
    return r < 0 ? r : remote_read_count(op, json_get(remote_first(data), "count(*)"), ret, e);
}

/* ---- changes ---- */

static void write_entity(struct json_writer *w, const char *ns, const struct vector_record *record, size_t n_dimensions,
                         float *unit)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    double length = remote_unit(record->vector, n_dimensions, unit);

    json_begin_object(w);
    json_add_string(w, PRIMARY, remote_uuids_of(a, &record->id, 1).items[0]);
    json_add_floats(w, VECTOR, unit, n_dimensions);
    remote_add_members(w, ns, record, length, NULL);
    json_end(w);
}

static int milvus_put(const struct remote_op *op, const struct remote_put *put, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, put->n_dimensions, sizeof(*unit));
    struct json_value data;
    struct body b;

    begin(&b, op, put->collection);
    json_begin_array_as(&b.w, "data");
    for (size_t i = 0; i < put->n; i++)
        write_entity(&b.w, put->ns, &put->items[i], put->n_dimensions, unit);
    json_end(&b.w);
    return request(op, a, "entities/upsert", &b, &data, e);
}

static void add_among(struct json_writer *w, struct arena *a, const char *const *ids, size_t n)
{
    struct field_strings uuids = remote_uuids_of(a, ids, n);

    json_add_string(w, "filter", arena_printf(a, PRIMARY " in [%s]", remote_quoted(a, &uuids)));
}

static int milvus_delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                             size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value data;
    struct body b;

    if (n == 0)
        return 0;
    begin(&b, op, col);
    add_among(&b.w, a, ids, n);
    return request(op, a, "entities/delete", &b, &data, e);
}

/* ---- reading ---- */

/* Adds the conditions on tokens; remote_nearest() checks the rest of the filter. */
static void add_filter(struct json_writer *w, struct arena *a, const struct vector_filter *f)
{
    struct buf text;

    buf_init(&text, FILTER_BYTES);
    for (size_t i = 0; f && i < f->n; i++) {
        struct field_strings tokens;

        if (!remote_has_tokens(&f->items[i]))
            continue;
        tokens = remote_tokens_of(a, &f->items[i]);
        buf_printf(&text, "%sarray_contains_any(" REMOTE_TOKENS ", [%s])", text.n ? " and " : "",
                   remote_quoted(a, &tokens));
    }
    json_add_string(w, "filter", buf_to_arena(&text, a));
}

static int read_hits(const struct remote_op *op, struct arena *a, struct json_value rows, size_t n_most,
                     size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct vector_hits hits = { 0 };
    struct json_iter it = json_iter(rows);
    struct json_value row;
    int r = remote_read_list(op, "data", rows, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n && json_next(&it, NULL, &row); i++) {
        const struct remote_raw raw = { .score = json_get(row, "distance"), .unit = json_get(row, VECTOR) };

        r = remote_read_members(op, a, row, &raw, n_dimensions, &hits.items[i], e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

static int milvus_nearest(const struct remote_op *op, const struct remote_collection *col,
                          const struct remote_search *s, int64_t n, struct arena *a, struct vector_hits *ret,
                          struct err *e)
{
    const struct vector_query *q = s->query;
    float *unit = arena_array(a, q->n_dimensions, sizeof(*unit));
    struct json_value data = { 0 };
    struct body b;
    int r;

    remote_unit(q->vector, q->n_dimensions, unit);
    begin(&b, op, col);
    json_begin_array_as(&b.w, "data");
    json_add_floats(&b.w, NULL, unit, q->n_dimensions);
    json_end(&b.w);
    json_add_string(&b.w, "annsField", VECTOR);
    if (s->among.n > 0)
        add_among(&b.w, a, s->among.items, s->among.n);
    else
        add_filter(&b.w, a, s->filter);
    json_add_int(&b.w, "limit", n);
    json_add_raw(&b.w, "outputFields", q->with_vectors ? OUTPUT_WITH_VECTOR : OUTPUT);
    r = request(op, a, "entities/search", &b, &data, e);
    return r < 0 ? r : read_hits(op, a, data, (size_t)n, q->with_vectors ? q->n_dimensions : 0, ret, e);
}

static int milvus_read(const struct remote_op *op, const struct remote_collection *col,
                       const struct remote_read_request *wanted, struct arena *a, struct vector_hits *ret,
                       struct err *e)
{
    static const char *const outputs[] = {
        [REMOTE_IDS] = OUTPUT_OF_IDS, [REMOTE_METADATA] = OUTPUT, [REMOTE_VECTORS] = OUTPUT_WITH_VECTOR
    };
    struct json_value data = { 0 };
    struct body b;
    int r;

    begin(&b, op, col);
    add_among(&b.w, a, wanted->ids, wanted->n);
    json_add_int(&b.w, "limit", (int64_t)wanted->n);
    json_add_raw(&b.w, "outputFields", outputs[wanted->parts]);
    r = request(op, a, "entities/query", &b, &data, e);
    return r < 0 ? r
                 : read_hits(op, a, data, wanted->n, wanted->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0,
                             ret, e);
}

/* Collects the rows whose primary key has this prefix. Keys are hashes, so pages have about the same size. */
static int collect_page(const struct remote_op *op, const struct remote_collection *col,
                        const struct vector_filter *filter, const char *prefix, struct remote_ids *ids, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_hits hits = { 0 };
    struct json_value data = { 0 };
    struct body b;
    int r;

    begin(&b, op, col);
    json_add_string(&b.w, "filter", arena_printf(a, PRIMARY " >= \"%s\" and " PRIMARY " < \"%sg\"", prefix, prefix));
    json_add_int(&b.w, "limit", ROWS_A_REQUEST);
    json_add_raw(&b.w, "outputFields", filter ? OUTPUT : OUTPUT_OF_IDS);
    r = request(op, a, "entities/query", &b, &data, e);
    if (r == 0)
        r = read_hits(op, a, data, ROWS_A_REQUEST - 1, 0, &hits, e);
    return r < 0 ? r : remote_ids_add_hits(ids, &hits, filter, a, e);
}

/* A query has no order for paging and a window of ROWS_A_REQUEST rows, so pages are made by key prefix. */
static int milvus_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                              const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int64_t n = 0, n_pages = 1;
    int n_digits = 0, r = milvus_count(op, a, col, &n, e);

    for (; n_digits < PREFIX_MAX && n / n_pages > REMOTE_ROWS_A_READ; n_digits++)
        n_pages *= 16;
    for (int64_t i = 0; r == 0 && i < n_pages; i++) {
        char prefix[PREFIX_MAX + 2] = "";

        if (n_digits > 0)
            snprintf(prefix, sizeof(prefix), "%0*x", n_digits, (unsigned)i);
        r = collect_page(op, col, filter, prefix, ids, e);
    }
    return r;
}

/* ---- namespaces ---- */

/* A collection's name does not show its namespace, but any row does. Empty collections are skipped. */
static int add_namespace(const struct remote_op *op, const char *name, const char *prefix, struct remote_ids *names,
                         struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_collection col = { .name = name };
    struct json_value data = { 0 };
    struct body b;
    const char *ns;
    int r;

    begin(&b, op, &col);
    json_add_string(&b.w, "filter", "");
    json_add_int(&b.w, "limit", 1);
    json_add_raw(&b.w, "outputFields", "[\"" REMOTE_NAMESPACE "\"]");
    r = request(op, a, "entities/query", &b, &data, e);
    ns = json_cstr(json_get(remote_first(data), REMOTE_NAMESPACE));
    return r == 0 && vector_check_prefix(ns, prefix) ? remote_ids_add(names, ns, e) : r;
}

static int milvus_names(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value list = { 0 }, item;
    struct body b;
    size_t n;
    int r;

    begin(&b, op, NULL);
    r = request(op, a, "collections/list", &b, &list, e);
    if (r == 0)
        r = remote_read_list(op, "collections", list, LIMIT_VECTOR_NAMESPACES, &n, e);
    for (struct json_iter it = json_iter(list); r == 0 && json_next(&it, NULL, &item);)
        if (remote_is_hashed_name(json_cstr(item), "hearth_"))
            r = add_namespace(op, json_cstr(item), prefix, names, e);
    return r;
}

/* ---- opening ---- */

static const struct remote_dialect dialect = { .can_express = remote_has_tokens };

static const struct remote_peer peer = {
    .dialect = &dialect,
    .check = milvus_check,
    .find = milvus_find,
    .make = milvus_make,
    .count = milvus_count,
    .drop = milvus_drop,
    .put = milvus_put,
    .delete_ids = milvus_delete_ids,
    .nearest = milvus_nearest,
    .read = milvus_read,
    .collect_ids = milvus_collect_ids,
    .names = milvus_names,
};

const struct vectors_field milvus_fields[] = {
    { "url", "Address", VECTORS_STRING, "http://localhost:19530", .is_required = true, .secrecy = VECTORS_ADDRESS },
    { "token", "Token", VECTORS_PASSWORD, "user:password, or an API key", .secrecy = VECTORS_SECRET },
    { "database", "Database", VECTORS_STRING, "default" },
    { NULL },
};

int milvus_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e)
{
    static const struct vectors_ops ops = REMOTE_STORE_OPS("milvus");
    static const struct remote_kind kind = {
        .ops = &ops,
        .peer = &peer,
        .label = "Milvus",
        .header = "authorization",
        .key_field = "token",
        .key_prefix = "Bearer ",
        .space_field = "database",
    };

    return remote_store_open(&kind, config, guard, ret, e);
}
