#include "vector/remote/remote_store.h"

#include "vector/vector_check.h"

#include <stdlib.h>

static const struct remote_peer *peer_of(const struct remote_op *op)
{
    return remote_store_of(op)->peer;
}

struct remote_op remote_op_of(const struct vectors *v, const struct net_wait *wait)
{
    return (struct remote_op){ &((const struct remote_store *)v)->remote, wait };
}

static int count_records(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                         struct err *e)
{
    return col->is_there ? peer_of(op)->count(op, a, col, ret, e) : 0;
}

/* ---- query ---- */

struct requesting {
    const struct remote_op *op;
    const struct remote_collection *col;
    struct remote_search search;
};

static int by_score(const void *one, const void *other)
{
    double a = ((const struct vector_hit *)one)->score, b = ((const struct vector_hit *)other)->score;

    return (a < b) - (a > b);
}

/* Searches among the ids in parts and merges the best of all parts. */
static int request_among(const struct requesting *k, size_t n_part, int64_t n, struct arena *a, struct vector_hits *ret,
                         struct err *e)
{
    const struct remote_ids *ids = &k->search.among;
    struct vector_hits all = { arena_array(a, ids->n, sizeof(*all.items)), 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ids->n; i += n_part) {
        struct remote_search part = k->search;
        struct vector_hits hits = { 0 };

        part.among.items = ids->items + i;
        part.among.n = MIN(ids->n - i, n_part);
        r = peer_of(k->op)->nearest(k->op, k->col, &part, MIN(n, (int64_t)part.among.n), a, &hits, e);
        for (size_t h = 0; r == 0 && h < hits.n; h++)
            all.items[all.n++] = hits.items[h];
    }
    if (all.n > 0)
        qsort(all.items, all.n, sizeof(*all.items), by_score);
    all.n = MIN(all.n, (size_t)n);
    if (r == 0)
        *ret = all;
    return r;
}

/* Sets all scores to 0: instead of a zero query vector the peer got an arbitrary direction. */
static void forget_scores(struct vector_hits *hits)
{
    for (size_t i = 0; i < hits->n; i++)
        hits->items[i].score = 0;
}

static int request_nearest(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct requesting *k = arg;
    const struct remote_peer *peer = peer_of(k->op);
    const struct vector_query *q = k->search.query;
    int r;

    if (peer->n_among > 0 && k->search.among.n > peer->n_among)
        r = request_among(k, peer->n_among, n, a, ret, e);
    else
        r = peer->nearest(k->op, k->col, &k->search, n, a, ret, e);
    if (r == 0 && peer->needs_direction && remote_is_zero(q->vector, q->n_dimensions))
        forget_scores(ret);
    return r;
}

static int look_for(struct requesting *k, bool is_decided, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct remote_peer *peer = peer_of(k->op);
    const struct remote_looking looking = {
        .query = k->search.query,
        .filter = k->search.filter,
        .is_decided = is_decided,
        .n_most = peer->n_nearest ? peer->n_nearest : REMOTE_CANDIDATES,
        .request = request_nearest,
        .arg = k,
    };

    return remote_nearest(&looking, a, ret, e);
}

/* For a filter that the peer cannot decide and few records match: reads the matching ids, then requests the nearest
 * among them. */
static int find_among_matches(struct requesting *k, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct remote_search *s = &k->search;
    int r = peer_of(k->op)->collect_ids(k->op, k->col, s->filter, &s->among, e);

    if (r < 0 || s->among.n > REMOTE_CANDIDATES)
        return r < 0 ? r : remote_undecided(e);
    if (s->among.n == 0)
        *ret = (struct vector_hits){ 0 };
    if (s->among.n == 0)
        return 0;
    r = look_for(k, true, a, ret, e);
    return r == -ERANGE ? remote_undecided(e) : r;
}

static int find_nearest(struct requesting *k, int64_t n_rows, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = look_for(k, remote_is_reported(peer_of(k->op)->dialect, k->search.filter), a, ret, e);

    if (r != -ERANGE)
        return r;
    return n_rows > REMOTE_SCAN_ROWS ? remote_undecided(e) : find_among_matches(k, a, ret, e);
}

int remote_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                 struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct vector_filter filter = { 0 };
    struct remote_collection col = { 0 };
    const struct remote_op op = remote_op_of(v, wait);
    struct requesting k = { &op, &col, { q, &filter, { .arena = a } } };
    int64_t n = 0;
    int r = vector_check_search(ns, q, a, &filter, e);

    if (r == 0)
        r = peer_of(&op)->find(&op, a, ns, &col, e);
    if (r == 0 && peer_of(&op)->probe)
        r = col.is_there ? peer_of(&op)->probe(&op, a, &col, &n, e) : 0;
    else if (r == 0)
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

int remote_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                const struct vector_list_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct remote_op op = remote_op_of(v, wait);
    const struct remote_peer *peer = peer_of(&op);
    struct remote_collection col = { 0 };
    struct remote_ids ids = { .arena = a };
    struct vector_hits hits = { 0 };
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_page(request->limit, request->offset, e);
    if (r == 0)
        r = peer->find(&op, a, ns, &col, e);
    if (r == 0 && col.is_there)
        r = peer->collect_ids(&op, &col, NULL, &ids, e);
    if (r == 0 && (size_t)request->offset < ids.n) {
        remote_ids_sort(&ids);
        r = peer->read(&op, &col,
                       &(struct remote_read_request){
                           .ids = ids.items + request->offset,
                           .n = MIN(ids.n - (size_t)request->offset, (size_t)request->limit),
                           .parts = request->with_vectors ? REMOTE_VECTORS : REMOTE_METADATA,
                       },
                       a, &hits, e);
    }
    if (r < 0)
        return r;
    remote_hits_sort(&hits);
    *ret = hits;
    return 0;
}

int remote_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                 int64_t *ret_dimensions, struct err *e)
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

/* Finds the ids that exist, each once. */
static int find_ids(const struct remote_op *op, const struct remote_collection *col, const struct vector_removal *what,
                    struct remote_ids *ids, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < what->n_ids; i += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        const struct remote_read_request request = { .ids = what->ids + i,
                                                     .n = MIN(what->n_ids - i, (size_t)REMOTE_ROWS_A_READ),
                                                     .parts = REMOTE_IDS };
        struct vector_hits hits = { 0 };

        r = peer_of(op)->read(op, col, &request, scratch, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, NULL, scratch, e);
    }
    remote_ids_unique(ids);
    return r;
}

static int remove_some(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                       const struct vector_removal *what, int64_t *ret_n, struct err *e)
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

static int remove_all(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret_n,
                      struct err *e)
{
    int64_t n = 0;
    int r = peer_of(op)->count(op, a, col, &n, e);

    if (r == 0)
        r = peer_of(op)->drop(op, a, col, e);
    if (r == 0)
        *ret_n = n;
    return r;
}

int remote_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *what,
                  int64_t *ret_n, struct err *e)
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
