/* Vectors in Chroma over its REST interface v2: one collection for each namespace, found by its metadata
 * `hearth_namespace` (docs/vectors.md).
 *
 * Vectors are normalised to length one, and their original length is stored too. Metadata is stored whole as JSON text;
 * Chroma filters by flat copies of its members. Its index is approximate.
 */
#include "vector/remote/chroma.h"

#include "base/percent.h"
#include "vector/vector_check.h"

#include <stdlib.h>
#include <strings.h>

enum { COLLECTIONS_A_PAGE = 200 };

static struct chroma *of(struct vectors *v)
{
    return (struct chroma *)v;
}

static struct vectors *chroma_close(struct vectors *v)
{
    struct chroma *c = of(v);

    remote_clear(&c->store.remote);
    free(c->base);
    free(c);
    return NULL;
}

/* ---- check ---- */

static int chroma_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct chroma *c = of(v);
    struct remote_reply reply = { 0 };
    int r = remote_call(&op, a, "GET", "api/v2/heartbeat", NULL, &reply, e);

    if (r == 0 && (reply.status == 401 || reply.status == 403))
        return remote_refused(&op, &reply, e);
    if (r == 0 && json_type(json_get(reply.body, "nanosecond heartbeat")) != JSON_INT)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                       "what answers there is no Chroma of version 1.0 or newer (status %d)", reply.status);
    if (r == 0) /* checks that the database exists: a missing database only gives empty lists */
        r = remote_request(&op, a, "GET", arena_printf(a, "%.*s", (int)(strrchr(c->base, '/') - c->base), c->base),
                           NULL, &reply, e);
    if (r == 0)
        r = remote_request(&op, a, "GET", arena_printf(a, "%s?limit=1", c->base), NULL, &reply, e);
    return r < 0 ? r : chroma_request_batch(c, &op, a, e);
}

/* ---- remove and namespaces ---- */

static int delete_ids(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n,
                      struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct remote_reply reply = { 0 };
        struct json_writer w;
        struct buf body;

        chroma_begin(&w, &body);
        json_add_strings(&w, "ids", ids + i, MIN(n - i, (size_t)REMOTE_ROWS_A_READ));
        json_end(&w);
        r = chroma_send(op, a, chroma_path(op, a, col, "delete"), &body, &reply, e);
    }
    return r;
}

/* Adds the namespaces of a page's collections that are not empty. */
static int add_namespaces(const struct remote_op *op, struct arena *a, struct json_value page, const char *prefix,
                          struct remote_ids *names, struct err *e)
{
    struct json_value item;
    int r = 0;

    for (struct json_iter it = json_iter(page); r == 0 && json_next(&it, NULL, &item);) {
        const char *ns = chroma_namespace_of(item);
        struct remote_collection col = { 0 };
        int64_t n = 0;

        if (!vector_check_prefix(ns, prefix))
            continue;
        r = chroma_read_id(op, item, &col, e);
        if (r == 0)
            r = chroma_count(op, a, &col, &n, e);
        if (r == 0 && n > 0)
            r = remote_ids_add(names, ns, e);
    }
    return r;
}

static int add_page(const struct remote_op *op, int64_t offset, const char *prefix, struct remote_ids *names,
                    size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *path =
        arena_printf(a, "%s?limit=%d&offset=%lld", chroma_of(op)->base, COLLECTIONS_A_PAGE, (long long)offset);
    struct remote_reply reply = { 0 };
    int r = remote_request(op, a, "GET", path, NULL, &reply, e);

    if (r == 0)
        r = remote_read_list(op, "collections", reply.body, COLLECTIONS_A_PAGE, ret_n, e);
    return r < 0 ? r : add_namespaces(op, a, reply.body, prefix, names, e);
}

static int chroma_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                             struct field_strings *ret, struct err *e)
{
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_ids names = { .arena = a };
    size_t n_read = COLLECTIONS_A_PAGE, n_pages = 0;
    int r = 0;

    for (int64_t offset = 0; r == 0 && n_read == COLLECTIONS_A_PAGE; offset += COLLECTIONS_A_PAGE) {
        r = remote_count_page(&op, &n_pages, e);
        if (r == 0)
            r = add_page(&op, offset, prefix, &names, &n_read, e);
    }
    if (r < 0)
        return r;
    remote_ids_sort(&names);
    *ret = (struct field_strings){ names.items, names.n };
    return 0;
}

/* ---- opening ---- */

static const struct vectors_ops ops = {
    .name = "chroma",
    .close = chroma_close,
    .check = chroma_check,
    .upsert = chroma_upsert,
    .query = remote_query,
    .remove = remote_remove,
    .count = remote_count,
    .list = remote_list,
    .namespaces = chroma_namespaces,
};

static const struct remote_peer peer = {
    .dialect = &chroma_dialect,
    .find = chroma_find,
    .count = chroma_count,
    .drop = chroma_drop,
    .delete_ids = delete_ids,
    .nearest = chroma_nearest,
    .read = chroma_read,
    .collect_ids = chroma_collect_ids,
};

const struct vectors_field chroma_fields[] = {
    { "url", "Address", VECTORS_STRING, "http://localhost:8000", .is_required = true, .secrecy = VECTORS_ADDRESS },
    { "apiKey", "API key", VECTORS_PASSWORD, "only when the server asks for one", .secrecy = VECTORS_SECRET },
    { "headerName", "Header of the key", VECTORS_STRING, "x-chroma-token" },
    { "tenant", "Tenant", VECTORS_STRING, "default_tenant" },
    { "database", "Database", VECTORS_STRING, "default_database" },
    { NULL },
};

static const char *text_of(struct json_value config, const char *name, const char *otherwise)
{
    const char *text = json_cstr(json_get(config, name));

    return text && *text ? text : otherwise;
}

static void set_base(struct chroma *c, struct json_value config)
{
    struct buf path;

    buf_init(&path, LIMIT_BODY_DEFAULT);
    buf_add_str(&path, "api/v2/tenants/");
    percent_encode(&path, slice_of(text_of(config, "tenant", "default_tenant")));
    buf_add_str(&path, "/databases/");
    percent_encode(&path, slice_of(text_of(config, "database", "default_database")));
    buf_add_str(&path, "/collections");
    c->base = buf_take(&path);
}

int chroma_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct chroma *c = xcalloc(1, sizeof(*c));
    const char *header = text_of(config, "headerName", "x-chroma-token"), *key = text_of(config, "apiKey", NULL);
    int r;

    c->store.vectors.ops = &ops;
    c->store.peer = &peer;
    c->store.remote.label = "Chroma";
    c->store.remote.guard = guard;
    set_base(c, config);
    if (key && strcasecmp(header, "authorization") == 0 && !strchr(key, ' '))
        key = arena_printf(a, "Bearer %s", key);
    r = remote_init(&c->store.remote, json_cstr(json_get(config, "url")), header, key, e);
    if (r < 0) {
        chroma_close(&c->store.vectors);
        return r;
    }
    *ret = &c->store.vectors;
    return 0;
}
