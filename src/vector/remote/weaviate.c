/* Vectors in Weaviate: one class for each namespace (docs/vectors.md). Objects and classes are sent over REST,
 * searches over GraphQL, whose texts contain only numbers, hashes and names made here. A class's description has its
 * namespace and dimensions. The distance is the dot product of vectors of length one. */
#include "vector/remote/weaviate.h"

#include "base/uuid.h"
#include "vector/remote/remote_record.h"
#include "vector/vector_check.h"

#include <stdlib.h>

enum { OBJECTS_A_READ = 1000, CHANGED_A_REQUEST = 1000, SEARCH_BYTES = 4 << 20 };

#define CLASS_PREFIX "Hearth_"
#define DESCRIPTION "Vectors of Hearth: "
#define MEMBERS REMOTE_ID " " REMOTE_JSON " " REMOTE_LENGTH

/* ---- classes ---- */

static const char *name_of(struct arena *a, const char *ns)
{
    return remote_hashed_name(a, ns, CLASS_PREFIX);
}

static int weaviate_check(const struct remote_op *op, struct arena *a, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_request(op, a, "GET", "v1/meta", NULL, &reply, e);

    if (r == 0 && !json_cstr(json_get(reply.body, "version")))
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "what answers there is no Weaviate: it has no version");
    return r == 0 ? remote_request(op, a, "GET", "v1/schema", NULL, &reply, e) : r;
}

/* "Vectors of Hearth: 384 sdk_app_workspace"; NULL: not a class of Hearth. */
static const char *namespace_of(struct json_value class, int64_t *ret_dimensions)
{
    const char *text = json_cstr(json_get(class, "description"));
    char *end;

    if (!text || strncmp(text, DESCRIPTION, strlen(DESCRIPTION)) != 0)
        return NULL;
    *ret_dimensions = strtol(text + strlen(DESCRIPTION), &end, 10);
    return *end == ' ' && end[1] ? end + 1 : NULL;
}

static int read_class(const struct remote_op *op, struct json_value class, const char *ns,
                      struct remote_collection *ret, struct err *e)
{
    const char *owner = namespace_of(class, &ret->n_dimensions),
               *distance = json_cstr(json_get(json_get(class, "vectorIndexConfig"), "distance"));

    if (!owner || strcmp(owner, ns) != 0 || !distance || strcmp(distance, "dot") != 0)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "Weaviate has a class %s that is not of this service, or has another distance than dot",
                       ret->name);
    if (ret->n_dimensions < 1 || ret->n_dimensions > LIMIT_DIMENSIONS)
        return remote_fault(op, e, "the number of dimensions must be from 1 to %d", LIMIT_DIMENSIONS);
    ret->is_there = true;
    return 0;
}

static const char *class_path(struct arena *a, const struct remote_collection *col)
{
    return arena_printf(a, "v1/schema/%s", col->name);
}

static int weaviate_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                         struct err *e)
{
    struct remote_collection col = { .name = name_of(a, ns) };
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "GET", class_path(a, &col), NULL, &reply, e);

    if (r == 0 && reply.status < 300)
        r = read_class(op, reply.body, ns, &col, e);
    else if (r == 0 && reply.status != 404)
        r = remote_refused(op, &reply, e);
    if (r == 0)
        *ret = col;
    return r;
}

static void add_property(struct json_writer *w, const char *name, const char *type, bool is_filtered)
{
    json_begin_object(w);
    json_add_string(w, "name", name);
    json_add_raw(w, "dataType", type);
    if (strcmp(type, "[\"number\"]") != 0) {
        json_add_string(w, "tokenization", "field");
        json_add_bool(w, "indexSearchable", false);
    }
    json_add_bool(w, "indexFilterable", is_filtered);
    json_end(w);
}

static void write_class(struct json_writer *w, struct arena *a, const char *name, const char *ns, size_t n_dimensions)
{
    json_add_string(w, "class", name);
    json_add_string(w, "description", arena_printf(a, DESCRIPTION "%zu %s", n_dimensions, ns));
    json_add_string(w, "vectorizer", "none");
    json_add_string(w, "vectorIndexType", "hnsw");
    json_add_raw(w, "vectorIndexConfig", "{\"distance\":\"dot\"}");
    json_begin_array_as(w, "properties");
    add_property(w, REMOTE_ID, "[\"text\"]", false);
    add_property(w, REMOTE_NAMESPACE, "[\"text\"]", false);
    add_property(w, REMOTE_LENGTH, "[\"number\"]", false);
    add_property(w, REMOTE_JSON, "[\"text\"]", false);
    add_property(w, REMOTE_TOKENS, "[\"text[]\"]", true);
    json_end(w);
}

/* Another client may make the class at the same time: then that class is used. */
static int weaviate_make(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                         struct remote_collection *ret, struct err *e)
{
    struct remote_collection col = { .name = name_of(a, ns), .is_there = true, .n_dimensions = (int64_t)n_dimensions };
    struct remote_reply reply = { 0 };
    struct remote_body b;
    struct err why = { 0 };
    int r;

    remote_begin(&b);
    write_class(&b.w, a, col.name, ns, n_dimensions);
    r = remote_send(op, a, "POST", "v1/schema", &b, &reply, &why);
    if (r < 0 && weaviate_find(op, a, ns, ret, NULL) == 0 && ret->is_there)
        return 0;
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    *ret = col;
    return 0;
}

static int weaviate_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                         struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "DELETE", class_path(a, col), NULL, &reply, e);

    return r == 0 && reply.status >= 300 && reply.status != 404 ? remote_refused(op, &reply, e) : r;
}

/* ---- GraphQL ---- */

/* kind: Get or Aggregate. ret: the class's list in the answer's member of that name. */
static int search(const struct remote_op *op, struct arena *a, const char *kind, const struct remote_collection *col,
                  const char *query, struct json_value *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    remote_begin(&b);
    json_add_string(&b.w, "query", query);
    r = remote_send(op, a, "POST", "v1/graphql", &b, &reply, e);
    if (r == 0 && json_length(json_get(reply.body, "errors")) > 0)
        return remote_refused(op, &reply, e);
    if (r == 0)
        *ret = json_get(json_get(json_get(reply.body, "data"), kind), col->name);
    return r;
}

static int weaviate_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                          int64_t *ret, struct err *e)
{
    struct json_value list = { 0 };
    int r = search(op, a, "Aggregate", col, arena_printf(a, "{Aggregate{%s{meta{count}}}}", col->name), &list, e);

    return r < 0 ? r : remote_read_count(op, json_get(json_get(remote_first(list), "meta"), "count"), ret, e);
}

static void add_any(struct buf *out, struct arena *a, const struct field_strings *tokens)
{
    buf_printf(out, "{path:[\"" REMOTE_TOKENS "\"],operator:ContainsAny,valueText:[%s]}", remote_quoted(a, tokens));
}

/* Adds the conditions on tokens; remote_nearest() checks the rest of the filter. */
static void add_where(struct buf *out, struct arena *a, const struct vector_filter *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct field_strings tokens;

        if (!remote_has_tokens(&f->items[i]))
            continue;
        tokens = remote_tokens_of(a, &f->items[i]);
        buf_add_str(out, n++ ? "," : ",where:{operator:And,operands:[");
        add_any(out, a, &tokens);
    }
    if (n > 0)
        buf_add_str(out, "]}");
}

static void add_among(struct buf *out, struct arena *a, const char *const *ids, size_t n)
{
    struct field_strings uuids = remote_uuids_of(a, ids, n);

    buf_add_str(out, ",where:");
    add_any(out, a, &uuids);
}

static int read_hits(const struct remote_op *op, struct arena *a, struct json_value list, size_t n_most,
                     size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct vector_hits hits = { 0 };
    struct json_iter it = json_iter(list);
    struct json_value item;
    int r = remote_read_list(op, "objects", list, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n && json_next(&it, NULL, &item); i++) {
        struct json_value about = json_get(item, "_additional");
        const struct remote_raw raw = { .score = json_get(about, "distance"),
                                        .scale = REMOTE_NEGATIVE,
                                        .unit = json_get(about, "vector") };

        r = remote_read_members(op, a, item, &raw, n_dimensions, &hits.items[i], e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

static int weaviate_nearest(const struct remote_op *op, const struct remote_collection *col,
                            const struct remote_search *s, int64_t n, struct arena *a, struct vector_hits *ret,
                            struct err *e)
{
    const struct vector_query *q = s->query;
    float *unit = arena_array(a, q->n_dimensions, sizeof(*unit));
    struct json_value list = { 0 };
    struct json_writer w;
    struct buf text;
    int r;

    remote_unit(q->vector, q->n_dimensions, unit);
    buf_init(&text, SEARCH_BYTES);
    buf_printf(&text, "{Get{%s(limit:%lld,nearVector:{vector:", col->name, (long long)n);
    json_write_init(&w, &text);
    json_add_floats(&w, NULL, unit, q->n_dimensions);
    buf_add_str(&text, "}");
    if (s->among.n > 0)
        add_among(&text, a, s->among.items, s->among.n);
    else
        add_where(&text, a, s->filter);
    buf_printf(&text, "){" MEMBERS " _additional{distance%s}}}}", q->with_vectors ? " vector" : "");
    r = search(op, a, "Get", col, buf_to_arena(&text, a), &list, e);
    return r < 0 ? r : read_hits(op, a, list, (size_t)n, q->with_vectors ? q->n_dimensions : 0, ret, e);
}

static int weaviate_read(const struct remote_op *op, const struct remote_collection *col,
                         const struct remote_read_request *request, struct arena *a, struct vector_hits *ret,
                         struct err *e)
{
    static const char *const members[] = {
        [REMOTE_IDS] = REMOTE_ID, [REMOTE_METADATA] = MEMBERS, [REMOTE_VECTORS] = MEMBERS " _additional{vector}"
    };
    struct json_value list = { 0 };
    struct buf text;
    int r;

    buf_init(&text, SEARCH_BYTES);
    buf_printf(&text, "{Get{%s(limit:%zu", col->name, request->n);
    add_among(&text, a, request->ids, request->n);
    buf_printf(&text, "){%s}}}", members[request->parts]);
    r = search(op, a, "Get", col, buf_to_arena(&text, a), &list, e);
    return r < 0 ? r
                 : read_hits(op, a, list, request->n, request->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0,
                             ret, e);
}

/* ---- page by page ---- */

struct objects_page {
    const char *after; /* the UUID at which the next page begins */
    size_t n;
};

/* Adds the ids of a page's objects that match. */
static int take_page(const struct remote_op *op, struct arena *a, struct json_value objects,
                     const struct vector_filter *filter, struct remote_ids *ids, struct objects_page *ret,
                     struct err *e)
{
    struct json_iter it = json_iter(objects);
    struct json_value object;
    int r = remote_read_list(op, "objects", objects, OBJECTS_A_READ, &ret->n, e);

    while (r == 0 && json_next(&it, NULL, &object)) {
        const struct remote_raw raw = { 0 };
        struct vector_hit hit;

        r = remote_read_members(op, a, json_get(object, "properties"), &raw, 0, &hit, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &(struct vector_hits){ &hit, 1 }, filter, a, e);
        ret->after = json_cstr(json_get(object, "id"));
        if (r == 0 && !remote_is_uuid(ret->after))
            r = remote_fault(op, e, "the id of an object must be a UUID");
    }
    return r;
}

static int weaviate_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                                const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    char after[UUID_SIZE] = "";
    struct objects_page page = { .n = OBJECTS_A_READ };
    size_t n_pages = 0;
    int r = 0;

    while (r == 0 && page.n == OBJECTS_A_READ) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct remote_reply reply = { 0 };

        page.after = "";
        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = remote_request_records(
                op, a, arena_printf(a, "v1/objects?class=%s&limit=%d&after=%s", col->name, OBJECTS_A_READ, after),
                &reply, e);
        if (r == 0)
            r = take_page(op, a, json_get(reply.body, "objects"), filter, ids, &page, e);
        if (r == 0 && page.n == OBJECTS_A_READ && strcmp(page.after, after) <= 0)
            r = remote_fault(op, e, "a page leads to itself");
        snprintf(after, sizeof(after), "%s", page.after);
    }
    return r;
}

/* ---- changes ---- */

static void write_object(struct json_writer *w, const struct remote_put *put, const struct vector_record *record,
                         float *unit)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    double length = remote_unit(record->vector, put->n_dimensions, unit);
    const char *uuid = remote_uuids_of(a, &record->id, 1).items[0];

    json_begin_object(w);
    json_add_string(w, "class", put->collection->name);
    json_add_string(w, "id", uuid);
    json_add_floats(w, "vector", unit, put->n_dimensions);
    json_begin_object_as(w, "properties");
    remote_add_members(w, put->ns, record, length, uuid);
    json_end(w);
    json_end(w);
}

/* The status is always 200; each object has a result of its own. */
static int check_results(const struct remote_op *op, struct json_value results, size_t n_most, struct err *e)
{
    struct json_value item;
    size_t n;
    int r = remote_read_list(op, "results", results, n_most, &n, e);

    if (r == 0 && n < n_most)
        return remote_fault(op, e, "it has %zu results for %zu objects", n, n_most);
    for (struct json_iter it = json_iter(results); r == 0 && json_next(&it, NULL, &item);) {
        struct json_value result = json_get(item, "result");
        const char *reason =
            json_cstr(json_get(remote_first(json_get(json_get(result, "errors"), "error")), "message"));

        if (!slice_eq_str(json_string(json_get(result, "status")), "SUCCESS"))
            r = err_set(e, -EIO, "VECTOR_STORE_FAILED", "Weaviate did not store a vector: %.300s",
                        reason ? reason : "it gives no reason");
    }
    return r;
}

static int weaviate_put(const struct remote_op *op, const struct remote_put *put, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, put->n_dimensions, sizeof(*unit));
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    remote_begin(&b);
    json_begin_array_as(&b.w, "objects");
    for (size_t i = 0; i < put->n; i++)
        write_object(&b.w, put, &put->items[i], unit);
    json_end(&b.w);
    r = remote_send(op, a, "POST", "v1/batch/objects", &b, &reply, e);
    return r < 0 ? r : check_results(op, reply.body, put->n, e);
}

static int delete_some(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                       size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct field_strings uuids = remote_uuids_of(a, ids, n);
    struct remote_reply reply = { 0 };
    struct remote_body b;

    remote_begin(&b);
    json_begin_object_as(&b.w, "match");
    json_add_string(&b.w, "class", col->name);
    json_begin_object_as(&b.w, "where");
    json_add_raw(&b.w, "path", "[\"" REMOTE_TOKENS "\"]");
    json_add_string(&b.w, "operator", "ContainsAny");
    json_add_strings(&b.w, "valueTextArray", uuids.items, uuids.n);
    json_end(&b.w);
    json_end(&b.w);
    json_add_string(&b.w, "output", "minimal");
    return remote_send(op, a, "DELETE", "v1/batch/objects", &b, &reply, e);
}

static int weaviate_delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids,
                               size_t n, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += CHANGED_A_REQUEST)
        r = delete_some(op, col, ids + i, MIN(n - i, (size_t)CHANGED_A_REQUEST), e);
    return r;
}

/* ---- namespaces ---- */

/* Adds the class's namespace unless it is empty. */
static int add_namespace(const struct remote_op *op, struct json_value class, const char *prefix,
                         struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_collection col = { .name = json_cstr(json_get(class, "class")) };
    const char *ns = namespace_of(class, &col.n_dimensions);
    int64_t n = 0;
    int r;

    if (!remote_is_hashed_name(col.name, CLASS_PREFIX) || !vector_check_prefix(ns, prefix))
        return 0;
    r = weaviate_count(op, a, &col, &n, e);
    return r == 0 && n > 0 ? remote_ids_add(names, ns, e) : r;
}

static int weaviate_names(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_reply reply = { 0 };
    struct json_value list, item;
    size_t n;
    int r = remote_request(op, a, "GET", "v1/schema", NULL, &reply, e);

    list = json_get(reply.body, "classes");
    if (r == 0 && json_is_absent(list))
        return 0;
    if (r == 0)
        r = remote_read_list(op, "classes", list, LIMIT_VECTOR_NAMESPACES, &n, e);
    for (struct json_iter it = json_iter(list); r == 0 && json_next(&it, NULL, &item);)
        r = add_namespace(op, item, prefix, names, e);
    return r;
}

/* ---- opening ---- */

static const struct remote_dialect dialect = { .can_express = remote_has_tokens };

static const struct remote_peer peer = {
    .dialect = &dialect,
    .check = weaviate_check,
    .find = weaviate_find,
    .make = weaviate_make,
    .count = weaviate_count,
    .drop = weaviate_drop,
    .put = weaviate_put,
    .n_put = CHANGED_A_REQUEST,
    .delete_ids = weaviate_delete_ids,
    .nearest = weaviate_nearest,
    .n_among = OBJECTS_A_READ,
    .read = weaviate_read,
    .collect_ids = weaviate_collect_ids,
    .names = weaviate_names,
};

const struct vectors_field weaviate_fields[] = {
    { "url", "Address", VECTORS_STRING, "http://localhost:8080", .is_required = true, .secrecy = VECTORS_ADDRESS },
    { "apiKey", "API key", VECTORS_PASSWORD, "only when the server asks for one", .secrecy = VECTORS_SECRET },
    { NULL },
};

int weaviate_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e)
{
    static const struct vectors_ops ops = REMOTE_STORE_OPS("weaviate");
    static const struct remote_kind kind = {
        .ops = &ops,
        .peer = &peer,
        .label = "Weaviate",
        .header = "authorization",
        .key_field = "apiKey",
        .key_prefix = "Bearer ",
    };

    return remote_store_open(&kind, config, guard, ret, e);
}
