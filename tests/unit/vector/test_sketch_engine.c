/* Queries by sketches through the engine: beside a naive search under random changes, with lists, in batches, and while
 * units are sketched. */
#include "vector/engine/quant.h"
#include "vector/engine/sketch_scan.h"
#include "sketch_rig.h"
#include "../tsan.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* --- requests that share a pass --- */

struct sharing {
    struct quant_query query;
    struct best best;
    struct scan_request request;
};

/* Of the i-th kind: with and without sketches, of an older view, with a filter's mask, with a floor only, for more
 * hits. */
static void sharing_begin(struct sharing *s, const struct slab_view *view, const float *query, size_t i,
                          const uint64_t *mask)
{
    quant_query_init(&s->query, query, N_DIMENSIONS);
    best_init(&s->best, i % 6 == 5 ? 100 : TOP_K);
    s->request = (struct scan_request){ .query = &s->query,
                                        .n = i % 6 == 1 ? view->n - 1000 : view->n,
                                        .best = &s->best,
                                        .mask = i % 6 == 2 ? mask : NULL,
                                        .is_filtered = i % 6 == 2,
                                        .sketch_kernel = sketch_kernel_best(),
                                        .deviations = 5,
                                        .n_sketched = i % 6 == 3 ? 0 : view->n_sketched - (i % 6 == 1),
                                        .n_wanted = s->best.max };
    if (i % 6 == 4) {
        s->best.floor = 0.5F;
        s->request.n_wanted = 0;
    }
}

/* Beside a pass over all codes for each alone. */
static void requests_that_share_a_pass_get_their_own_answers(void **state)
{
    vector *rows = make_rows(&kinds[1], 83, N_ROWS + SCAN_BATCH);
    struct rig *x = open_sketched(3);
    struct space *space = engine_take(engine_of(x->v), "ns");
    struct scan_request *requests[SCAN_BATCH];
    struct sharing sharing[SCAN_BATCH];
    uint64_t mask[N_ROWS / 64 + 1];
    struct vectors_db_space of;
    struct slab_view view;

    memset(mask, 0x21, sizeof(mask));
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    space_view(space, &view, &of);
    assert_int_equal(view.n_sketched, N_ROWS / SKETCH_UNIT_ROWS);
    for (size_t i = 0; i < SCAN_BATCH; i++) {
        sharing_begin(&sharing[i], &view, rows[N_ROWS + i], i, mask);
        requests[i] = &sharing[i].request;
    }
    sketch_scan_all(kernel_best(), view.slab, requests, SCAN_BATCH, view.n);
    for (size_t i = 0; i < SCAN_BATCH; i++) {
        struct sharing alone;
        struct scan_request *pointer = &alone.request;

        sharing_begin(&alone, &view, rows[N_ROWS + i], i, mask);
        alone.request.n_sketched = 0;
        scan_range(kernel_best(), view.slab, &pointer, 1, 0, view.n);
        expect_same_best(&sharing[i].best, &alone.best);
        if (i % 6 != 3)
            assert_true(sharing[i].request.n_passed > 0 && sharing[i].request.n_scored < N_ROWS / 2);
        best_clear(&alone.best);
        quant_query_clear(&alone.query);
        best_clear(&sharing[i].best);
        quant_query_clear(&sharing[i].query);
    }
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), space);
    rig_close(x);
    free(rows);
}

/* The rows of a cluster follow each other, so most blocks have none of the nearest. */
static void make_in_order_of_clusters(struct dice *dice, vector *rows, size_t n)
{
    enum { CLUSTER = 3 * SKETCH_BLOCK_ROWS };
    float centre[N_DIMENSIONS];

    for (size_t i = 0; i < n; i++) {
        if (i % CLUSTER == 0)
            dice_vector(dice, centre, N_DIMENSIONS);
        for (size_t j = 0; j < N_DIMENSIONS; j++)
            rows[i][j] = centre[j] + 0.3F * dice_float(dice);
    }
}

static void coarse_parts_leave_out_rows_that_are_far_away(void **state)
{
    vector *rows = calloc(N_ROWS, sizeof(*rows));
    struct rig *x = open_sketched(3);
    double before;

    make_in_order_of_clusters(&(struct dice){ 91 }, rows, N_ROWS);
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    before = left_out();
    assert_true(recall_of(x, rows, TOP_K, NULL) >= 0.99);
    assert_true(left_out() - before > N_QUERIES * (double)N_ROWS / 2);
    before = left_out();
    assert_true(recall_of(x, rows, TOP_K, "{\"tenth\":{\"$lt\":6}}") >= 0.99);
    assert_true(left_out() > before);
    before = left_out();
    assert_true(recall_of(x, rows, TOP_K, "{\"tenth\":1}") >= 0.99); /* too few rows for coarse parts */
    assert_true(left_out() == before);
    rig_close(x);
    free(rows);
}

/* They are passed last once coarse parts are known to be of use. */
static void rows_newer_than_all_sketches_are_found(void **state)
{
    enum { FIRST_NEWER = N_ROWS - N_ROWS % SKETCH_UNIT_ROWS };
    vector *rows = calloc(N_ROWS, sizeof(*rows));
    struct rig *x = open_sketched(3);

    make_in_order_of_clusters(&(struct dice){ 92 }, rows, N_ROWS);
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    assert_int_equal(n_units(x), FIRST_NEWER / SKETCH_UNIT_ROWS);
    for (size_t i = FIRST_NEWER; i < N_ROWS; i++) {
        struct vector_hits hits = hits_of(x, rows[i], TOP_K, false, NULL);
        struct vector_hits exact = hits_of(x, rows[i], TOP_K, true, NULL);

        assert_int_equal(strtoul(hits.items[0].id, NULL, 10), i);
        assert_int_equal(n_right(&hits, &exact), TOP_K);
    }
    rig_close(x);
    free(rows);
}

/* Ranges as lists have them begin and end within blocks of rows. */
static void ranges_that_begin_within_a_block_are_passed_once(void **state)
{
    enum { FIRST = SKETCH_UNIT_ROWS + 1030 };
    vector *rows = calloc(N_ROWS, sizeof(*rows));
    struct rig *x = open_sketched(3);
    struct space *space = engine_take(engine_of(x->v), "ns");
    struct vectors_db_space of;
    struct slab_view view;
    struct sketch_scan *scan;
    struct sharing a;

    make_in_order_of_clusters(&(struct dice){ 93 }, rows, N_ROWS);
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    space_view(space, &view, &of);
    sharing_begin(&a, &view, rows[FIRST - 1], 5, NULL);
    scan = sketch_scan_begin(kernel_best(), view.slab, &a.request);
    sketch_scan_rows(scan, 0, FIRST);
    sketch_scan_rows(scan, FIRST, N_ROWS);
    sketch_scan_end(scan);
    assert_true(a.request.n_left_out > 0);
    qsort(a.best.items, a.best.n, sizeof(*a.best.items), by_slot);
    for (size_t i = 1; i < a.best.n; i++)
        assert_true(a.best.items[i].slot > a.best.items[i - 1].slot);
    best_clear(&a.best);
    quant_query_clear(&a.query);
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), space);
    rig_close(x);
    free(rows);
}

/* The rows whose sketches are read by queries that share a pass and find them of no use. */
static size_t n_passed_in_vain(const struct slab_view *view, vector *queries)
{
    struct scan_request *requests[SCAN_BATCH];
    struct sharing sharing[SCAN_BATCH];
    size_t n = 0;

    for (size_t i = 0; i < SCAN_BATCH; i++) {
        sharing_begin(&sharing[i], view, queries[i], 0, NULL);
        sharing[i].request.deviations = 1000;
        requests[i] = &sharing[i].request;
    }
    sketch_scan_all(kernel_best(), view->slab, requests, SCAN_BATCH, view->n);
    for (size_t i = 0; i < SCAN_BATCH; i++) {
        n += sharing[i].request.n_passed;
        best_clear(&sharing[i].best);
        quant_query_clear(&sharing[i].query);
    }
    return n;
}

static void one_query_of_a_pass_tries_useless_sketches_for_all(void **state)
{
    vector *rows = make_rows(&kinds[1], 87, N_ROWS + SCAN_BATCH);
    struct rig *x = open_sketched(3);
    struct space *space = engine_take(engine_of(x->v), "ns");
    struct vectors_db_space of;
    struct slab_view view;

    put_many(x, rows, 0, N_ROWS);
    settle(x);
    space_view(space, &view, &of);
    assert_true(n_passed_in_vain(&view, rows + N_ROWS) > SCAN_BATCH * (size_t)SKETCH_UNIT_ROWS);
    assert_int_equal(n_passed_in_vain(&view, rows + N_ROWS), SKETCH_UNIT_ROWS);
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), space);
    rig_close(x);
    free(rows);
}

/* Sketches of no use to a query for many rows (here because any row may score far above its sketch) are of use to the
 * next one for few. */
static void a_query_for_many_rows_does_not_slow_the_next_for_few(void **state)
{
    vector *rows = make_rows(&kinds[1], 85, N_ROWS + 1);
    struct rig *x = open_sketched(3);
    struct space *space = engine_take(engine_of(x->v), "ns");
    static const struct {
        size_t n_wanted;
        float deviations;
        bool is_dense;
    } queries[] = { { 100, 1000, true }, { TOP_K, 3, false }, { 100, 1000, true }, { TOP_K, 3, false } };
    struct vectors_db_space of;
    struct slab_view view;

    put_many(x, rows, 0, N_ROWS);
    settle(x);
    space_view(space, &view, &of);
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        struct sharing s;
        struct scan_request *pointer = &s.request;

        sharing_begin(&s, &view, rows[N_ROWS], 0, NULL);
        s.request.n_wanted = queries[i].n_wanted;
        s.request.deviations = queries[i].deviations;
        sketch_scan_all(kernel_best(), view.slab, &pointer, 1, view.n);
        assert_true((s.request.n_scored > N_ROWS / 3) == queries[i].is_dense);
        best_clear(&s.best);
        quant_query_clear(&s.query);
    }
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), space);
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
        cmocka_unit_test(answers_are_those_of_a_naive_search_under_changes),
        cmocka_unit_test(compaction_makes_sketches_anew),
        cmocka_unit_test(lists_are_read_by_their_sketches),
        cmocka_unit_test(crowds_of_equal_rows_are_told_apart_by_their_floats),
        cmocka_unit_test(requests_that_share_a_pass_get_their_own_answers),
        cmocka_unit_test(coarse_parts_leave_out_rows_that_are_far_away),
        cmocka_unit_test(rows_newer_than_all_sketches_are_found),
        cmocka_unit_test(ranges_that_begin_within_a_block_are_passed_once),
        cmocka_unit_test(one_query_of_a_pass_tries_useless_sketches_for_all),
        cmocka_unit_test(a_query_for_many_rows_does_not_slow_the_next_for_few),
        cmocka_unit_test(units_are_sketched_under_load),
    };

    return cmocka_run_group_tests_name("sketch_engine", tests, NULL, NULL);
}
