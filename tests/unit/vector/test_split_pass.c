/* A pass whose parts idle helpers take too: the answer is that of one thread, and of a pass over all codes. */
#include "base/limits.h"
#include "vector/engine/helpers.h"
#include "vector/engine/sketch_scan.h"
#include "vector/engine/split_pass.h"
#include "sketch_rig.h"
#include "../skip.h"
#include "../tsan.h"

#include <unistd.h>

enum { N_ASKED = 12, ROUNDS = TENTH_UNDER_TSAN(10) };

/* A namespace with sketches, and helpers of its own. */
struct stage {
    struct rig *x;
    vector *rows;
    struct space *space;
    struct slab_view view;
    struct helpers *helpers;
    uint64_t mask[N_ROWS / 64 + 1];
};

static struct stage *stage_open(vector *rows)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct vectors_db_space of;

    s->x = open_sketched(3);
    s->rows = rows;
    s->helpers = helpers_start(LIMIT_VECTOR_HELPERS + 1);
    memset(s->mask, 0x21, sizeof(s->mask));
    put_many(s->x, rows, 0, N_ROWS);
    settle(s->x);
    s->space = engine_take(engine_of(s->x->v), "ns");
    space_view(s->space, &s->view, &of);
    assert_int_equal(s->view.n_sketched, N_ROWS / SKETCH_UNIT_ROWS);
    return s;
}

static void stage_close(struct stage *s)
{
    slab_view_clear(&s->view);
    engine_give_back(engine_of(s->x->v), s->space);
    helpers_stop(s->helpers);
    rig_close(s->x);
    free(s->rows);
    free(s);
}

struct asked {
    struct quant_query query;
    struct best best;
    struct scan_request request;
};

/* Of the i-th kind: with sketches, with a filter's mask, of an older view, with a floor only, without sketches, for
 * more hits. */
static void ask(struct asked *a, const struct stage *s, const float *query, size_t i)
{
    quant_query_init(&a->query, query, N_DIMENSIONS);
    best_init(&a->best, i % 6 == 5 ? 100 : TOP_K);
    a->request = (struct scan_request){ .query = &a->query,
                                        .n = i % 6 == 2 ? s->view.n - 1000 : s->view.n,
                                        .best = &a->best,
                                        .mask = i % 6 == 1 ? s->mask : NULL,
                                        .is_filtered = i % 6 == 1,
                                        .helpers = s->helpers,
                                        .sketch_kernel = sketch_kernel_best(),
                                        .deviations = 5,
                                        .n_sketched = i % 6 == 4 ? 0 : s->view.n_sketched - (i % 6 == 2),
                                        .n_wanted = a->best.max };
    if (i % 6 == 3) {
        a->best.floor = 0.5F;
        a->request.n_wanted = 0;
    }
}

static void asked_clear(struct asked *a)
{
    best_clear(&a->best);
    quant_query_clear(&a->query);
}

/* What earlier passes found may let a pass over so few units leave out all sketches. */
static void forget_density(const struct asked *a, const struct stage *s)
{
    struct sketch_density *density = sketch_density_of(s->view.slab->sketches, a->request.n_wanted);

    atomic_store(&density->sketches.n_in_vain, 0);
    atomic_store(&density->sketches.rows_to_skip, 0);
}

/* Asks the i-th request of several threads, and beside that all codes of one. Returns how many helpers took part. */
static size_t expect_same_answer(const struct stage *s, const float *query, size_t i)
{
    struct asked split, alone;
    struct scan_request *pointer = &alone.request;
    size_t n_helpers;

    ask(&split, s, query, i);
    ask(&alone, s, query, i);
    forget_density(&split, s);
    helpers_enter(s->helpers);
    split_pass_run(kernel_best(), s->view.slab, &split.request, split.request.n);
    helpers_leave(s->helpers);
    scan_range(kernel_best(), s->view.slab, &pointer, 1, 0, alone.request.n);
    expect_same_best(&split.best, &alone.best);
    assert_true(split.request.n_passed <= split.request.n_sketched * SKETCH_UNIT_ROWS);
    assert_true((split.request.n_passed > 0) == (split.request.n_sketched > 0));
    n_helpers = split.request.n_helpers;
    asked_clear(&split);
    asked_clear(&alone);
    return n_helpers;
}

static void a_split_pass_answers_as_one_thread_does(void **state)
{
    struct stage *s = stage_open(make_rows(&kinds[1], 83, N_ROWS + N_ASKED));
    int64_t deadline_ms = clock_mono_ms() + WAIT_MS;
    size_t n_helpers = 0;

    for (size_t round = 0; round < ROUNDS || n_helpers == 0; round++) {
        for (size_t i = 0; i < N_ASKED; i++)
            n_helpers += expect_same_answer(s, s->rows[N_ROWS + i], i);
        assert_true(clock_mono_ms() < deadline_ms);
    }
    stage_close(s);
}

/* More equal rows than are wanted, in parts of several threads: those with the lowest slots are kept. */
static void of_equal_rows_the_first_are_kept(void **state)
{
    vector *rows = make_rows(&kinds[2], 84, N_ROWS + N_ASKED);
    struct stage *s;

    for (size_t i = 50; i < N_ROWS; i += 70)
        memcpy(rows[i], rows[0], sizeof(rows[i]));
    s = stage_open(rows);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < 6; i++)
            expect_same_answer(s, rows[0], i);
    stage_close(s);
}

static void few_rows_are_not_split(void **state)
{
    struct stage *s = stage_open(make_rows(&kinds[1], 85, N_ROWS + 1));
    struct asked a;

    ask(&a, s, s->rows[N_ROWS], 0);
    assert_false(split_pass_fits(s->view.slab, &a.request, s->view.n));
    a.request.n_sketched = 0;
    assert_false(split_pass_fits(s->view.slab, &a.request, s->view.n));
    assert_false(split_pass_fits(s->view.slab, &a.request, ((11 << 20) - 1) / s->view.slab->stride));
    assert_true(split_pass_fits(s->view.slab, &a.request, ((11 << 20) - 1) / s->view.slab->stride + 1));
    asked_clear(&a);
    stage_close(s);
}

/* Data without structure: the last query scored the rows by their codes, although they have sketches. */
static void rows_that_are_scored_all_the_same_count(void **state)
{
    struct stage *s = stage_open(make_rows(&kinds[1], 86, N_ROWS + 1));
    const struct slab *slab = s->view.slab;
    size_t to = (11 << 20) / slab->stride;
    struct asked a;

    ask(&a, s, s->rows[N_ROWS], 0);
    a.request.n_sketched = to; /* more than there are: only counted */
    sketch_scan_note_scored(slab, &a.request);
    assert_false(split_pass_fits(slab, &a.request, to));
    a.request.n_scored = to;
    sketch_scan_note_scored(slab, &a.request);
    assert_true(split_pass_fits(slab, &a.request, to));
    a.request.is_filtered = true;
    assert_false(split_pass_fits(slab, &a.request, to));
    asked_clear(&a);
    stage_close(s);
}

/* --- through the engine --- */

enum { WIDE = 1024, N_WIDE = (11 << 20) / WIDE + 1, WIDE_BATCH = 500 };

static void put_wide(struct rig *x, float *rows)
{
    for (size_t from = 0, n; from < N_WIDE; from += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record *records = arena_array(a, WIDE_BATCH, sizeof(*records));

        n = MIN((size_t)WIDE_BATCH, N_WIDE - from);
        for (size_t i = 0; i < n; i++)
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), rows + (from + i) * WIDE, NULL };
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, WIDE }, &x->e));
    }
}

static double n_helped(void)
{
    return metric_of("hearth_vector_helpers_total");
}

static void a_query_over_many_rows_is_helped(void **state)
{
    float *rows = calloc((size_t)N_WIDE * WIDE, sizeof(*rows));
    int64_t deadline_ms = clock_mono_ms() + WAIT_MS;
    double before = n_helped();
    struct rig *x;

    if (IS_UNDER_TSAN || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        free(rows);
        SKIP_TEST("many rows, or one processor");
    }
    x = rig_open();
    dice_vector(&(struct dice){ 7 }, rows, (size_t)N_WIDE * WIDE);
    put_wide(x, rows);
    for (size_t i = 0; i < 20 || n_helped() == before; i++) {
        size_t row = i * 577 % N_WIDE;
        struct vector_query q = {
            .vector = rows + row * WIDE, .n_dimensions = WIDE, .top_k = 5, .min_score = -2, .exact = true
        };
        struct vector_hits hits = rig_query(x, "ns", &q);

        assert_int_equal(hits.n, 5);
        assert_int_equal(strtoul(hits.items[0].id, NULL, 10), row);
        assert_true(clock_mono_ms() < deadline_ms);
    }
    rig_close(x);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_pass_answers_as_one_thread_does),
        cmocka_unit_test(of_equal_rows_the_first_are_kept),
        cmocka_unit_test(few_rows_are_not_split),
        cmocka_unit_test(rows_that_are_scored_all_the_same_count),
        cmocka_unit_test(a_query_over_many_rows_is_helped),
    };

    return cmocka_run_group_tests_name("split_pass", tests, NULL, NULL);
}
