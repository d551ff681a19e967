/* Vectors in Qdrant over its REST interface (docs/vectors.md). Its index is approximate. */
#include "vector/remote/qdrant.h"

#include "base/uuid.h"
#include "vector/vector_check.h"

enum { NAME_CHARS = 255 };

static int qdrant_check(const struct remote_op *op, struct arena *a, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_request(op, a, "GET", "collections", NULL, &reply, e);

    if (r == 0 && json_type(json_get(json_get(reply.body, "result"), "collections")) != JSON_ARRAY)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "what answers there is no Qdrant: it has no list of collections");
    return r;
}

/* ---- upsert ---- */

static void write_point(struct json_writer *w, const char *ns, const struct vector_record *record, size_t n_dimensions,
                        float *unit)
{
    double length = remote_unit(record->vector, n_dimensions, unit);
    char uuid[UUID_SIZE];

    uuid_of_text(slice_of(record->id), uuid);
    json_begin_object(w);
    json_add_string(w, "id", uuid);
    json_add_floats(w, "vector", unit, n_dimensions);
    json_begin_object_as(w, "payload");
    json_add_string(w, QDRANT_ID, record->id);
    json_add_string(w, QDRANT_NAMESPACE, ns);
    json_add_double(w, QDRANT_LENGTH, length);
    json_add_raw(w, QDRANT_METADATA, record->metadata ? record->metadata : "{}");
    json_end(w);
    json_end(w);
}

static int put_points(const struct remote_op *op, const struct remote_put *put, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, put->n_dimensions, sizeof(*unit));
    struct qdrant_body body;
    struct json_value result;

    qdrant_begin(&body);
    json_begin_array_as(&body.w, "points");
    for (size_t i = 0; i < put->n; i++)
        write_point(&body.w, put->ns, &put->items[i], put->n_dimensions, unit);
    json_end(&body.w);
    return qdrant_send(op, a, "PUT", qdrant_path(a, put->collection, "/points?wait=true"), &body, &result, e);
}

/* ---- remove and namespaces ---- */

static int delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n,
                      struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value result;
    struct qdrant_body body;

    if (n == 0)
        return 0;
    qdrant_begin(&body);
    qdrant_add_uuids(&body.w, "points", ids, n);
    return qdrant_send(op, a, "POST", qdrant_path(a, col, "/points/delete?wait=true"), &body, &result, e);
}

/* A hashed name does not show its namespace, but any point does. Empty collections are skipped. */
static int add_namespace(const struct remote_op *op, const char *name, const char *prefix, struct remote_ids *names,
                         struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_collection col = { .name = name };
    struct json_value result = { 0 }, point = { 0 };
    struct json_iter it;
    struct qdrant_body body;
    const char *ns;
    int r;

    qdrant_begin(&body);
    json_add_int(&body.w, "limit", 1);
    json_add_raw(&body.w, "with_payload", "[\"" QDRANT_NAMESPACE "\"]");
    r = qdrant_send(op, a, "POST", qdrant_path(a, &col, "/points/scroll"), &body, &result, e);
    it = json_iter(json_get(result, "points"));
    if (r < 0 || !json_next(&it, NULL, &point))
        return r;
    ns = json_cstr(json_get(json_get(point, "payload"), QDRANT_NAMESPACE));
    return vector_check_prefix(ns, prefix) ? remote_ids_add(names, ns, e) : 0;
}

/* Is it a name as remote_collection_name() makes it? The name becomes part of a path. */
static bool is_ours(const char *name)
{
    return name && *name && strlen(name) <= NAME_CHARS &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static int qdrant_names(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct remote_reply reply = { 0 };
    struct json_value list, item;
    size_t n;
    int r = remote_request(op, scratch, "GET", "collections", NULL, &reply, e);

    list = json_get(json_get(reply.body, "result"), "collections");
    if (r == 0)
        r = remote_read_list(op, "collections", list, LIMIT_VECTOR_NAMESPACES, &n, e);
    for (struct json_iter it = json_iter(list); r == 0 && json_next(&it, NULL, &item);) {
        const char *name = json_cstr(json_get(item, "name"));

        if (is_ours(name) && (strncmp(name, prefix, strlen(prefix)) == 0 || strncmp(name, "hearth_", 7) == 0))
            r = add_namespace(op, name, prefix, names, e);
    }
    return r;
}

/* ---- opening ---- */

static const struct remote_peer peer = {
    .dialect = &qdrant_dialect,
    .check = qdrant_check,
    .find = qdrant_find,
    .make = qdrant_make,
    .put = put_points,
    .count = qdrant_count,
    .drop = qdrant_drop,
    .delete_ids = delete_ids,
    .nearest = qdrant_nearest,
    .read = qdrant_read,
    .collect_ids = qdrant_collect_ids,
    .names = qdrant_names,
};

const struct vectors_field qdrant_fields[] = {
    { "url", "Address", VECTORS_STRING, "http://localhost:6333", .is_required = true, .secrecy = VECTORS_ADDRESS },
    { "apiKey", "API key", VECTORS_PASSWORD, "only when the server asks for one", .secrecy = VECTORS_SECRET },
    { NULL },
};

int qdrant_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e)
{
    static const struct vectors_ops ops = REMOTE_STORE_OPS("qdrant");
    static const struct remote_kind kind = {
        .ops = &ops, .peer = &peer, .label = "Qdrant", .header = "api-key", .key_field = "apiKey"
    };

    return remote_store_open(&kind, config, guard, ret, e);
}
