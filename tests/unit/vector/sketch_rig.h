/* Data with and without structure, a store with sketches that holds it, and the recall of its answers. For tests of one
 * thread; asserts. */
#pragma once

#include "../metric.h"
#include "vector/engine/engine.h"
#include "vector/engine/sketch.h"
#include "rig.h"

enum { N_DIMENSIONS = 96, N_ROWS = 3 * SKETCH_UNIT_ROWS + 100, N_QUERIES = 40, TOP_K = 10, BATCH = 1000 };

typedef float vector[N_DIMENSIONS];

static inline struct rig *open_sketched(double deviations)
{
    struct rig *x = rig_open();

    x->config.sketch_deviations = deviations;
    rig_reopen(x);
    return x;
}

static inline void settle(struct rig *x)
{
    keeper_wake(engine_of(x->v)->keeper);
    keeper_wait(engine_of(x->v)->keeper);
}

static inline size_t n_units(struct rig *x)
{
    struct space *s = engine_take(engine_of(x->v), "ns");
    struct vectors_db_space of;
    struct slab_view view;
    size_t n;

    space_view(s, &view, &of);
    n = view.n_sketched;
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), s);
    return n;
}

static inline void put_many(struct rig *x, vector *rows, size_t from, size_t to)
{
    for (size_t n; from < to; from += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record *records;

        n = MIN((size_t)BATCH, to - from);
        records = arena_array(a, n, sizeof(*records));
        for (size_t i = 0; i < n; i++)
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), rows[from + i],
                                                 arena_printf(a, "{\"tenth\":%zu,\"hundredth\":%zu}", (from + i) % 10,
                                                              (from + i) % 100) };
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
}

/* --- kinds of data --- */

static inline void make_isotropic(struct dice *dice, vector *rows, size_t n)
{
    dice_vector(dice, rows[0], n * N_DIMENSIONS);
}

static inline void make_clustered(struct dice *dice, vector *rows, size_t n)
{
    enum { N_CENTRES = 60 };
    vector *centres = calloc(N_CENTRES, sizeof(*centres));

    make_isotropic(&(struct dice){ 21 }, centres, N_CENTRES);
    for (size_t i = 0; i < n; i++) {
        const float *centre = centres[dice_below(dice, N_CENTRES)];

        for (size_t j = 0; j < N_DIMENSIONS; j++)
            rows[i][j] = centre[j] + 0.7F * dice_float(dice);
    }
    free(centres);
}

static inline void make_low_rank(struct dice *dice, vector *rows, size_t n)
{
    enum { RANK = 8 };
    vector base[RANK];

    make_isotropic(&(struct dice){ 22 }, base, RANK);
    for (size_t i = 0; i < n; i++) {
        float weights[RANK];

        dice_vector(dice, weights, RANK);
        for (size_t j = 0; j < N_DIMENSIONS; j++) {
            rows[i][j] = 0.2F * dice_float(dice);
            for (size_t k = 0; k < RANK; k++)
                rows[i][j] += weights[k] * base[k][j];
        }
    }
}

/* As lexical embeddings of texts: a few words each, frequent ones more often, each word three numbers. */
static inline void make_text(struct dice *dice, vector *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memset(rows[i], 0, sizeof(rows[i]));
        for (size_t words = 4 + dice_below(dice, 8); words > 0; words--) {
            struct dice word = { 1 + dice_below(dice, 1 + dice_below(dice, 1 + dice_below(dice, 900))) };

            for (size_t k = 0; k < 20; k++)
                dice_next(&word);
            for (size_t k = 0; k < 3; k++)
                rows[i][dice_below(&word, N_DIMENSIONS)] += dice_below(&word, 2) ? 1 : -1;
        }
        rows[i][dice_below(dice, N_DIMENSIONS)] += 0.01F;
    }
}

static const struct kind {
    const char *name;
    void (*make)(struct dice *dice, vector *rows, size_t n);
    bool is_dense; /* no structure: sketches leave too many candidates */
} kinds[] = {
    { "text", make_text, false },
    { "low rank", make_low_rank, false },
    { "clustered", make_clustered, false },
    { "isotropic", make_isotropic, true },
};

static inline vector *make_rows(const struct kind *kind, uint64_t seed, size_t n)
{
    vector *rows = calloc(n, sizeof(*rows));

    kind->make(&(struct dice){ seed }, rows, n);
    return rows;
}

/* --- recall --- */

static inline struct vector_hits hits_of(struct rig *x, const float *query, int64_t top_k, bool exact,
                                         const char *filter)
{
    struct vector_query q = {
        .vector = query, .n_dimensions = N_DIMENSIONS, .top_k = top_k, .min_score = -2, .exact = exact
    };

    if (filter)
        q.filter = rig_json(x, filter);
    return rig_query(x, "ns", &q);
}

/* How many of the hits are as good as those of an exact query. */
static inline size_t n_right(const struct vector_hits *hits, const struct vector_hits *exact)
{
    size_t n = 0;

    assert_int_equal(hits->n, exact->n);
    for (size_t i = 0; i < hits->n; i++)
        n += hits->items[i].score >= exact->items[exact->n - 1].score;
    return n;
}

static inline double recall_of(struct rig *x, vector *queries, int64_t top_k, const char *filter)
{
    size_t n = 0, n_all = 0;

    for (size_t i = 0; i < N_QUERIES; i++) {
        struct vector_hits hits = hits_of(x, queries[i], top_k, false, filter);
        struct vector_hits exact = hits_of(x, queries[i], top_k, true, filter);

        n += n_right(&hits, &exact);
        n_all += exact.n;
    }
    return (double)n / (double)n_all;
}

static inline void expect_recall(struct rig *x, const struct kind *kind, vector *queries, int64_t top_k, double least)
{
    double recall = recall_of(x, queries, top_k, NULL);

    if (recall < least)
        fail_msg("%s: recall %.4f of the %lld nearest", kind->name, recall, (long long)top_k);
}

static inline int by_slot(const void *a, const void *b)
{
    const struct best_slot *x = a, *y = b;

    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* The same rows with the same scores; both are sorted. */
static inline void expect_same_best(struct best *a, struct best *b)
{
    assert_int_equal(a->n, b->n);
    qsort(a->items, a->n, sizeof(*a->items), by_slot);
    qsort(b->items, b->n, sizeof(*b->items), by_slot);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->items[i].slot, b->items[i].slot);
        assert_true(a->items[i].score == b->items[i].score);
    }
}

static inline double passed(void)
{
    return metric_of("hearth_vector_sketch_rows_total");
}

static inline double scored(void)
{
    return metric_of("hearth_vector_sketch_scored_rows_total");
}

static inline double left_out(void)
{
    return metric_of("hearth_vector_sketch_left_out_rows_total");
}
