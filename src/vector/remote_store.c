#include "vector/remote_store.h"

#include "vector/vector_check.h"

static const struct remote_peer *peer_of(const struct remote_op *op)
{
    return CONTAINER_OF(op->remote, const struct remote_store, remote)->peer;
}

struct remote_op remote_op_of(const struct vectors *v, const struct net_wait *wait)
{
    return (struct remote_op){ &((const struct remote_store *)v)->remote, wait };
}

static int count_records(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret, struct err *e)
{
    return col->is_there ? peer_of(op)->count(op, a, col, ret, e) : 0;
}

/* ---- query ---- */

struct asking { const struct remote_op *op; const struct remote_collection *col; struct remote_search search; };

static int ask_nearest(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct asking *k = arg;

    return peer_of(k->op)->nearest(k->op, k->col, &k->search, n, a, ret, e);
}

/* A filter the peer cannot decide, and few match: which ones is read here, and the peer asked for the nearest of these. */
static int find_among_matches(struct asking *k, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_search *s = &k->search;
    int r = peer_of(k->op)->collect_ids(k->op, k->col, s->filter, &s->among, e);

    if (r < 0 || s->among.n > REMOTE_CANDIDATES)
        return r < 0 ? r : remote_undecided(e);
    if (s->among.n == 0)
        *ret = (struct vector_hits){ 0 };
    return s->among.n == 0 ? 0 : remote_nearest(s->query, s->filter, true, ask_nearest, k, a, ret, e);
}

static int find_nearest(struct asking *k, int64_t n_rows, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct remote_search *s = &k->search;
    int r = remote_nearest(s->query, s->filter, remote_is_told(peer_of(k->op)->dialect, s->filter), ask_nearest, k, a, ret, e);

    if (r != -ERANGE)
        return r;
    return n_rows > REMOTE_SCAN_ROWS ? remote_undecided(e) : find_among_matches(k, a, ret, e);
}

int remote_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct vector_filter filter = { 0 };
    struct remote_collection col = { 0 };
    const struct remote_op op = remote_op_of(v, wait);
    struct asking k = { &op, &col, { q, &filter, { .arena = a } } };
    int64_t n = 0;
    int r = vector_check_search(ns, q, a, &filter, e);

    if (r == 0)
        r = peer_of(&op)->find(&op, a, ns, &col, e);
    if (r == 0)
        r = count_records(&op, a, &col, &n, e);
    if (r == 0 && n > 0)
        r = vector_check_dimensions(ns, col.n_dimensions, q->n_dimensions, e);
    if (r < 0)
        return r;
    if (n == 0)
        *ret = (struct vector_hits){ 0 };
    return n == 0 ? 0 : find_nearest(&k, n, a, ret, e);
}

/* ---- list and count ---- */

int remote_list(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct remote_op op = remote_op_of(v, wait);
    const struct remote_peer *peer = peer_of(&op);
    struct remote_collection col = { 0 };
    struct remote_ids ids = { .arena = a };
    struct vector_hits hits = { 0 };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(limit, offset, e);
    if (r == 0)
        r = peer->find(&op, a, ns, &col, e);
    if (r == 0 && col.is_there)
        r = peer->collect_ids(&op, &col, NULL, &ids, e);
    if (r == 0 && (size_t)offset < ids.n) {
        remote_ids_sort(&ids);
        r = peer->read(&op, &col, ids.items + offset, MIN(ids.n - (size_t)offset, (size_t)limit), with_vectors ? REMOTE_VECTORS : REMOTE_METADATA, a, &hits, e);
    }
    if (r < 0)
        return r;
    remote_hits_sort(&hits);
    *ret = hits;
    return 0;
}

int remote_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n, int64_t *ret_dimensions, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_collection col = { 0 };
    int64_t n = 0;
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = peer_of(&op)->find(&op, a, ns, &col, e);
    if (r == 0)
        r = count_records(&op, a, &col, &n, e);
    if (r < 0)
        return r;
    *ret_n = n;
    *ret_dimensions = n > 0 ? col.n_dimensions : 0;
    return 0;
}

/* ---- remove ---- */

/* Which of the ids are there, each once. */
static int find_ids(const struct remote_op *op, const struct remote_collection *col, const struct vector_removal *what, struct remote_ids *ids, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < what->n_ids; i += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { 0 };

        r = peer_of(op)->read(op, col, what->ids + i, MIN(what->n_ids - i, (size_t)REMOTE_ROWS_A_READ), REMOTE_IDS, scratch, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, NULL, scratch, e);
    }
    remote_ids_unique(ids);
    return r;
}

static int remove_some(const struct remote_op *op, struct arena *a, const struct remote_collection *col, const struct vector_removal *what, int64_t *ret_n,
                       struct err *e)
{
    struct remote_ids ids = { .arena = a };
    struct vector_filter filter = { 0 };
    int r = vector_filter_parse(a, what->filter, &filter, e);

    if (r == 0 && what->ids)
        r = find_ids(op, col, what, &ids, e);
    else if (r == 0 && !remote_is_void(&filter))
        r = peer_of(op)->collect_ids(op, col, &filter, &ids, e);
    if (r == 0)
        r = peer_of(op)->delete_ids(op, col, ids.items, ids.n, e);
    if (r == 0)
        *ret_n = (int64_t)ids.n;
    return r;
}

static int remove_all(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret_n, struct err *e)
{
    int64_t n = 0;
    int r = peer_of(op)->count(op, a, col, &n, e);

    if (r == 0)
        r = peer_of(op)->drop(op, a, col, e);
    if (r == 0)
        *ret_n = n;
    return r;
}

int remote_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *what, int64_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct remote_op op = remote_op_of(v, wait);
    struct remote_collection col = { 0 };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_removal(what, e);
    if (r == 0)
        r = peer_of(&op)->find(&op, a, ns, &col, e);
    if (r < 0)
        return r;
    if (!col.is_there) {
        *ret_n = 0;
        return 0;
    }
    return what->all ? remove_all(&op, a, &col, ret_n, e) : remove_some(&op, a, &col, what, ret_n, e);
}
