#include "vector/engine/engine.h"
#include "vector/vector_check.h"

bool engine_is_slow(struct vectors *v, const char *ns)
{
    struct engine *engine = engine_of(v);
    struct space *s = engine_take(engine, ns);
    bool is_loaded = space_is_loaded(s);
    struct vectors_db_space of = { 0 };

    engine_give_back(engine, s);
    return !is_loaded && vectors_db_find(engine->db, ns, &of, NULL) == 0 && of.n_rows > ENGINE_QUICK_ROWS;
}

int engine_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                 int64_t *ret_dimensions, struct err *e)
{
    struct vectors_db_space of = { 0 };
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vectors_db_find(engine_of(v)->db, ns, &of, e);
    if (r < 0)
        return r;
    *ret_n = of.n_rows;
    *ret_dimensions = of.n_dimensions;
    return 0;
}

int engine_bytes(struct vectors *v, const char *prefix, int64_t *ret, struct err *e)
{
    return vectors_db_bytes(engine_of(v)->db, prefix, ret, e);
}

static struct vector_hits hits_of(const struct vectors_db_item *items, size_t n, struct arena *a)
{
    struct vector_hits hits = { arena_array(a, n, sizeof(*hits.items)), n };

    for (size_t i = 0; i < n; i++)
        hits.items[i] = (struct vector_hit){ .id = items[i].id,
                                             .metadata = items[i].metadata,
                                             .vector = items[i].vector,
                                             .n_dimensions = items[i].n_dimensions };
    return hits;
}

int engine_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                const struct vector_list_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct engine *engine = engine_of(v);
    struct vectors_db_space of = { 0 };
    struct vectors_db_item *items = NULL;
    size_t n = 0;
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vector_check_page(request->limit, request->offset, e);
    if (r == 0)
        r = vectors_db_find(engine->db, ns, &of, e);
    if (r == 0 && of.id != 0)
        r = vectors_db_list(engine->db,
                            &(struct vectors_db_list_request){ .space_id = of.id,
                                                               .limit = request->limit,
                                                               .offset = request->offset,
                                                               .with_vectors = request->with_vectors },
                            a, &items, &n, e);
    if (r == 0)
        *ret = hits_of(items, n, a);
    return r;
}

int engine_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                      struct field_strings *ret, struct err *e)
{
    return vectors_db_names(engine_of(v)->db, prefix, a, ret, e);
}
