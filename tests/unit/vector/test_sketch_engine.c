/* Queries by sketches through the engine: recall on every kind of data, beside a naive search under random changes,
 * with lists, in batches, and while units are sketched. */
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "vector/engine/sketch.h"
#include "rig.h"
#include "../metric.h"
#include "../skip.h"
#include "../tsan.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_DIMENSIONS = 96, N_ROWS = 3 * SKETCH_UNIT_ROWS + 100, N_QUERIES = 40, TOP_K = 10, BATCH = 1000 };

typedef float vector[N_DIMENSIONS];

static struct rig *open_sketched(double deviations)
{
    struct rig *x = rig_open();

    x->config.sketch_deviations = deviations;
    rig_reopen(x);
    return x;
}

static void settle(struct rig *x)
{
    keeper_wake(engine_of(x->v)->keeper);
    keeper_wait(engine_of(x->v)->keeper);
}

static size_t n_units(struct rig *x)
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

static void put_many(struct rig *x, vector *rows, size_t from, size_t to)
{
    for (size_t n; from < to; from += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record *records;

        n = MIN((size_t)BATCH, to - from);
        records = arena_array(a, n, sizeof(*records));
        for (size_t i = 0; i < n; i++)
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), rows[from + i],
                                                 arena_printf(a, "{\"tenth\":%zu}", (from + i) % 10) };
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
}

/* --- kinds of data --- */

static void make_isotropic(struct dice *dice, vector *rows, size_t n)
{
    dice_vector(dice, rows[0], n * N_DIMENSIONS);
}

static void make_clustered(struct dice *dice, vector *rows, size_t n)
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

static void make_low_rank(struct dice *dice, vector *rows, size_t n)
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
static void make_text(struct dice *dice, vector *rows, size_t n)
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

static vector *make_rows(const struct kind *kind, uint64_t seed, size_t n)
{
    vector *rows = calloc(n, sizeof(*rows));

    kind->make(&(struct dice){ seed }, rows, n);
    return rows;
}

/* --- recall --- */

static struct vector_hits hits_of(struct rig *x, const float *query, int64_t top_k, bool exact, const char *filter)
{
    struct vector_query q = {
        .vector = query, .n_dimensions = N_DIMENSIONS, .top_k = top_k, .min_score = -2, .exact = exact
    };

    if (filter)
        q.filter = rig_json(x, filter);
    return rig_query(x, "ns", &q);
}

/* How many of the hits are as good as those of an exact query. */
static size_t n_right(const struct vector_hits *hits, const struct vector_hits *exact)
{
    size_t n = 0;

    assert_int_equal(hits->n, exact->n);
    for (size_t i = 0; i < hits->n; i++)
        n += hits->items[i].score >= exact->items[exact->n - 1].score;
    return n;
}

static double recall_of(struct rig *x, vector *queries, int64_t top_k, const char *filter)
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

static void expect_recall(struct rig *x, const struct kind *kind, vector *queries, int64_t top_k, double least)
{
    double recall = recall_of(x, queries, top_k, NULL);

    if (recall < least)
        fail_msg("%s: recall %.4f of the %lld nearest", kind->name, recall, (long long)top_k);
}

static double passed(void)
{
    return metric_of("hearth_vector_sketch_rows_total");
}

static double scored(void)
{
    return metric_of("hearth_vector_sketch_scored_rows_total");
}

static void recall_is_high_on_every_kind_of_data(void **state)
{
    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        vector *rows = make_rows(&kinds[i], 40 + i, N_ROWS + N_QUERIES);
        struct rig *x = open_sketched(3);

        put_many(x, rows, 0, N_ROWS);
        settle(x);
        assert_int_equal(n_units(x), N_ROWS / SKETCH_UNIT_ROWS);
        expect_recall(x, &kinds[i], rows + N_ROWS, 1, 0.97);
        expect_recall(x, &kinds[i], rows + N_ROWS, TOP_K, 0.99);
        expect_recall(x, &kinds[i], rows + N_ROWS, 100, 0.99);
        rig_close(x);
        free(rows);
    }
}

static void four_deviations_are_as_good_as_exact(void **state)
{
    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        vector *rows = make_rows(&kinds[i], 50 + i, N_ROWS + N_QUERIES);
        struct rig *x = open_sketched(4);

        put_many(x, rows, 0, N_ROWS);
        settle(x);
        expect_recall(x, &kinds[i], rows + N_ROWS, TOP_K, 0.997);
        rig_close(x);
        free(rows);
    }
}

static void recall_is_measured_and_reported(void **state)
{
    static const double deviations[] = { 0.01, 3 };

    for (size_t i = 0; i < ARRAY_SIZE(deviations); i++) {
        vector *rows = make_rows(&kinds[3], 55, N_ROWS);
        struct rig *x = open_sketched(deviations[i]);
        double recall;

        put_many(x, rows, 0, N_ROWS);
        settle(x);
        recall = metric_of("hearth_vector_sketch_recall");
        if (i == 0 ? recall < 0.1 || recall > 0.95 : recall < 0.99)
            fail_msg("recall %.4f with %.2f deviations", recall, deviations[i]);
        rig_close(x);
        free(rows);
    }
}

static void an_exact_query_reads_no_sketches(void **state)
{
    vector *rows = make_rows(&kinds[2], 60, N_ROWS);
    struct rig *x = open_sketched(3);
    double before;

    put_many(x, rows, 0, N_ROWS);
    settle(x);
    before = passed();
    hits_of(x, rows[3], TOP_K, true, NULL);
    assert_true(passed() == before);
    hits_of(x, rows[3], TOP_K, false, NULL);
    assert_true(passed() == before + (double)N_ROWS - N_ROWS % SKETCH_UNIT_ROWS);
    rig_close(x);
    free(rows);
}

static void without_deviations_there_are_no_sketches(void **state)
{
    vector *rows = make_rows(&kinds[2], 61, SKETCH_UNIT_ROWS);
    struct rig *x = open_sketched(0);

    put_many(x, rows, 0, SKETCH_UNIT_ROWS);
    settle(x);
    assert_int_equal(n_units(x), 0);
    rig_close(x);
    free(rows);
}

/* Data with structure has few rows scored; without any, most units are soon scored by their codes alone, without a look
 * at their sketches first. */
static void sketches_are_read_only_where_they_leave_out_rows(void **state)
{
    enum { ROUNDS = 20 };

    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        vector *rows = make_rows(&kinds[i], 70 + i, N_ROWS + N_QUERIES);
        double all = (double)ROUNDS * (N_ROWS - N_ROWS % SKETCH_UNIT_ROWS), n_passed, n_scored;
        struct rig *x = open_sketched(kinds[i].is_dense ? 4 : 3);

        put_many(x, rows, 0, N_ROWS);
        settle(x);
        for (size_t j = 0; j < ROUNDS; j++)
            hits_of(x, rows[N_ROWS + j], TOP_K, false, NULL);
        n_passed = passed();
        n_scored = scored();
        for (size_t j = 0; j < ROUNDS; j++)
            hits_of(x, rows[N_ROWS + ROUNDS + j], TOP_K, false, NULL);
        n_passed = (passed() - n_passed) / all;
        n_scored = (scored() - n_scored) / all;
        if (kinds[i].is_dense ? n_passed > 0.2 || n_scored > 1.01 : n_passed < 0.9 || n_scored > 0.4)
            fail_msg("%s: sketches of %.3f of the rows read, %.3f scored", kinds[i].name, n_passed, n_scored);
        rig_close(x);
        free(rows);
    }
}

/* --- beside a naive search --- */

enum { N_IDS = 2 * SKETCH_UNIT_ROWS, MODEL_STEPS = TENTH_UNDER_TSAN(120) };

struct model {
    struct rig *x;
    vector *rows;
    bool *is_there;
    struct dice dice;
    size_t n_right, n_all;
};

static void model_upsert(struct model *m, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_record *records = arena_array(a, n, sizeof(*records));
    struct rig *x = m->x;

    for (size_t i = 0; i < n; i++) {
        size_t id = dice_below(&m->dice, N_IDS);

        make_clustered(&m->dice, &m->rows[id], 1);
        m->is_there[id] = true;
        records[i] = (struct vector_record){ arena_printf(a, "%zu", id), m->rows[id],
                                             arena_printf(a, "{\"tenth\":%zu}", id % 10) };
    }
    MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
}

static void model_remove(struct model *m)
{
    const char *ids[400];
    struct rig *x = m->x;
    int64_t n_removed;

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        size_t id = dice_below(&m->dice, N_IDS);

        ids[i] = arena_printf(x->a, "%zu", id);
        m->is_there[id] = false;
    }
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = ARRAY_SIZE(ids) },
                           &n_removed, &x->e));
}

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

/* Scores of the rows that match, best first; free() them. tenth: a filter, or -1. */
static double *naive_scores(const struct model *m, const float *query, int tenth, size_t *ret_n)
{
    double *scores = calloc(N_IDS, sizeof(*scores)), norm = quant_norm(query, N_DIMENSIONS);
    size_t n = 0;

    for (size_t i = 0; i < N_IDS; i++)
        if (m->is_there[i] && (tenth < 0 || i % 10 == (size_t)tenth))
            scores[n++] = quant_cosine(m->rows[i], query, norm, N_DIMENSIONS);
    qsort(scores, n, sizeof(*scores), falling);
    *ret_n = n;
    return scores;
}

static void check_hits(struct model *m, const struct vector_hits *hits, const float *query, int tenth)
{
    for (size_t i = 0; i < hits->n; i++) {
        size_t id = strtoul(hits->items[i].id, NULL, 10);

        assert_true(id < N_IDS && m->is_there[id] && (tenth < 0 || id % 10 == (size_t)tenth));
        assert_true(hits->items[i].score ==
                    quant_cosine(m->rows[id], query, quant_norm(query, N_DIMENSIONS), N_DIMENSIONS));
    }
}

static void model_query(struct model *m)
{
    int tenth = dice_below(&m->dice, 3) == 0 ? (int)dice_below(&m->dice, 10) : -1;
    const char *filter = tenth < 0 ? NULL : arena_printf(m->x->a, "{\"tenth\":%d}", tenth);
    bool exact = dice_below(&m->dice, 4) == 0;
    struct vector_hits hits;
    vector query;
    double *scores;
    size_t n;

    make_clustered(&m->dice, &query, 1);
    hits = hits_of(m->x, query, TOP_K, exact, filter);
    scores = naive_scores(m, query, tenth, &n);
    assert_int_equal(hits.n, MIN(n, (size_t)TOP_K));
    check_hits(m, &hits, query, tenth);
    for (size_t i = 0; i < hits.n; i++) {
        bool is_right = hits.items[i].score >= scores[hits.n - 1];

        assert_true(is_right || !exact);
        m->n_right += is_right;
        m->n_all++;
    }
    free(scores);
}

static void model_step(struct model *m)
{
    size_t roll = dice_below(&m->dice, 100);

    if (roll < 20)
        model_upsert(m, 1 + dice_below(&m->dice, 500));
    else if (roll < 30)
        model_remove(m);
    else if (roll < 34)
        rig_reopen(m->x);
    else
        model_query(m);
    if (roll % 2)
        settle(m->x);
    m->x->a = arena_free(m->x->a);
    m->x->a = arena_new();
}

static void answers_are_those_of_a_naive_search_under_changes(void **state)
{
    struct model m = { .x = open_sketched(3), .dice = { 99 } };

    m.rows = calloc(N_IDS, sizeof(*m.rows));
    m.is_there = calloc(N_IDS, sizeof(*m.is_there));
    for (int i = 0; i < 10; i++)
        model_upsert(&m, N_IDS / 5);
    settle(m.x);
    assert_true(n_units(m.x) > 0);
    for (int i = 0; i < MODEL_STEPS; i++)
        model_step(&m);
    if (m.n_right < m.n_all * 0.99)
        fail_msg("%zu of %zu hits are among the nearest", m.n_right, m.n_all);
    rig_close(m.x);
    free(m.rows);
    free(m.is_there);
}

/* --- removed rows, compaction, lists --- */

static void compaction_makes_sketches_anew(void **state)
{
    vector *rows = make_rows(&kinds[2], 80, N_ROWS + N_QUERIES);
    struct rig *x = open_sketched(3);
    int64_t n;

    put_many(x, rows, 0, N_ROWS);
    settle(x);
    MUST(x->v->ops->remove(x->v, NULL, "ns",
                           &(struct vector_removal){ .filter = rig_json(x, "{\"tenth\":{\"$lt\":3}}") }, &n, &x->e));
    assert_true(recall_of(x, rows + N_ROWS, TOP_K, NULL) >= 0.99);
    settle(x);
    assert_int_equal(n_units(x), (N_ROWS - (size_t)n) / SKETCH_UNIT_ROWS);
    assert_true(recall_of(x, rows + N_ROWS, TOP_K, NULL) >= 0.99);
    assert_true(recall_of(x, rows + N_ROWS, TOP_K, "{\"tenth\":7}") >= 0.99);
    rig_close(x);
    free(rows);
}

static void lists_are_read_by_their_sketches(void **state)
{
    vector *rows = make_rows(&kinds[2], 81, N_ROWS + N_QUERIES);
    struct rig *x = open_sketched(3);
    double before, recall;

    x->config.list_above_rows = 2 * SKETCH_UNIT_ROWS;
    rig_reopen(x);
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    assert_int_equal(n_units(x), N_ROWS / SKETCH_UNIT_ROWS);
    before = passed();
    recall = recall_of(x, rows + N_ROWS, TOP_K, NULL);
    if (recall < x->config.target_recall)
        fail_msg("recall %.3f", recall);
    assert_true(passed() > before);
    assert_true(passed() - before < (double)N_QUERIES * N_ROWS / 2); /* some lists, not all rows */
    rig_close(x);
    free(rows);
}

/* Many equal rows: more belong into the answer than are scored from their floats at first. */
static void crowds_of_equal_rows_are_told_apart_by_their_floats(void **state)
{
    vector *rows = make_rows(&kinds[2], 82, N_ROWS);
    struct rig *x = open_sketched(3);
    struct vector_hits hits;

    for (size_t i = 100; i < 2100; i++) {
        memcpy(rows[i], rows[0], sizeof(rows[i]));
        rows[i][i % N_DIMENSIONS] += 1e-4F * (float)(i % 7);
    }
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    hits = hits_of(x, rows[0], TOP_K, false, NULL);
    assert_int_equal(hits.n, TOP_K);
    for (size_t i = 0; i < hits.n; i++)
        assert_true(hits.items[i].score ==
                    quant_cosine(rows[0], rows[0], quant_norm(rows[0], N_DIMENSIONS), N_DIMENSIONS));
    rig_close(x);
    free(rows);
}

/* --- under load --- */

struct load {
    struct rig *x;
    vector *rows;
    atomic_size_t n_put;
    atomic_bool is_over;
    atomic_size_t n_queries, n_missed;
};

static void *query_rows(void *arg)
{
    struct load *load = arg;
    struct vectors *v = load->x->v;
    struct dice dice = { 5 };

    while (!atomic_load(&load->is_over)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        size_t i = dice_below(&dice, atomic_load(&load->n_put));
        struct vector_query q = { .vector = load->rows[i], .n_dimensions = N_DIMENSIONS, .top_k = 1, .min_score = -2 };
        struct vector_hits hits = { 0 };

        if (v->ops->query(v, NULL, "ns", &q, a, &hits, NULL) < 0 || hits.n != 1 ||
            strtoul(hits.items[0].id, NULL, 10) != i)
            atomic_fetch_add(&load->n_missed, 1);
        atomic_fetch_add(&load->n_queries, 1);
    }
    return NULL;
}

/* Each row is found by its own vector while units are sketched, replaced rows die and the rows are compacted. */
static void units_are_sketched_under_load(void **state)
{
    enum { N_READERS = 3, N_FIRST = 500 };
    struct load load = { .x = open_sketched(3), .rows = make_rows(&kinds[2], 90, N_ROWS), .n_put = N_FIRST };
    pthread_t readers[N_READERS];

    put_many(load.x, load.rows, 0, N_FIRST);
    for (int i = 0; i < N_READERS; i++)
        pthread_create(&readers[i], NULL, query_rows, &load);
    for (size_t n = N_FIRST, to; n < N_ROWS; n = to) {
        to = MIN(n + BATCH, (size_t)N_ROWS);
        put_many(load.x, load.rows, n, to);
        atomic_store(&load.n_put, to);
        put_many(load.x, load.rows, n - N_FIRST, n); /* replaced by equal ones: the old rows die */
    }
    settle(load.x);
    atomic_store(&load.is_over, true);
    for (int i = 0; i < N_READERS; i++)
        pthread_join(readers[i], NULL);
    assert_true(n_units(load.x) >= N_ROWS / SKETCH_UNIT_ROWS);
    assert_true(atomic_load(&load.n_queries) > 0);
    assert_int_equal(atomic_load(&load.n_missed), 0);
    rig_close(load.x);
    free(load.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_is_high_on_every_kind_of_data),
        cmocka_unit_test(four_deviations_are_as_good_as_exact),
        cmocka_unit_test(recall_is_measured_and_reported),
        cmocka_unit_test(an_exact_query_reads_no_sketches),
        cmocka_unit_test(without_deviations_there_are_no_sketches),
        cmocka_unit_test(sketches_are_read_only_where_they_leave_out_rows),
        cmocka_unit_test(answers_are_those_of_a_naive_search_under_changes),
        cmocka_unit_test(compaction_makes_sketches_anew),
        cmocka_unit_test(lists_are_read_by_their_sketches),
        cmocka_unit_test(crowds_of_equal_rows_are_told_apart_by_their_floats),
        cmocka_unit_test(units_are_sketched_under_load),
    };

    return cmocka_run_group_tests_name("sketch_engine", tests, NULL, NULL);
}
