/* Inverted lists through the engine: recall, newer rows, removed rows, filters, replacement under load. */
#include "vector/engine/engine.h"
#include "vector/engine/lists.h"
#include "vector/engine/quant.h"
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_ROWS = 4000, N_DIMENSIONS = 32, N_QUERIES = 60, TOP_K = 10, BATCH = 500, LIST_ABOVE = 1500, N_MANY = 6500 };

static struct rig *open_listed(void)
{
    struct rig *x = rig_open();

    x->config.list_above_rows = LIST_ABOVE;
    rig_reopen(x);
    return x;
}

static void settle(struct rig *x)
{
    keeper_wait(engine_of(x->v)->keeper);
}

static bool has_lists(struct rig *x)
{
    struct space *s = engine_take(engine_of(x->v), "ns");
    bool has = s->slab && s->slab->lists;

    engine_give_back(engine_of(x->v), s);
    return has;
}

static void put_rows(struct rig *x, const float *rows, size_t from, size_t to)
{
    struct vector_record records[BATCH];

    for (; from < to; from += BATCH) {
        size_t n = MIN((size_t)BATCH, to - from);

        for (size_t i = 0; i < n; i++)
            records[i] =
                (struct vector_record){ arena_printf(x->a, "%zu", from + i), rows + (from + i) * N_DIMENSIONS,
                                        arena_printf(x->a, "{\"fifth\":%s}", (from + i) % 5 ? "false" : "true") };
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
}

/* --- data --- */

static void make_uniform(struct dice *dice, float *rows, size_t n)
{
    dice_vector(dice, rows, n * N_DIMENSIONS);
}

static void make_clustered(struct dice *dice, float *rows, size_t n)
{
    static float centres[40][N_DIMENSIONS];

    if (centres[0][0] == 0)
        dice_vector(dice, centres[0], 40 * N_DIMENSIONS);
    for (size_t i = 0; i < n; i++) {
        const float *centre = centres[dice_below(dice, 40)];

        for (size_t j = 0; j < N_DIMENSIONS; j++)
            rows[i * N_DIMENSIONS + j] = centre[j] + 0.3F * dice_float(dice);
    }
}

/* Mixtures of six directions, with a little noise. */
static void make_low_rank(struct dice *dice, float *rows, size_t n)
{
    static float base[6][N_DIMENSIONS];

    if (base[0][0] == 0)
        dice_vector(dice, base[0], 6 * N_DIMENSIONS);
    for (size_t i = 0; i < n; i++) {
        float weights[6];

        dice_vector(dice, weights, 6);
        for (size_t j = 0; j < N_DIMENSIONS; j++) {
            float value = 0.02F * dice_float(dice);

            for (size_t k = 0; k < 6; k++)
                value += weights[k] * base[k][j];
            rows[i * N_DIMENSIONS + j] = value;
        }
    }
}

static const struct {
    const char *name;
    void (*make)(struct dice *dice, float *rows, size_t n);
    bool wants_lists;
} kinds[] = {
    { "clustered", make_clustered, true },
    { "low rank", make_low_rank, true },
    { "uniform", make_uniform, false }, /* nothing to group: lists may be useless, and then there are none */
};

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

/* The score of the last row that belongs in the answer. */
static double last_score(const float *rows, size_t n, const float *query, size_t step)
{
    double *scores = calloc(n, sizeof(*scores)), norm = quant_norm(query, N_DIMENSIONS), last;
    size_t n_scores = 0;

    for (size_t i = 0; i < n; i += step)
        scores[n_scores++] = quant_cosine(rows + i * N_DIMENSIONS, query, norm, N_DIMENSIONS);
    qsort(scores, n_scores, sizeof(*scores), descending);
    last = scores[TOP_K - 1];
    free(scores);
    return last;
}

static double recall_of(struct rig *x, const float *rows, size_t n, const float *queries, size_t step,
                        const char *filter)
{
    size_t n_right = 0;

    for (size_t i = 0; i < N_QUERIES; i++) {
        const float *query = queries + i * N_DIMENSIONS;
        struct vector_query q = { .vector = query, .n_dimensions = N_DIMENSIONS, .top_k = TOP_K, .min_score = -2 };
        double last = last_score(rows, n, query, step);
        struct vector_hits hits;

        if (filter)
            q.filter = rig_json(x, filter);
        hits = rig_query(x, "ns", &q);
        assert_int_equal(hits.n, TOP_K);
        for (size_t j = 0; j < hits.n; j++)
            n_right += hits.items[j].score >= last;
    }
    return (double)n_right / (N_QUERIES * TOP_K);
}

static void recall_is_what_was_asked_for_on_every_kind_of_data(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct rig *x = open_listed();
        float *rows = calloc((N_ROWS + N_QUERIES) * N_DIMENSIONS, sizeof(float)),
              *queries = rows + N_ROWS * N_DIMENSIONS;
        struct dice dice = { 1234567 + i };
        double recall;

        kinds[i].make(&dice, rows, N_ROWS + N_QUERIES);
        put_rows(x, rows, 0, N_ROWS);
        settle(x);
        if (kinds[i].wants_lists)
            assert_true(has_lists(x));
        recall = recall_of(x, rows, N_ROWS, queries, 1, NULL);
        if (recall < x->config.target_recall)
            fail_msg("%s: recall %.3f", kinds[i].name, recall);
        assert_true(recall_of(x, rows, N_ROWS, queries, 5, "{\"fifth\":true}") == 1);
        assert_int_equal(rig_count(x, "ns"), N_ROWS);
        free(rows);
        rig_close(x);
    }
}

static size_t n_probes_of(struct rig *x)
{
    struct space *s = engine_take(engine_of(x->v), "ns");
    size_t n = s->slab->lists->n_probes;

    engine_give_back(engine_of(x->v), s);
    return n;
}

/* One list of the 128 has the wanted tenth of the nearest rows. */
static void lists_that_cost_little_raise_the_recall_above_the_wanted_one(void **state)
{
    struct rig *x = open_listed();
    float *rows = calloc((size_t)N_MANY * N_DIMENSIONS, sizeof(float));

    x->config.list_above_rows = N_MANY - 1; /* built once, of all rows */
    x->config.target_recall = 0.1;
    rig_reopen(x);
    make_clustered(&(struct dice){ 41 }, rows, N_MANY);
    put_rows(x, rows, 0, N_MANY);
    settle(x);
    assert_true(has_lists(x));
    assert_int_equal(n_probes_of(x), 128 / 64);
    free(rows);
    rig_close(x);
}

/* A row queried by its own vector is in the list that is searched first. */
static bool is_found(struct rig *x, const float *rows, size_t i)
{
    struct vector_query q = {
        .vector = rows + i * N_DIMENSIONS, .n_dimensions = N_DIMENSIONS, .top_k = 1, .min_score = -2
    };
    struct vector_hits hits = rig_query(x, "ns", &q);

    return hits.n == 1 && strtoul(hits.items[0].id, NULL, 10) == i;
}

/* Every step-th of the first n rows. */
static void expect_found(struct rig *x, const float *rows, size_t n, size_t step)
{
    for (size_t i = 0; i < n; i += step)
        assert_true(is_found(x, rows, i));
}

/* Groups of 20 rows that are close together: all of a group are in the same list. */
static void make_tight(struct dice *dice, float *rows, size_t n)
{
    float centre[N_DIMENSIONS];

    for (size_t i = 0; i < n; i++) {
        if (i % 20 == 0)
            dice_vector(dice, centre, N_DIMENSIONS);
        for (size_t j = 0; j < N_DIMENSIONS; j++)
            rows[i * N_DIMENSIONS + j] = centre[j] + 0.02F * dice_float(dice);
    }
}

static struct rig *open_with_sure_lists_only(void)
{
    struct rig *x = open_listed();

    x->config.list_above_rows = 4 * (N_MANY - 1);
    rig_reopen(x);
    return x;
}

static void lists_that_lose_nothing_begin_at_a_quarter_of_the_rows(void **state)
{
    struct rig *x = open_with_sure_lists_only();
    float *rows = calloc((size_t)N_MANY * N_DIMENSIONS, sizeof(float));

    make_tight(&(struct dice){ 42 }, rows, N_MANY);
    put_rows(x, rows, 0, N_MANY - BATCH);
    settle(x);
    assert_false(has_lists(x));
    put_rows(x, rows, N_MANY - BATCH, N_MANY);
    settle(x);
    assert_true(has_lists(x));
    expect_found(x, rows, N_MANY, 50);
    free(rows);
    rig_close(x);
}

static void lists_that_would_lose_rows_are_not_built_yet(void **state)
{
    struct rig *x = open_with_sure_lists_only();
    float *rows = calloc((size_t)N_MANY * N_DIMENSIONS, sizeof(float));

    make_clustered(&(struct dice){ 43 }, rows, N_MANY);
    put_rows(x, rows, 0, N_MANY);
    settle(x);
    assert_false(has_lists(x));
    free(rows);
    rig_close(x);
}

/* The rows go back to their plain order. */
static void lists_that_lose_rows_by_now_are_given_up(void **state)
{
    struct rig *x = open_with_sure_lists_only();
    float *rows = calloc((size_t)2 * N_MANY * N_DIMENSIONS, sizeof(float));

    make_tight(&(struct dice){ 44 }, rows, N_MANY);
    make_uniform(&(struct dice){ 45 }, rows + (size_t)N_MANY * N_DIMENSIONS, N_MANY);
    put_rows(x, rows, 0, N_MANY);
    settle(x);
    assert_true(has_lists(x));
    put_rows(x, rows, N_MANY, 2 * N_MANY);
    settle(x);
    assert_false(has_lists(x));
    expect_found(x, rows, 2 * N_MANY, 50);
    free(rows);
    rig_close(x);
}

static struct rig *open_clustered(float **ret_rows)
{
    struct rig *x = open_listed();
    struct dice dice = { 31 };

    *ret_rows = calloc(2 * N_ROWS * N_DIMENSIONS, sizeof(float));
    make_clustered(&dice, *ret_rows, 2 * N_ROWS);
    put_rows(x, *ret_rows, 0, N_ROWS);
    settle(x);
    assert_true(has_lists(x));
    return x;
}

static void rows_newer_than_the_lists_are_found(void **state)
{
    float *rows;
    struct rig *x = open_clustered(&rows);

    put_rows(x, rows, N_ROWS, N_ROWS + 100);
    expect_found(x, rows, N_ROWS + 100, 50);
    put_rows(x, rows, N_ROWS + 100, 2 * N_ROWS); /* enough rows to have the lists built again */
    settle(x);
    assert_true(has_lists(x));
    expect_found(x, rows, 2 * N_ROWS, 50);
    free(rows);
    rig_close(x);
}

static void removed_and_replaced_rows_leave_the_lists(void **state)
{
    float *rows;
    struct rig *x = open_clustered(&rows);
    const char *ids[] = { "10", "11", "12" };
    int64_t n;

    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = 3 }, &n, &x->e));
    assert_int_equal(n, 3);
    for (size_t i = 10; i < 13; i++)
        assert_false(is_found(x, rows, i));
    memcpy(rows, rows + 6000 * N_DIMENSIONS,
           BATCH * N_DIMENSIONS * sizeof(float)); /* other vectors for the first ids */
    put_rows(x, rows, 0, BATCH);
    expect_found(x, rows, BATCH, 20);
    assert_int_equal(rig_count(x, "ns"), N_ROWS);
    free(rows);
    rig_close(x);
}

static void gaps_are_closed_and_lists_go_with_the_rows(void **state)
{
    float *rows;
    struct rig *x = open_clustered(&rows);
    struct slab_view view;
    struct vectors_db_space of;
    struct space *s;
    int64_t n;

    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .filter = rig_json(x, "{\"fifth\":false}") }, &n,
                           &x->e));
    assert_int_equal(n, N_ROWS / 5 * 4);
    settle(x);
    assert_false(has_lists(x));
    s = engine_take(engine_of(x->v), "ns");
    assert_true(space_view(s, &view, &of));
    assert_int_equal(view.n, N_ROWS / 5);
    assert_null(view.live);
    slab_view_clear(&view);
    engine_give_back(engine_of(x->v), s);
    expect_found(x, rows, N_ROWS, 25);
    free(rows);
    rig_close(x);
}

static void rows_of_a_dropped_namespace_leave_the_file(void **state)
{
    float *rows;
    struct rig *x = open_clustered(&rows);
    bool has_more = true;
    int64_t n;

    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n, &x->e));
    assert_int_equal(n, N_ROWS);
    put_rows(x, rows, 0, 10);
    settle(x);
    MUST(vectors_db_sweep(engine_of(x->v)->db, 1, &has_more, &x->e));
    assert_false(has_more);
    assert_int_equal(rig_count(x, "ns"), 10);
    assert_true(is_found(x, rows, 3));
    free(rows);
    rig_close(x);
}

static void closing_does_not_wait_for_lists(void **state)
{
    struct rig *x = open_listed();
    float *rows = calloc(N_ROWS * N_DIMENSIONS, sizeof(float));
    struct dice dice = { 8 };

    make_clustered(&dice, rows, N_ROWS);
    put_rows(x, rows, 0, N_ROWS);
    rig_reopen(x); /* while the lists are built, or before */
    settle(x);
    assert_true(has_lists(x));
    free(rows);
    rig_close(x);
}

/* --- under load --- */

struct load {
    struct rig *x;
    const float *rows;
    atomic_size_t n_put;
    atomic_bool is_over;
    atomic_size_t n_queries, n_missed;
};

/* A row acknowledged before the query must be found, even while the lists are being replaced. */
static void *request_rows(void *arg)
{
    struct load *load = arg;
    struct vectors *v = load->x->v;
    struct dice dice = { 77 };

    while (!atomic_load(&load->is_over)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        size_t i = dice_below(&dice, atomic_load(&load->n_put));
        struct vector_query q = {
            .vector = load->rows + i * N_DIMENSIONS, .n_dimensions = N_DIMENSIONS, .top_k = 1, .min_score = -2
        };
        struct vector_hits hits = { 0 };

        if (v->ops->query(v, NULL, "ns", &q, a, &hits, NULL) < 0 || hits.n != 1 ||
            strtoul(hits.items[0].id, NULL, 10) != i)
            atomic_fetch_add(&load->n_missed, 1);
        atomic_fetch_add(&load->n_queries, 1);
    }
    return NULL;
}

static void lists_are_exchanged_under_load(void **state)
{
    enum { N_READERS = 3, ALL = 2 * N_ROWS };
    float *rows;
    struct rig *x = open_clustered(&rows);
    struct load load = { .x = x, .rows = rows, .n_put = N_ROWS };
    pthread_t readers[N_READERS];

    for (int i = 0; i < N_READERS; i++)
        pthread_create(&readers[i], NULL, request_rows, &load);
    for (size_t n = N_ROWS; n < ALL; n += BATCH) {
        put_rows(x, rows, n, n + BATCH);
        atomic_store(&load.n_put, n + BATCH);
        put_rows(x, rows, n - N_ROWS, n - N_ROWS + BATCH); /* replaced by equal ones: the old rows die */
    }
    settle(x);
    atomic_store(&load.is_over, true);
    for (int i = 0; i < N_READERS; i++)
        pthread_join(readers[i], NULL);
    assert_true(has_lists(x));
    assert_true(atomic_load(&load.n_queries) > 0);
    assert_int_equal(atomic_load(&load.n_missed), 0);
    assert_int_equal(rig_count(x, "ns"), ALL);
    free(rows);
    rig_close(x);
}

/* --- while they are built --- */

/* A kernel that blocks the keeper's thread during a build until released. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool is_held, may_go_on;
} stop = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false };

static void stop_keeper(void)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof(name));
    if (strcmp(name, "vector-keeper") != 0)
        return;
    pthread_mutex_lock(&stop.lock);
    stop.is_held = true;
    while (!stop.may_go_on)
        pthread_cond_wait(&stop.moved, &stop.lock);
    stop.is_held = false;
    pthread_mutex_unlock(&stop.lock);
}

static void stopping_dots(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out)
{
    stop_keeper();
    kernel_best()->dots(rows, stride, n_rows, query, out);
}

static const struct kernel stopping = { "stopping", NULL, stopping_dots, stopping_dots };

static bool is_keeper_held(void *arg)
{
    bool is_held;

    pthread_mutex_lock(&stop.lock);
    is_held = stop.is_held;
    pthread_mutex_unlock(&stop.lock);
    return is_held;
}

static void let_keeper_go_on(void)
{
    pthread_mutex_lock(&stop.lock);
    stop.may_go_on = true;
    pthread_cond_broadcast(&stop.moved);
    pthread_mutex_unlock(&stop.lock);
}

static void building_holds_up_neither_queries_nor_changes(void **state)
{
    struct rig *x = open_listed();
    float *rows = calloc(2 * N_ROWS * N_DIMENSIONS, sizeof(float));
    const char *ids[] = { "7" };
    struct dice dice = { 12 };
    int64_t n;

    make_clustered(&dice, rows, 2 * N_ROWS);
    settle(x);
    engine_of(x->v)->kernel = &stopping;
    put_rows(x, rows, 0, N_ROWS);
    assert_true(wait_until(is_keeper_held, NULL));
    assert_true(is_found(x, rows, 100));
    put_rows(x, rows, N_ROWS, N_ROWS + 500);
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = 1 }, &n, &x->e));
    assert_true(is_found(x, rows, N_ROWS + 100));
    assert_false(is_found(x, rows, 7));
    assert_true(is_keeper_held(NULL) && !has_lists(x));
    let_keeper_go_on();
    settle(x);
    assert_true(has_lists(x));
    assert_true(is_found(x, rows, 100) && is_found(x, rows, N_ROWS + 100) && !is_found(x, rows, 7));
    assert_int_equal(rig_count(x, "ns"), N_ROWS + 499);
    free(rows);
    rig_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_is_what_was_asked_for_on_every_kind_of_data),
        cmocka_unit_test(lists_that_cost_little_raise_the_recall_above_the_wanted_one),
        cmocka_unit_test(lists_that_lose_nothing_begin_at_a_quarter_of_the_rows),
        cmocka_unit_test(lists_that_would_lose_rows_are_not_built_yet),
        cmocka_unit_test(lists_that_lose_rows_by_now_are_given_up),
        cmocka_unit_test(rows_newer_than_the_lists_are_found),
        cmocka_unit_test(removed_and_replaced_rows_leave_the_lists),
        cmocka_unit_test(gaps_are_closed_and_lists_go_with_the_rows),
        cmocka_unit_test(rows_of_a_dropped_namespace_leave_the_file),
        cmocka_unit_test(closing_does_not_wait_for_lists),
        cmocka_unit_test(lists_are_exchanged_under_load),
        cmocka_unit_test(building_holds_up_neither_queries_nor_changes),
    };

    return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
