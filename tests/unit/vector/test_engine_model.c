/* Random operations on the embedded engine and on a naive store that keeps everything in an array. */
#include "vector/engine/quant.h"
#include "rig.h"
#include "../tsan.h"

enum { N_IDS = 400, N_DIMENSIONS = 24, MAX_BATCH = 40, N_STEPS = TENTH_UNDER_TSAN(1500), N_DOCUMENTS = 9 };

struct model_row {
    bool is_there;
    float vector[N_DIMENSIONS];
    int document, page;
};

struct model {
    struct rig *x;
    int64_t least_top_k; /* of the queries: small ones use the lists, if any, larger ones scan all rows */
    struct dice dice;
    struct model_row rows[N_IDS];
};

static const char *id_of(struct model *m, size_t i)
{
    return arena_printf(m->x->a, "id-%zu", i);
}

static size_t model_count(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < N_IDS; i++)
        n += m->rows[i].is_there;
    return n;
}

/* --- the operations --- */

/* Some vectors are close to an earlier one, some are zero: ties and clusters. */
static void random_vector(struct model *m, float *vector)
{
    const struct model_row *other = &m->rows[dice_below(&m->dice, N_IDS)];

    dice_vector(&m->dice, vector, N_DIMENSIONS);
    if (dice_below(&m->dice, 4) == 0)
        for (size_t i = 0; i < N_DIMENSIONS; i++)
            vector[i] = other->vector[i] + 0.001F * vector[i];
    if (dice_below(&m->dice, 50) == 0)
        memset(vector, 0, N_DIMENSIONS * sizeof(*vector));
}

static void upsert(struct model *m)
{
    struct vector_record records[MAX_BATCH];
    size_t n = 1 + dice_below(&m->dice, MAX_BATCH);
    struct rig *x = m->x;

    for (size_t i = 0; i < n; i++) {
        size_t id = dice_below(&m->dice, N_IDS);
        struct model_row *row = &m->rows[id];
        float *vector = arena_array(x->a, N_DIMENSIONS, sizeof(float));

        row->is_there = true;
        row->document = (int)dice_below(&m->dice, N_DOCUMENTS);
        row->page = (int)dice_below(&m->dice, 100);
        random_vector(m, vector);
        memcpy(row->vector, vector, sizeof(row->vector));
        records[i] = (struct vector_record){
            id_of(m, id), vector, arena_printf(x->a, "{\"documentId\":\"d%d\",\"page\":%d}", row->document, row->page)
        };
    }
    MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
}

static void remove_ids(struct model *m)
{
    const char *ids[MAX_BATCH];
    struct rig *x = m->x;
    size_t n = 1 + dice_below(&m->dice, MAX_BATCH);
    int64_t n_expected = 0, n_removed = -1;

    for (size_t i = 0; i < n; i++) {
        size_t id = dice_below(&m->dice, N_IDS);

        ids[i] = id_of(m, id);
        n_expected += m->rows[id].is_there;
        m->rows[id].is_there = false;
    }
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = n }, &n_removed, &x->e));
    assert_int_equal(n_removed, n_expected);
}

struct filter {
    int document, page;
    const char *text;
}; /* -1: no such condition; page: at least */

static struct filter random_filter(struct model *m)
{
    struct filter f = { -1, -1, NULL };

    if (dice_below(&m->dice, 2))
        f.document = (int)dice_below(&m->dice, N_DOCUMENTS + 1);
    if (f.document < 0 || dice_below(&m->dice, 2))
        f.page = (int)dice_below(&m->dice, 110);
    if (f.page < 0)
        f.text = arena_printf(m->x->a, "{\"documentId\":\"d%d\"}", f.document);
    else if (f.document < 0)
        f.text = arena_printf(m->x->a, "{\"page\":{\"$gte\":%d}}", f.page);
    else
        f.text = arena_printf(m->x->a, "{\"page\":{\"$gte\":%d},\"documentId\":\"d%d\"}", f.page, f.document);
    return f;
}

static bool is_match(const struct model_row *row, const struct filter *f)
{
    return row->is_there && (f->document < 0 || row->document == f->document) && (f->page < 0 || row->page >= f->page);
}

static void remove_by_filter(struct model *m)
{
    struct filter f = random_filter(m);
    struct rig *x = m->x;
    int64_t n_expected = 0, n_removed = -1;

    for (size_t i = 0; i < N_IDS; i++)
        if (is_match(&m->rows[i], &f)) {
            m->rows[i].is_there = false;
            n_expected++;
        }
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .filter = rig_json(x, f.text) }, &n_removed,
                           &x->e));
    assert_int_equal(n_removed, n_expected);
}

static void remove_all(struct model *m)
{
    struct rig *x = m->x;
    int64_t n_removed = -1;

    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n_removed, &x->e));
    assert_int_equal(n_removed, model_count(m));
    for (size_t i = 0; i < N_IDS; i++)
        m->rows[i].is_there = false;
}

/* --- the comparison --- */

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

static size_t naive_scores(struct model *m, const float *query, const struct filter *f, double *scores)
{
    double norm = quant_norm(query, N_DIMENSIONS);
    size_t n = 0;

    for (size_t i = 0; i < N_IDS; i++)
        if (is_match(&m->rows[i], f))
            scores[n++] = quant_cosine(m->rows[i].vector, query, norm, N_DIMENSIONS);
    qsort(scores, n, sizeof(*scores), descending);
    return n;
}

static void check_hit(struct model *m, const struct vector_hit *hit, const float *query, const struct filter *f)
{
    const struct model_row *row = &m->rows[strtoul(hit->id + 3, NULL, 10)];
    struct json_value metadata = rig_json(m->x, hit->metadata);

    assert_true(is_match(row, f));
    assert_true(hit->score == quant_cosine(row->vector, query, quant_norm(query, N_DIMENSIONS), N_DIMENSIONS));
    assert_int_equal(json_int(json_get(metadata, "page")), row->page);
    assert_memory_equal(hit->vector, row->vector, sizeof(row->vector));
}

/* Equal scores may come in any order, so scores are compared in order, and each hit with its own row. */
static void query(struct model *m, bool has_filter)
{
    struct filter f = has_filter ? random_filter(m) : (struct filter){ -1, -1, NULL };
    float vector[N_DIMENSIONS];
    struct vector_query q = { .vector = vector,
                              .n_dimensions = N_DIMENSIONS,
                              .min_score = -2,
                              .with_vectors = true,
                              .top_k = m->least_top_k + (int64_t)dice_below(&m->dice, 60) };
    double scores[N_IDS];
    struct vector_hits hits;
    size_t n;

    random_vector(m, vector);
    if (has_filter)
        q.filter = rig_json(m->x, f.text);
    hits = rig_query(m->x, "ns", &q);
    n = naive_scores(m, vector, &f, scores);
    assert_int_equal(hits.n, MIN(n, (size_t)q.top_k));
    for (size_t i = 0; i < hits.n; i++) {
        assert_true(hits.items[i].score == scores[i]);
        check_hit(m, &hits.items[i], vector, &f);
    }
}

static void step(struct model *m)
{
    size_t roll = dice_below(&m->dice, 100);

    if (roll < 25)
        upsert(m);
    else if (roll < 35)
        remove_ids(m);
    else if (roll < 37)
        remove_by_filter(m);
    else if (roll < 38)
        remove_all(m);
    else if (roll < 40)
        rig_reopen(m->x);
    else
        query(m, roll >= 70);
    assert_int_equal(rig_count(m->x, "ns"), model_count(m));
    m->x->a = arena_free(m->x->a);
    m->x->a = arena_new();
}

static void random_work(uint64_t seed, int64_t memory_bytes, int64_t list_above_rows)
{
    struct model *m = calloc(1, sizeof(*m));

    m->x = rig_open();
    m->x->config.memory_bytes = memory_bytes;
    m->x->config.list_above_rows = list_above_rows;
    m->least_top_k = list_above_rows < N_IDS ? 65 : 1;
    rig_reopen(m->x);
    m->dice.state = seed;
    upsert(m);
    for (int i = 0; i < N_STEPS; i++)
        step(m);
    rig_close(m->x);
    free(m);
}

static void answers_are_those_of_a_naive_search(void **state)
{
    random_work(20261120, 1 << 30, 250000);
}

static void answers_are_the_same_when_memory_is_never_enough(void **state)
{
    random_work(4711, 1, 250000);
}

static void answers_are_the_same_while_lists_come_and_go(void **state)
{
    random_work(815, 1 << 30, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_a_naive_search),
        cmocka_unit_test(answers_are_the_same_when_memory_is_never_enough),
        cmocka_unit_test(answers_are_the_same_while_lists_come_and_go),
    };

    return cmocka_run_group_tests_name("engine_model", tests, NULL, NULL);
}
