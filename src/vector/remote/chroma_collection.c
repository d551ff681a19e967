/* Requests to Chroma, and its collections: one for each namespace, found by its metadata `hearth_namespace`. */
#include "vector/remote/chroma.h"

enum { BATCH_DEFAULT = 1000, ID_CHARS = 64 };

#define NAMESPACE_KEY "hearth_namespace"

const char *chroma_path(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                        const char *verb)
{
    return arena_printf(a, "%s/%s/%s", chroma_of(op)->base, col->id, verb);
}

/* One request with a body; the body is freed. */
int chroma_send(const struct remote_op *op, struct arena *a, const char *path, struct buf *body,
                struct remote_reply *ret, struct err *e)
{
    int r = remote_request(op, a, "POST", path, body, ret, e);

    buf_clear(body);
    return r;
}

void chroma_begin(struct json_writer *w, struct buf *body)
{
    buf_init(body, LIMIT_BODY_VECTORS);
    json_write_init(w, body);
    json_begin_object(w);
}

int chroma_request_batch(struct chroma *c, const struct remote_op *op, struct arena *a, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "GET", "api/v2/pre-flight-checks", NULL, &reply, e);
    int64_t n = json_int(json_get(reply.body, "max_batch_size"));

    if (r == 0)
        atomic_store(&c->n_batch, n >= 1 ? (int)MIN(n, (int64_t)LIMIT_VECTORS_PER_CALL) : BATCH_DEFAULT);
    return r;
}

/* ---- collections ---- */

static bool is_cosine(struct json_value collection)
{
    struct json_value configuration = json_get(collection, "configuration_json");
    const char *hnsw = json_cstr(json_get(json_get(configuration, "hnsw"), "space")),
               *spann = json_cstr(json_get(json_get(configuration, "spann"), "space"));

    return (hnsw || spann) && (!hnsw || strcmp(hnsw, "cosine") == 0) && (!spann || strcmp(spann, "cosine") == 0);
}

const char *chroma_namespace_of(struct json_value collection)
{
    return json_cstr(json_get(json_get(collection, "metadata"), NAMESPACE_KEY));
}

int chroma_read_id(const struct remote_op *op, struct json_value collection, struct remote_collection *ret,
                   struct err *e)
{
    const char *id = json_cstr(json_get(collection, "id"));

    if (!id || !*id || strspn(id, "0123456789abcdefABCDEF-") != strlen(id) || strlen(id) > ID_CHARS)
        return remote_fault(op, e, "the id of a collection must be a UUID");
    ret->id = id;
    return 0;
}

static int read_collection(const struct remote_op *op, struct json_value from, const char *ns,
                           struct remote_collection *ret, struct err *e)
{
    const char *owner = chroma_namespace_of(from);
    struct json_value n_dimensions = json_get(from, "dimension");
    int r = chroma_read_id(op, from, ret, e);

    if (r < 0)
        return r;
    if (!owner || strcmp(owner, ns) != 0 || !is_cosine(from))
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "Chroma has a collection %s that is not of this service, or has another distance than cosine",
                       ret->name);
    ret->is_there = true;
    return json_is_absent(n_dimensions) ? 0 : remote_read_dimensions(op, n_dimensions, &ret->n_dimensions, e);
}

int chroma_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e)
{
    struct remote_collection col = { .name = remote_collection_name(a, ns) };
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "GET", arena_printf(a, "%s/%s", chroma_of(op)->base, col.name), NULL, &reply, e);

    if (r == 0 && reply.status < 300)
        r = read_collection(op, reply.body, ns, &col, e);
    else if (r == 0 && reply.status != 404)
        r = remote_refused(op, &reply, e);
    if (r == 0)
        *ret = col;
    return r;
}

int chroma_make(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e)
{
    struct remote_collection col = { .name = remote_collection_name(a, ns) };
    struct remote_reply reply = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    chroma_begin(&w, &body);
    json_add_string(&w, "name", col.name);
    json_add_bool(&w, "get_or_create", true);
    json_add_raw(&w, "configuration", "{\"hnsw\":{\"space\":\"cosine\"}}");
    json_begin_object_as(&w, "metadata");
    json_add_string(&w, NAMESPACE_KEY, ns);
    json_end(&w);
    json_end(&w);
    r = chroma_send(op, a, chroma_of(op)->base, &body, &reply, e);
    if (r == 0)
        r = read_collection(op, reply.body, ns, &col, e);
    if (r == 0)
        *ret = col;
    return r;
}

int chroma_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_call(op, a, "DELETE", arena_printf(a, "%s/%s", chroma_of(op)->base, col->name), NULL, &reply, e);

    return r == 0 && reply.status >= 300 && reply.status != 404 ? remote_refused(op, &reply, e) : r;
}

int chroma_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e)
{
    struct remote_reply reply = { 0 };
    int r = remote_request(op, a, "GET", chroma_path(op, a, col, "count"), NULL, &reply, e);

    return r < 0 ? r : remote_read_count(op, reply.body, ret, e);
}
