/* Opening a store whose peer is a server reached over HTTP, storing in it, and its namespaces. */
#include "vector/remote/remote_store.h"

#include "vector/vector_check.h"

#include <stdlib.h>

/* ---- requests ---- */

void remote_begin(struct remote_body *b)
{
    buf_init(&b->text, LIMIT_BODY_VECTORS);
    json_write_init(&b->w, &b->text);
    json_begin_object(&b->w);
}

int remote_send(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                struct remote_body *b, struct remote_reply *ret, struct err *e)
{
    int r;

    json_end(&b->w);
    r = remote_request(op, a, method, path, &b->text, ret, e);
    buf_clear(&b->text);
    return r;
}

/* ---- upsert ---- */

/* Finds or makes the collection for these vectors. An empty collection with other dimensions is made anew. */
static int ready_collection(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                            struct remote_collection *col, struct err *e)
{
    const struct remote_peer *peer = remote_store_of(op)->peer;
    int64_t n = 0;
    int r = peer->find(op, a, ns, col, e);

    if (r == 0 && peer->make && col->is_there && col->n_dimensions != (int64_t)n_dimensions) {
        r = peer->count(op, a, col, &n, e);
        if (r == 0 && n > 0)
            r = vector_check_dimensions(ns, col->n_dimensions, n_dimensions, e);
        if (r == 0)
            r = peer->drop(op, a, col, e);
        col->is_there = false;
    }
    if (r == 0 && peer->make && !col->is_there)
        r = peer->make(op, a, ns, n_dimensions, col, e);
    return r < 0 ? r : vector_check_dimensions(ns, col->n_dimensions, n_dimensions, e);
}

static int check_directions(const struct remote_op *op, const struct vector_batch *b, struct err *e)
{
    char field[48];

    for (size_t i = 0; remote_store_of(op)->peer->needs_direction && i < b->n; i++)
        if (remote_is_zero(b->items[i].vector, b->n_dimensions)) {
            snprintf(field, sizeof(field), "vectors[%zu].vector", i);
            return err_add_field(e, field, "must not be zero throughout: %s keeps no such vectors", op->remote->label);
        }
    return 0;
}

static int put_all(const struct remote_op *op, const struct remote_put *all, struct err *e)
{
    const struct remote_peer *peer = remote_store_of(op)->peer;
    size_t n_most = peer->n_put ? peer->n_put : LIMIT_VECTORS_PER_CALL,
           n_bytes = peer->put_bytes ? peer->put_bytes : REMOTE_BODY_BYTES;
    struct remote_put part = *all;
    int r = 0;

    for (size_t i = 0; r == 0 && i < all->n; i += part.n) {
        part.items = all->items + i;
        part.n = remote_chunk(part.items, all->n - i, all->n_dimensions, n_most, n_bytes);
        r = peer->put(op, &part, e);
        if (r < 0 && i > 0)
            return err_prefix(e, r, "%zu of %zu vectors were stored before this", i, all->n);
    }
    return r;
}

int remote_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_collection col = { 0 };
    struct remote_put all = { .collection = &col, .ns = ns, .n_dimensions = b->n_dimensions };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_batch(b, e);
    if (r == 0)
        r = check_directions(&op, b, e);
    if (r < 0 || b->n == 0)
        return r;
    all.n = remote_last_of_each(a, b, &all.items);
    r = ready_collection(&op, a, ns, b->n_dimensions, &col, e);
    return r < 0 ? r : put_all(&op, &all, e);
}

/* ---- check and namespaces ---- */

int remote_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);

    return remote_store_of(&op)->peer->check(&op, a, e);
}

int remote_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                      struct field_strings *ret, struct err *e)
{
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_ids names = { .arena = a };
    int r = remote_store_of(&op)->peer->names(&op, prefix, &names, e);

    if (r < 0)
        return r;
    remote_ids_unique(&names);
    *ret = (struct field_strings){ names.items, names.n };
    return 0;
}

/* ---- opening ---- */

struct vectors *remote_close(struct vectors *v)
{
    struct remote_store *s = (struct remote_store *)v;

    remote_clear(&s->remote);
    free(s->space);
    free(s);
    return NULL;
}

static const char *text_of(struct json_value config, const char *field, const char *otherwise)
{
    const char *text = field ? json_cstr(json_get(config, field)) : NULL;

    return text && *text ? text : otherwise;
}

static int set_space(struct remote_store *s, const struct remote_kind *kind, struct json_value config, struct err *e)
{
    const char *space = text_of(config, kind->space_field, kind->space_default);

    s->space = space ? xstrdup(space) : NULL;
    if (kind->is_space_in_path && space &&
        space[strspn(space, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] != '\0')
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "%s must have letters, digits and _ only", kind->space_field);
    return 0;
}

int remote_store_open(const struct remote_kind *kind, struct json_value config, const struct guard *guard,
                      struct vectors **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_store *s = xcalloc(1, sizeof(*s));
    const char *key = text_of(config, kind->key_field, NULL);
    int r;

    s->vectors.ops = kind->ops;
    s->peer = kind->peer;
    s->remote.label = kind->label;
    s->remote.guard = guard;
    s->remote.version_header = kind->version.name;
    s->remote.version = kind->version.value;
    if (key && kind->key_prefix)
        key = arena_printf(a, "%s%s", kind->key_prefix, key);
    r = remote_init(&s->remote, json_cstr(json_get(config, "url")), kind->header, key, e);
    if (r == 0)
        r = set_space(s, kind, config, e);
    if (r < 0) {
        remote_close(&s->vectors);
        return r;
    }
    *ret = &s->vectors;
    return 0;
}
