#include "vector/engine/engine.h"
#include "vector/engine/kernel.h"
#include "vector/engine/quant.h"
#include "rig.h"

enum { MAX_ROWS = 67, MAX_STRIDE = LIMIT_DIMENSIONS };

static const struct kernel *portable(void)
{
    const struct kernel *kernel = kernels;

    while (strcmp(kernel->name, "portable") != 0)
        kernel++;
    return kernel;
}

static uint8_t *rows_of(size_t stride, struct dice *dice)
{
    uint8_t *rows = aligned_alloc(KERNEL_ALIGN, MAX_ROWS * stride);

    for (size_t i = 0; i < MAX_ROWS * stride; i++)
        rows[i] = (uint8_t)dice_next(dice);
    return rows;
}

static void expect_same(const struct kernel *kernel, const uint8_t *rows, size_t stride, const int8_t *query)
{
    int32_t expected[MAX_ROWS], got[MAX_ROWS + 1];

    for (size_t n = 0; n <= MAX_ROWS; n++) {
        portable()->dots(rows, stride, n, query, expected);
        got[n] = 77;
        kernel->dots(rows, stride, n, query, got);
        assert_memory_equal(expected, got, n * sizeof(int32_t));
        assert_int_equal(got[n], 77);
        memset(got, 0, sizeof(got));
        kernel->dots_again(rows, stride, n, query, got);
        assert_memory_equal(expected, got, n * sizeof(int32_t));
    }
}

static void every_kernel_gives_the_integers_of_the_portable_one(void **state)
{
    static const size_t strides[] = { 64, 128, 192, 384, 768, 1536, 8192 };
    struct dice dice = { 42 };

    for (const struct kernel *kernel = kernels; kernel->name; kernel++)
        for (size_t i = 0; kernel->is_supported() && i < ARRAY_SIZE(strides); i++) {
            uint8_t *rows = rows_of(strides[i], &dice);
            int8_t *query = calloc(strides[i] + 1, 1);

            for (size_t j = 0; j < strides[i]; j++)
                query[j + 1] = (int8_t)(dice_below(&dice, 255) - 127);
            expect_same(kernel, rows, strides[i], query + 1); /* a query need not be aligned */
            free(rows);
            free(query);
        }
}

static void no_kernel_saturates_at_the_largest_values(void **state)
{
    uint8_t *rows = aligned_alloc(KERNEL_ALIGN, MAX_ROWS * MAX_STRIDE);
    int8_t query[MAX_STRIDE];
    int32_t dots[MAX_ROWS];

    for (int sign = -1; sign <= 1; sign += 2) {
        memset(rows, 255, MAX_ROWS * MAX_STRIDE);
        memset(query, sign * 127, sizeof(query));
        for (const struct kernel *kernel = kernels; kernel->name; kernel++) {
            if (!kernel->is_supported())
                continue;
            kernel->dots(rows, MAX_STRIDE, MAX_ROWS, query, dots);
            for (size_t i = 0; i < MAX_ROWS; i++)
                assert_int_equal(dots[i], sign * 255 * 127 * MAX_STRIDE);
        }
    }
    free(rows);
}

static void the_last_kernel_runs_everywhere_and_the_best_is_supported(void **state)
{
    assert_true(portable()->is_supported());
    assert_null(portable()[1].name);
    assert_true(kernel_best()->is_supported());
}

enum { N_STORED = 300, N_DIMENSIONS = 100, N_REQUESTED = 20, TOP_K = 10 };

static void fill(struct rig *x)
{
    struct vector_record records[N_STORED];
    struct dice dice = { 5 };

    for (size_t i = 0; i < N_STORED; i++) {
        float *vector = arena_array(x->a, N_DIMENSIONS, sizeof(float));

        dice_vector(&dice, vector, N_DIMENSIONS);
        records[i] = (struct vector_record){ arena_printf(x->a, "%zu", i), vector, NULL };
    }
    MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, N_STORED, N_DIMENSIONS }, &x->e));
}

/* Ids and scores for the same queries. */
static const char *answers(struct rig *x, const struct kernel *kernel)
{
    const char *all = "";
    struct dice dice = { 6 };

    engine_of(x->v)->kernel = kernel;
    for (size_t i = 0; i < N_REQUESTED; i++) {
        float vector[N_DIMENSIONS];
        struct vector_query q = { .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = TOP_K, .min_score = -2 };
        struct vector_hits hits;

        dice_vector(&dice, vector, N_DIMENSIONS);
        hits = rig_query(x, "ns", &q);
        for (size_t j = 0; j < hits.n; j++)
            all = arena_printf(x->a, "%s %s=%a", all, hits.items[j].id, hits.items[j].score);
    }
    return all;
}

static void the_engine_answers_the_same_with_every_kernel(void **state)
{
    struct rig *x = rig_open();
    const char *expected;

    fill(x);
    expected = answers(x, portable());
    assert_true(strlen(expected) > (size_t)N_REQUESTED * TOP_K * strlen(" 1=0x1p-1"));
    for (const struct kernel *kernel = kernels; kernel->name; kernel++)
        if (kernel->is_supported())
            assert_string_equal(answers(x, kernel), expected);
    rig_close(x);
}

/* --- codes --- */

static double cosine_of_codes(const float *row, const float *query, size_t n)
{
    struct quant_query q;
    uint8_t *codes = aligned_alloc(KERNEL_ALIGN, quant_stride(n));
    float scale = quant_encode(row, n, codes);
    int32_t dot;

    quant_query_init(&q, query, n);
    kernel_best()->dots(codes, quant_stride(n), 1, q.codes, &dot);
    quant_query_clear(&q);
    free(codes);
    return (double)((float)(dot - q.bias) * scale * q.scale);
}

static double cosine(const float *row, const float *query, size_t n)
{
    return quant_cosine(row, query, quant_norm(query, n), n);
}

static void codes_report_the_cosine_within_a_hundredth(void **state)
{
    static const size_t sizes[] = { 1, 2, 63, 64, 65, 384, 1000, 8192 };
    float row[LIMIT_DIMENSIONS], query[LIMIT_DIMENSIONS];
    struct dice dice = { 7 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (int round = 0; round < 20; round++) {
            dice_vector(&dice, row, sizes[i]);
            dice_vector(&dice, query, sizes[i]);
            assert_true(fabs(cosine_of_codes(row, query, sizes[i]) - cosine(row, query, sizes[i])) < 0.01);
        }
}

/* Codes of whole lanes and of the remainder; the lanes must not read beyond the vector nor write beyond the codes. */
static void every_number_has_the_nearest_code(void **state)
{
    for (size_t n = 1; n <= 70; n++) {
        float *row = malloc(n * sizeof(*row));
        size_t stride = quant_stride(n);
        uint8_t *codes = aligned_alloc(KERNEL_ALIGN, stride);
        struct dice dice = { n };
        float scale;

        dice_vector(&dice, row, n);
        row[n / 2] = -4; /* the largest: code -127 */
        scale = quant_encode(row, n, codes);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)row[i] * 127 / 4 - (codes[i] - KERNEL_ZERO)) <= 0.5);
        for (size_t i = n; i < stride; i++)
            assert_int_equal(codes[i], KERNEL_ZERO);
        assert_true(fabs((double)scale * 127 * quant_norm(row, n) / 4 - 1) < 1e-6);
        free(row);
        free(codes);
    }
}

static void extreme_lengths_neither_overflow_nor_vanish(void **state)
{
    static const float scales[] = { 1e-45F, 1e-38F, 1, 1e18F, 3e38F };
    const float small[] = { 1, -1, 0, 1 };

    for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
        float row[4];

        for (size_t j = 0; j < 4; j++)
            row[j] = small[j] * scales[i];
        assert_true(fabs(cosine(row, small, 4) - 1) < 1e-9);
        assert_true(fabs(cosine_of_codes(row, small, 4) - 1) < 0.01);
        assert_true(fabs(cosine_of_codes(small, row, 4) - 1) < 0.01);
    }
}

static void a_zero_vector_scores_nothing(void **state)
{
    const float zero[3] = { 0 }, one[] = { 1, 2, 3 };

    assert_true(cosine_of_codes(zero, one, 3) == 0);
    assert_true(cosine_of_codes(one, zero, 3) == 0);
    assert_true(cosine(zero, one, 3) == 0 && cosine(one, zero, 3) == 0 && cosine(zero, zero, 3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_gives_the_integers_of_the_portable_one),
        cmocka_unit_test(no_kernel_saturates_at_the_largest_values),
        cmocka_unit_test(the_last_kernel_runs_everywhere_and_the_best_is_supported),
        cmocka_unit_test(the_engine_answers_the_same_with_every_kernel),
        cmocka_unit_test(every_number_has_the_nearest_code),
        cmocka_unit_test(codes_report_the_cosine_within_a_hundredth),
        cmocka_unit_test(extreme_lengths_neither_overflow_nor_vanish),
        cmocka_unit_test(a_zero_vector_scores_nothing),
    };

    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
