/* Vectors in Qdrant over its REST interface (docs/vectors.md). Its index is approximate. */
#include "vector/qdrant.h"

#include "base/uuid.h"
#include "vector/vector_check.h"

#include <stdlib.h>

enum { NAME_CHARS = 255 };

static struct remote_store *of(struct vectors *v)
{
    return (struct remote_store *)v;
}

static struct vectors *qdrant_close(struct vectors *v)
{
    struct remote_store *s = of(v);

    remote_clear(&s->remote);
    free(s);
    return NULL;
}

static int qdrant_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_reply reply = { 0 };
    int r = remote_ask(&op, a, "GET", "collections", NULL, &reply, e);

    if (r == 0 && json_type(json_get(json_get(reply.body, "result"), "collections")) != JSON_ARRAY)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "what answers there is no Qdrant: it has no list of collections");
    return r;
}

/* ---- upsert ---- */

/* The collection for these vectors; one that is empty takes any dimensions, so it is made anew. */
static int ready_collection(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions, struct remote_collection *col, struct err *e)
{
    int64_t n = 0;
    int r = qdrant_find(op, a, ns, col, e);

    if (r == 0 && col->is_there && col->n_dimensions != (int64_t)n_dimensions) {
        r = qdrant_count(op, a, col, &n, e);
        if (r == 0 && n > 0)
            r = vector_check_dimensions(ns, col->n_dimensions, n_dimensions, e);
        if (r == 0)
            r = qdrant_drop(op, a, col, e);
        col->is_there = false;
    }
    if (r == 0 && !col->is_there)
        r = qdrant_make(op, a, ns, n_dimensions, col, e);
    return r < 0 ? r : vector_check_dimensions(ns, col->n_dimensions, n_dimensions, e);
}

static void write_point(struct json_writer *w, const char *ns, const struct vector_record *record, size_t n_dimensions, float *unit)
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

static int put_points(const struct remote_op *op, const struct remote_collection *col, const char *ns, const struct vector_record *items, size_t n,
                      size_t n_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    float *unit = arena_array(a, n_dimensions, sizeof(*unit));
    struct qdrant_body body;
    struct json_value result;

    qdrant_begin(&body);
    json_begin_array_as(&body.w, "points");
    for (size_t i = 0; i < n; i++)
        write_point(&body.w, ns, &items[i], n_dimensions, unit);
    json_end(&body.w);
    return qdrant_send(op, a, "PUT", qdrant_path(a, col, "/points?wait=true"), &body, &result, e);
}

static int qdrant_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    const struct vector_record *items = NULL;
    struct remote_collection col = { 0 };
    size_t n, n_here;
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_batch(b, e);
    if (r < 0 || b->n == 0)
        return r;
    n = remote_last_of_each(a, b, &items);
    r = ready_collection(&op, a, ns, b->n_dimensions, &col, e);
    for (size_t i = 0; r == 0 && i < n; i += n_here) {
        n_here = remote_chunk(items + i, n - i, b->n_dimensions, LIMIT_VECTORS_PER_CALL);
        r = put_points(&op, &col, ns, items + i, n_here, b->n_dimensions, e);
        if (r < 0 && i > 0)
            return err_prefix(e, r, "%zu of %zu vectors were stored before this", i, n);
    }
    return r;
}

/* ---- remove and namespaces ---- */

static int delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n, struct err *e)
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

/* A hashed name does not tell its namespace: any point of it does. Empty collections have none. */
static int add_namespace(const struct remote_op *op, const char *name, const char *prefix, struct remote_ids *names, struct err *e)
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

/* As remote_collection_name() makes them: the name becomes part of a path. */
static bool is_ours(const char *name)
{
    return name && *name && strlen(name) <= NAME_CHARS && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static int qdrant_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a, struct field_strings *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_ids names = { .arena = a };
    struct remote_reply reply = { 0 };
    struct json_value list, item;
    size_t n;
    int r = remote_ask(&op, scratch, "GET", "collections", NULL, &reply, e);

    list = json_get(json_get(reply.body, "result"), "collections");
    if (r == 0)
        r = remote_read_list(&op, "collections", list, LIMIT_VECTOR_NAMESPACES, &n, e);
    for (struct json_iter it = json_iter(list); r == 0 && json_next(&it, NULL, &item);) {
        const char *name = json_cstr(json_get(item, "name"));

        if (is_ours(name) && (strncmp(name, prefix, strlen(prefix)) == 0 || strncmp(name, "hearth_", 7) == 0))
            r = add_namespace(&op, name, prefix, &names, e);
    }
    if (r < 0)
        return r;
    remote_ids_sort(&names);
    *ret = (struct field_strings){ names.items, names.n };
    return 0;
}

/* ---- opening ---- */

static const struct vectors_ops ops = {
    .name = "qdrant", .close = qdrant_close, .check = qdrant_check, .upsert = qdrant_upsert, .query = remote_query, .remove = remote_remove,
    .count = remote_count, .list = remote_list, .namespaces = qdrant_namespaces,
};

static const struct remote_peer peer = {
    .dialect = &qdrant_dialect, .find = qdrant_find, .count = qdrant_count, .drop = qdrant_drop, .delete_ids = delete_ids, .nearest = qdrant_nearest,
    .read = qdrant_read, .collect_ids = qdrant_collect_ids,
};

const struct vectors_field qdrant_fields[] = {
    { "url", "Address", "url", "http://localhost:6333", .is_required = true, .is_secret = true },
    { "apiKey", "API key", "password", "only when the server asks for one", .is_secret = true },
    { NULL },
};

int qdrant_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e)
{
    struct remote_store *s = xcalloc(1, sizeof(*s));
    int r;

    s->vectors.ops = &ops;
    s->peer = &peer;
    s->remote.label = "Qdrant";
    s->remote.guard = guard;
    r = remote_init(&s->remote, json_cstr(json_get(config, "url")), "api-key", json_cstr(json_get(config, "apiKey")), e);
    if (r < 0) {
        qdrant_close(&s->vectors);
        return r;
    }
    *ret = &s->vectors;
    return 0;
}
