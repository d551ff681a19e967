#include "vector/engine.h"
#include "vector/lists.h"
#include "vector/rerank.h"
#include "vector/vector_check.h"
#include <sched.h>
#include <stdlib.h>

enum {
    QUERY_DEPTH = 32,                   /* at least so many of the best by codes are scored from their floats */
    QUERY_WIDE_DEPTH = 4096,            /* when codes cannot tell the best from the rest */
    QUERY_LISTS_TOP = 64,               /* lists are measured by the nearest ten: who wants many more gets all rows scanned */
    QUERY_TRIES = 4,                    /* the last with the namespace at rest */
};

/* One try to answer a query. */
struct search {
    struct engine *engine;
    struct space *space;
    const struct vector_query *q;
    struct vectors_db_space of;
    struct slab_view view;
    uint64_t *mask;                     /* owned; of the filter */
    size_t n_matching;
    struct quant_query codes;
    struct rerank exact;
};

static void search_clear(struct search *s)
{
    rerank_clear(&s->exact);
    quant_query_clear(&s->codes);
    slab_view_clear(&s->view);
    free(s->mask);
    s->mask = NULL;
}

/* The lists with the nearest centres, and all rows that came after the lists were built. */
static void scan_lists(struct search *s, struct scan_ask *ask)
{
    const struct slab *slab = s->view.slab;
    const struct lists *lists = slab->lists;
    uint32_t *numbers = xcalloc(lists->n_probes, sizeof(*numbers));

    lists_choose(lists, s->engine->kernel, &s->codes, numbers);
    for (size_t i = 0; i < lists->n_probes; i++)
        scan_range(s->engine->kernel, slab, &ask, 1, lists->starts[numbers[i]], lists->starts[numbers[i] + 1]);
    scan_range(s->engine->kernel, slab, &ask, 1, slab->n_listed, s->view.n);
    free(numbers);
}

/* Fills `best` from the codes of the rows that match. A filter is always decided among all rows. */
static void scan(struct search *s, struct best *best)
{
    struct scan_ask ask = { .query = &s->codes, .mask = s->mask ? s->mask : s->view.live, .n = s->view.n, .best = best };

    if (s->view.slab->lists && !s->mask && s->q->top_k <= QUERY_LISTS_TOP)
        scan_lists(s, &ask);
    else
        scan_desk_run(&s->space->desk, s->engine->kernel, s->view.slab, &ask);
}

/* Codes may misjudge a row by about as much as they misjudged those scored. When a row that was left out may be as good as
 * the last of the answer, all that may be are scored too. */
static int widen(struct search *s, const struct best *narrow, struct err *e)
{
    size_t wanted = MIN((size_t)s->q->top_k, s->exact.n);
    float floor = (float)(s->exact.items[wanted - 1].score - rerank_margin(&s->exact));
    struct best wide;
    int r;

    if (narrow->n < narrow->max || narrow->floor < floor || s->exact.query_norm == 0)
        return 0;
    best_init(&wide, QUERY_WIDE_DEPTH);
    wide.floor = floor;
    scan(s, &wide);
    r = rerank_run(&s->exact, s->engine->db, &s->view, &s->of, &wide, e);
    best_clear(&wide);
    return r;
}

static int find_nearest(struct search *s, struct err *e)
{
    size_t depth = MAX((size_t)QUERY_DEPTH, 2 * (size_t)s->q->top_k);
    struct best best;
    int r;

    best_init(&best, MIN(depth, s->n_matching));
    scan(s, &best);
    r = rerank_run(&s->exact, s->engine->db, &s->view, &s->of, &best, e);
    if (r == 0)
        r = widen(s, &best, e);
    best_clear(&best);
    return r;
}

static int read_hit(struct search *s, const struct rerank_item *item, struct arena *a, struct vector_hit *ret, struct err *e)
{
    struct vectors_db_item row = { 0 };
    int r;

    r = vectors_db_get(s->engine->db, item->row, s->q->with_vectors, a, &row, e);
    if (r < 0)
        return r;
    *ret = (struct vector_hit){ row.id, item->score, row.metadata, row.vector };
    return 0;
}

static int read_hits(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    size_t wanted = MIN((size_t)s->q->top_k, s->exact.n), n = 0;
    int r = 0;

    ret->items = arena_array(a, wanted, sizeof(*ret->items));
    while (r == 0 && n < wanted && s->exact.items[n].score >= s->q->min_score) {
        r = read_hit(s, &s->exact.items[n], a, &ret->items[n], e);
        n++;
    }
    ret->n = n;
    return r;
}

static int match(struct search *s, struct err *e)
{
    s->n_matching = s->view.n_live;
    if (json_is_absent(s->q->filter) || json_length(s->q->filter) == 0)
        return 0;
    s->mask = xcalloc(slab_n_words(s->view.n), sizeof(uint64_t));
    return engine_match(s->engine, s->space, &s->view, &s->of, s->q->filter, s->mask, &s->n_matching, e);
}

static int search_file(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r;

    r = match(s, e);
    if (r == 0 && s->n_matching > 0)
        r = find_nearest(s, e);
    return r < 0 ? r : read_hits(s, a, ret, e);
}

/* The view first: the file is then as new as memory or newer, and rows that only one of them has are told by that. */
static int search_once(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r;

    if (!space_view(s->space, &s->view, &s->of) || !s->view.slab)
        return 0;
    r = vector_check_dimensions(s->space->name, s->of.n_dimensions, s->q->n_dimensions, e);
    if (r < 0)
        return r;
    quant_query_init(&s->codes, s->q->vector, s->q->n_dimensions);
    rerank_init(&s->exact, s->q->vector, s->q->n_dimensions);
    r = vectors_db_begin(s->engine->db, e);
    if (r < 0)
        return r;
    r = search_file(s, a, ret, e);
    vectors_db_end(s->engine->db);
    return r;
}

static int search_try(struct search *s, struct arena *a, struct vector_hits *ret, bool is_last, struct err *e)
{
    int r;

    r = engine_load(s->engine, s->space, e);
    if (r < 0)
        return r;
    if (is_last)
        pthread_rwlock_wrlock(&s->space->gate);
    r = search_once(s, a, ret, e);
    if (is_last)
        pthread_rwlock_unlock(&s->space->gate);
    search_clear(s);
    return r;
}

int engine_query(struct vectors *v, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret,
                 struct err *e)
{
    struct search s = { .engine = engine_of(v), .q = q };
    struct vector_hits hits = { 0 };
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vector_check_query(q, e);
    if (r < 0)
        return r;
    s.space = engine_take(s.engine, ns);
    r = ENGINE_STALE;
    for (int i = 1; r == ENGINE_STALE && i <= QUERY_TRIES; i++) {
        if (i > 1)
            sched_yield();              /* the thread whose change is in the file but not in memory yet */
        r = search_try(&s, a, &hits, i == QUERY_TRIES, e);
    }
    engine_give_back(s.engine, s.space);
    if (r == ENGINE_STALE)
        return err_set(e, -EUCLEAN, "STORE_DAMAGED", "the vector database lacks rows of namespace %s", ns);
    if (r == 0)
        *ret = hits;
    return r;
}
