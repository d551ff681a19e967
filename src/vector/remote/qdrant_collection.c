/* Requests to Qdrant, and its collections: one for each namespace. */
#include "vector/remote/qdrant.h"

#include "base/uuid.h"

void qdrant_begin(struct qdrant_body *body)
{
    buf_init(&body->text, LIMIT_BODY_VECTORS);
    json_write_init(&body->w, &body->text);
    json_begin_object(&body->w);
}

int qdrant_send(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                struct qdrant_body *body, struct json_value *ret, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r;

    json_end(&body->w);
    r = remote_request(op, a, method, path, &body->text, &reply, e);
    buf_clear(&body->text);
    if (r == 0)
        *ret = json_get(reply.body, "result");
    return r;
}

const char *qdrant_path(struct arena *a, const struct remote_collection *col, const char *verb)
{
    return arena_printf(a, "collections/%s%s", col->name, verb);
}

void qdrant_add_uuids(struct json_writer *w, const char *name, const char *const *ids, size_t n)
{
    char uuid[UUID_SIZE];

    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        uuid_of_text(slice_of(ids[i]), uuid);
        json_add_string(w, NULL, uuid);
    }
    json_end(w);
}

/* ---- collections ---- */

static int read_collection(const struct remote_op *op, struct json_value body, struct remote_collection *ret,
                           struct err *e)
{
    struct json_value params = json_get(json_get(json_get(body, "result"), "config"), "params"),
                      vectors = json_get(params, "vectors");
    const char *distance = json_cstr(json_get(vectors, "distance"));

    if (!distance || strcmp(distance, "Cosine") != 0)
        return err_set(
            e, -EIO, "VECTOR_STORE_FAILED",
            "Qdrant has a collection %s that is not of this service: it has named vectors or another distance than Cosine",
            ret->name);
    ret->is_there = true;
    return remote_read_dimensions(op, json_get(vectors, "size"), &ret->n_dimensions, e);
}

int qdrant_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e)
{
    struct remote_collection col = { .name = remote_collection_name(a, ns) };
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "GET", qdrant_path(a, &col, ""), NULL, &reply, e);

    if (r == 0 && reply.status < 300)
        r = read_collection(op, reply.body, &col, e);
    else if (r == 0 && reply.status != 404)
        r = remote_refused(op, &reply, e);
    if (r == 0)
        *ret = col;
    return r;
}

static int index_key(const struct remote_op *op, struct arena *a, const struct remote_collection *col, const char *key,
                     struct err *e)
{
    struct qdrant_body body;
    struct json_value result;

    qdrant_begin(&body);
    json_add_string(&body.w, "field_name", key);
    json_add_string(&body.w, "field_schema", "keyword");
    return qdrant_send(op, a, "PUT", qdrant_path(a, col, "/index?wait=true"), &body, &result, e);
}

/* Another client may make the collection at the same time: then that collection is used. */
int qdrant_make(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                struct remote_collection *ret, struct err *e)
{
    struct remote_collection col = { .name = remote_collection_name(a, ns) };
    struct qdrant_body body;
    struct json_value result;
    struct err why = { 0 };
    int r;

    qdrant_begin(&body);
    json_begin_object_as(&body.w, "vectors");
    json_add_int(&body.w, "size", (int64_t)n_dimensions);
    json_add_string(&body.w, "distance", "Cosine");
    json_end(&body.w);
    r = qdrant_send(op, a, "PUT", qdrant_path(a, &col, ""), &body, &result, &why);
    if (r < 0 && qdrant_find(op, a, ns, ret, NULL) == 0 && ret->is_there)
        return 0;
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    col.is_there = true;
    col.n_dimensions = (int64_t)n_dimensions;
    *ret = col;
    return index_key(op, a, ret, QDRANT_METADATA ".documentId", e);
}

int qdrant_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "DELETE", qdrant_path(a, col, ""), NULL, &reply, e);

    return r == 0 && reply.status >= 300 && reply.status != 404 ? remote_refused(op, &reply, e) : r;
}

int qdrant_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e)
{
    struct qdrant_body body;
    struct json_value result = { 0 };
    int r;

    qdrant_begin(&body);
    json_add_bool(&body.w, "exact", true);
    r = qdrant_send(op, a, "POST", qdrant_path(a, col, "/points/count"), &body, &result, e);
    return r < 0 ? r : remote_read_count(op, json_get(result, "count"), ret, e);
}
