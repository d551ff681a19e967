#include "vector/engine/engine.h"
#include "base/metrics.h"
#include "vector/engine/hybrid.h"
#include "vector/engine/lists.h"
#include "vector/engine/rerank.h"
#include "vector/engine/sketch_scan.h"
#include "vector/vector_check.h"
#include <math.h>
#include <stdlib.h>

enum {
    QUERY_DEPTH = 32,        /* at least this many of the best rows by codes are scored from their floats */
    QUERY_WIDE_DEPTH = 4096, /* the depth when codes do not separate the best rows from the rest */
    QUERY_LISTS_TOP = 64,    /* lists are tuned for the nearest ten: for more hits than this all rows are scanned */
    QUERY_TRIES = 8,         /* no change is applied during the last try, which changes have to wait for */
};

/* One try to answer a query. */
struct search {
    struct engine *engine;
    struct space *space;
    const struct vector_query *q;
    struct vectors_db_space of;
    struct slab_view view;
    uint64_t *mask; /* owned; rows that match the filter */
    size_t n_matching;
    size_t n_wanted;  /* top_k, or the depth of a hybrid search's rankings */
    bool is_thorough; /* the lists had too few rows: all rows are scanned */
    struct quant_query codes;
    float cut; /* rows left out of the last scan score at most this by their codes */
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

static bool uses_lists(const struct search *s)
{
    return s->view.slab->lists && !s->mask && !s->is_thorough && !s->q->exact && s->n_wanted <= QUERY_LISTS_TOP;
}

/* Passes the lists with the nearest centres, the nearest first. */
static void pass_nearest_lists(const struct search *s, struct sketch_scan *scan)
{
    const struct lists *lists = s->view.slab->lists;
    uint32_t *numbers = xcalloc(lists->n_probes, sizeof(*numbers));

    lists_choose(lists, s->engine->kernel, &s->codes, numbers);
    for (size_t i = 0; i < lists->n_probes; i++)
        sketch_scan_rows(scan, lists->starts[numbers[i]], lists->starts[numbers[i] + 1]);
    free(numbers);
}

/* Scans the nearest lists, and all rows added after the lists were built. */
static void scan_lists(struct search *s, struct scan_request *request)
{
    struct sketch_scan *scan = sketch_scan_begin(s->engine->kernel, s->view.slab, request);

    pass_nearest_lists(s, scan);
    sketch_scan_rows(scan, s->view.slab->n_listed, s->view.n);
    sketch_scan_end(scan);
}

/* What rows must score at least, according to the nearest lists; they are passed again with all rows. */
static float cut_of_lists(const struct search *s, const struct scan_request *request)
{
    struct scan_request near = *request;
    struct sketch_scan *scan;
    struct best best;

    best_init(&best, request->best->max);
    near.best = &best;
    near.is_filtered = true; /* whether sketches pay off in these lists tells nothing about other rows */
    scan = sketch_scan_begin(s->engine->kernel, s->view.slab, &near);
    pass_nearest_lists(s, scan);
    sketch_scan_end(scan);
    best_clear(&best);
    return near.cut;
}

/* Rows in the order of lists begin with lists that may be far away: there is a cut beforehand. */
static void scan_all(struct search *s, struct scan_request *request)
{
    _Atomic float cut = -INFINITY;

    if (s->view.slab->lists && request->n_sketched > 0 && request->n_wanted > 0) {
        atomic_store_explicit(&cut, cut_of_lists(s, request), memory_order_relaxed);
        request->common_cut = &cut;
    }
    scan_batcher_run(&s->space->batcher, s->engine->kernel, s->view.slab, request);
    request->common_cut = NULL;
}

/* Do sketches decide about too few of the matching rows, those that few others share a block with left out? */
static bool is_sparse(const struct search *s)
{
    size_t n_blocks = slab_n_words(s->view.n), n = 0;

    for (size_t i = 0; s->mask && i < n_blocks; i++) {
        size_t n_rows = (size_t)__builtin_popcountll(s->mask[i]);

        n += n_rows > SKETCH_FEW ? n_rows : 0;
    }
    return s->mask && n < n_blocks;
}

static size_t n_sketched(const struct search *s)
{
    return s->q->exact || s->engine->sketch_deviations <= 0 || is_sparse(s) ? 0 : s->view.n_sketched;
}

/* Fills `best` from the codes of the matching rows. A query with a filter scans all rows, not lists. n_wanted: rows
 * below the last of so many may be left out; 0: only rows that are not above the floor. */
static void scan(struct search *s, struct best *best, size_t n_wanted)
{
    struct scan_request request = { .query = &s->codes,
                                    .mask = s->mask ? s->mask : s->view.live,
                                    .n = s->view.n,
                                    .best = best,
                                    .helpers = s->engine->helpers,
                                    .sketch_kernel = s->engine->sketch_kernel,
                                    .deviations = s->engine->sketch_deviations,
                                    .n_sketched = n_sketched(s),
                                    .n_wanted = n_wanted,
                                    .is_filtered = s->mask };

    if (uses_lists(s))
        scan_lists(s, &request);
    else
        scan_all(s, &request);
    sketch_scan_note_scored(s->view.slab, &request);
    s->cut = request.cut;
    metric_add(s->engine->n_sketch_scored, (double)request.n_scored);
    metric_add(s->engine->n_sketch_passed, (double)request.n_passed);
    metric_add(s->engine->n_sketch_left_out, (double)request.n_left_out);
    metric_add(s->engine->n_helped, (double)request.n_helpers);
}

/* The error of a code is estimated from the rows already scored. When a skipped row may be as good as the last hit, all
 * such rows are scored from their floats too. */
static int widen(struct search *s, const struct best *narrow, struct err *e)
{
    float floor = (float)rerank_floor(&s->exact);
    float skipped = narrow->n < narrow->max ? s->cut : fmaxf(s->cut, narrow->floor);
    struct best wide;
    int r;

    if (skipped < floor || s->exact.query_norm == 0)
        return 0;
    best_init(&wide, QUERY_WIDE_DEPTH);
    wide.floor = floor;
    scan(s, &wide, 0);
    r = rerank_run(&s->exact, s->engine->db, &s->view, &s->of, &wide, e);
    best_clear(&wide);
    return r;
}

static int find_nearest(struct search *s, struct err *e)
{
    size_t depth = MIN(MAX((size_t)QUERY_DEPTH, 2 * s->n_wanted), s->n_matching);
    struct best best;
    int r;

    best_init(&best, depth);
    scan(s, &best, s->n_wanted);
    if (best.n < depth && isinf(s->cut) && uses_lists(s)) {
        s->is_thorough = true;
        best_clear(&best);
        best_init(&best, depth);
        scan(s, &best, s->n_wanted);
    }
    r = rerank_run(&s->exact, s->engine->db, &s->view, &s->of, &best, e);
    if (r == 0)
        r = widen(s, &best, e);
    metric_add(s->engine->n_float_rows, (double)s->exact.n_read);
    best_clear(&best);
    return r;
}

/* --- hybrid search --- */

/* The best matching rows by text. */
struct text_ranking {
    struct search *s;
    struct best slots; /* scores have no meaning */
    int64_t *rows;     /* owned; in order */
};

static bool is_matching(const struct search *s, size_t slot)
{
    return !s->mask || (s->mask[slot / SLAB_BLOCK_ROWS] >> slot % SLAB_BLOCK_ROWS & 1);
}

static int note_text_row(void *arg, int64_t row, struct err *e)
{
    struct text_ranking *t = arg;
    size_t slot;

    if (!slab_view_find(&t->s->view, row, &slot))
        return ENGINE_STALE;
    if (!is_matching(t->s, slot))
        return 0;
    t->rows[t->slots.n] = row;
    t->slots.items[t->slots.n++] = (struct best_slot){ NAN, (uint32_t)slot };
    return t->slots.n == t->slots.max;
}

static bool has_vector(const struct search *s)
{
    return s->q->n_dimensions > 0;
}

/* If the query has a vector, the best rows by text are also scored by the vector, and both rankings are fused. */
static int take_ranking(struct search *s, struct text_ranking *t, struct err *e)
{
    int r = 0;

    if (!has_vector(s)) {
        for (size_t i = 0; i < t->slots.n; i++)
            rerank_add(&s->exact, t->rows[i], hybrid_worth_alone(i));
        return 0;
    }
    r = rerank_run(&s->exact, s->engine->db, &s->view, &s->of, &t->slots, e);
    if (r == 0)
        hybrid_fuse(&s->exact, s->n_wanted, t->rows, t->slots.n);
    return r;
}

static int find_by_text(struct search *s, struct err *e)
{
    struct text_ranking t = { .s = s, .rows = xcalloc(s->n_wanted, sizeof(int64_t)) };
    int r;

    best_init(&t.slots, s->n_wanted);
    r = vectors_db_text_search(s->engine->db, s->of.id, s->q->text, note_text_row, &t, e);
    if (r == 0)
        r = take_ranking(s, &t, e);
    best_clear(&t.slots);
    free(t.rows);
    return r;
}

/* --- the answer --- */

static int read_hit(struct search *s, const struct rerank_item *item, struct arena *a, struct vector_hit *ret,
                    struct err *e)
{
    struct vectors_db_item row = { 0 };
    int r = 0;

    if (item->text && !s->q->with_vectors)
        row = *item->text;
    else
        r = vectors_db_get(s->engine->db, item->row, s->q->with_vectors, a, &row, e);
    if (r < 0)
        return r;
    *ret = (struct vector_hit){ row.id, item->score, row.metadata, row.vector, row.n_dimensions };
    return 0;
}

static int read_hits(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    size_t wanted = MIN((size_t)s->q->top_k, s->exact.n), n = 0;
    int r = 0;

    ret->items = arena_array(a, wanted, sizeof(*ret->items));
    for (size_t i = 0; r == 0 && i < wanted; i++)
        if (s->exact.items[i].score >= s->q->min_score)
            r = read_hit(s, &s->exact.items[i], a, &ret->items[n++], e);
    ret->n = n;
    return r;
}

static int match(struct search *s, struct err *e)
{
    const struct engine_match_request request = {
        .space = s->space, .view = &s->view, .of = &s->of, .filter = s->q->filter
    };

    s->n_matching = s->view.n_live;
    if (json_is_absent(s->q->filter) || json_length(s->q->filter) == 0)
        return 0;
    s->mask = xcalloc(slab_n_words(s->view.n), sizeof(uint64_t));
    return engine_match(s->engine, &request, s->mask, &s->n_matching, e);
}

static int search_file(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r;

    r = match(s, e);
    if (r == 0 && s->n_matching > 0 && has_vector(s))
        r = find_nearest(s, e);
    if (r == 0 && s->n_matching > 0 && s->q->text)
        r = find_by_text(s, e);
    return r < 0 ? r : read_hits(s, a, ret, e);
}

/* The view is taken first, so the file is as new as memory or newer. A row that only one of the two has makes the
 * result ENGINE_STALE. */
static int search_once(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r;

    if (!space_view(s->space, &s->view, &s->of) || !s->view.slab)
        return 0;
    if (has_vector(s)) {
        r = vector_check_dimensions(s->space->name, s->of.n_dimensions, s->q->n_dimensions, e);
        if (r < 0)
            return r;
        quant_query_init(&s->codes, s->q->vector, s->q->n_dimensions);
        rerank_init(&s->exact, s->q->vector, &s->codes, s->q->n_dimensions, s->n_wanted, a);
    }
    r = vectors_db_begin(s->engine->db, e);
    if (r < 0)
        return r;
    r = search_file(s, a, ret, e);
    vectors_db_end(s->engine->db);
    return r;
}

/* Updates the text index. Called before the search, as the update changes the file. */
static int bring_text_up(struct search *s, struct err *e)
{
    struct vectors_db_space of = { 0 };
    int r;

    r = vectors_db_find(s->engine->db, s->space->name, &of, e);
    return r < 0 || of.id == 0 ? r : vectors_db_text_ready(s->engine->db, of.id, e);
}

static int search_try(struct search *s, struct arena *a, struct vector_hits *ret, bool is_last, struct err *e)
{
    int r;

    r = engine_load(s->engine, s->space, e);
    if (r == 0 && s->q->text)
        r = bring_text_up(s, e);
    if (r < 0)
        return r;
    if (is_last)
        pthread_rwlock_wrlock(&s->space->gate);
    pace_enter(&s->engine->pace);
    r = search_once(s, a, ret, e);
    pace_leave(&s->engine->pace);
    if (is_last)
        pthread_rwlock_unlock(&s->space->gate);
    search_clear(s);
    return r;
}

/* The file shows a change before memory does: the next try comes after it. */
static int search_until_fresh(struct search *s, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int r = ENGINE_STALE;

    for (int i = 1; r == ENGINE_STALE && i <= QUERY_TRIES; i++) {
        uint64_t n_seen = space_n_applied(s->space);

        r = search_try(s, a, ret, i == QUERY_TRIES, e);
        if (r == ENGINE_STALE)
            space_await_change(s->space, n_seen);
    }
    return r;
}

int engine_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                 struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct search s = { .engine = engine_of(v), .q = q, .n_wanted = (size_t)q->top_k };
    struct vector_hits hits = { 0 };
    int r;

    r = vector_check_namespace(ns, e);
    if (r == 0)
        r = vector_check_query(q, e);
    if (r < 0)
        return r;
    if (q->text)
        s.n_wanted = MAX(s.n_wanted, (size_t)HYBRID_DEPTH);
    helpers_enter(s.engine->helpers);
    s.space = engine_take(s.engine, ns);
    r = search_until_fresh(&s, a, &hits, e);
    engine_give_back(s.engine, s.space);
    helpers_leave(s.engine->helpers);
    if (r == ENGINE_STALE)
        return err_set(e, -EUCLEAN, "STORE_DAMAGED", "the vector database lacks rows of namespace %s", ns);
    if (r == 0)
        *ret = hits;
    return r;
}
