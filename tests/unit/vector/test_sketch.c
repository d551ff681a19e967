/* Rotation, kernels and bounds of one-bit sketches. */
#include "vector/engine/sketch.h"
#include "rig.h"

enum { MAX_SIGNS = 4104, N_FACTORS = 2 * SKETCH_BLOCK_ROWS };

/* --- rotation --- */

static void a_rotation_keeps_lengths_and_products(void **state)
{
    static const size_t sizes[] = { 1, 2, 8, 24, 25, 64, 100, 384, 1000, 1536, 3072, 8192 };
    struct dice dice = { 3 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct rotation r;
        float *x, *y, before[3], after[3];

        rotation_init(&r, sizes[i]);
        assert_true(r.width >= sizes[i] && r.width % ROTATION_MULTIPLE == 0);
        x = calloc(r.width, sizeof(*x));
        y = calloc(r.width, sizeof(*y));
        dice_vector(&dice, x, sizes[i]);
        dice_vector(&dice, y, sizes[i]);
        before[0] = sketch_dot(x, x, r.width), before[1] = sketch_dot(y, y, r.width);
        before[2] = sketch_dot(x, y, r.width);
        rotation_apply(&r, x);
        rotation_apply(&r, y);
        after[0] = sketch_dot(x, x, r.width), after[1] = sketch_dot(y, y, r.width);
        after[2] = sketch_dot(x, y, r.width);
        for (size_t j = 0; j < 3; j++)
            assert_true(fabsf(before[j] - after[j]) < 1e-4F * (before[0] + before[1]));
        rotation_clear(&r);
        free(x);
        free(y);
    }
}

static void a_rotation_spreads_one_number_over_all(void **state)
{
    struct rotation r;
    float x[384] = { [7] = 1 };

    rotation_init(&r, 384);
    rotation_apply(&r, x);
    for (size_t i = 0; i < 384; i++)
        assert_true(fabsf(x[i]) < 0.3F);
    rotation_clear(&r);
}

/* --- kernels --- */

struct block {
    uint8_t *coarse, *fine, *tables; /* aligned */
    struct sketch_probe probe;
};

/* The parts of a block. */
static uint8_t *part_make(size_t n_signs, struct dice *dice, bool is_extreme)
{
    size_t n_codes = sketch_code_bytes(n_signs);
    uint8_t *part = aligned_alloc(64, sketch_part_bytes(n_signs));
    uint16_t *factors = (uint16_t *)(void *)(part + n_codes);

    for (size_t i = 0; i < n_codes; i++)
        part[i] = is_extreme ? 0xff : (uint8_t)dice_next(dice);
    for (size_t i = 0; i < N_FACTORS; i++) {
        float f = 0.05F * dice_float(dice);

        memcpy(&factors[i], (const char *)&f + 2, sizeof(factors[i]));
    }
    return part;
}

static void block_make(struct block *b, size_t n_signs, struct dice *dice, uint8_t most_entry, bool is_extreme)
{
    size_t n_coarse = 24 * (1 + dice_below(dice, n_signs / 24 - 1));

    b->coarse = part_make(n_coarse, dice, is_extreme);
    b->fine = part_make(n_signs - n_coarse, dice, is_extreme);
    b->tables = aligned_alloc(64, n_signs / 4 * SKETCH_TABLE_BYTES);
    for (size_t t = 0; t < n_signs / 4; t++)
        for (size_t i = 0; i < SKETCH_TABLE_BYTES; i++)
            b->tables[t * SKETCH_TABLE_BYTES + i] = is_extreme ? most_entry
                                                    : i < 16 || most_entry == 63
                                                        ? (uint8_t)dice_below(dice, most_entry + 1U)
                                                        : b->tables[t * SKETCH_TABLE_BYTES + i % 16];
    b->probe = (struct sketch_probe){
        .tables = b->tables, .n_signs = n_signs, .n_coarse = n_coarse, .delta = 0.01F, .add = 0.1F * dice_float(dice)
    };
}

static void block_clear(struct block *b)
{
    free(b->coarse);
    free(b->fine);
    free(b->tables);
}

static unsigned bit_of(const struct block *b, size_t row, size_t sign)
{
    size_t n = b->probe.n_coarse, at = sign < n ? sign : sign - n;

    return (sign < n ? b->coarse : b->fine)[at / 8 * SKETCH_BLOCK_ROWS + row] >> at % 8 & 1;
}

static unsigned sum_of_16(const struct block *b, size_t n_signs, size_t row)
{
    unsigned sum = 0;

    for (size_t t = 0; t < n_signs / 4; t++) {
        unsigned at = 0;

        for (size_t i = 0; i < 4; i++)
            at |= bit_of(b, row, 4 * t + i) << i;
        sum += b->tables[t * SKETCH_TABLE_BYTES + at];
    }
    return sum;
}

static unsigned sum_of_64(const struct block *b, size_t n_signs, size_t row)
{
    static const size_t spare[] = { 6, 7, 14, 15, 22, 23 };
    unsigned sum = 0;

    for (size_t t = 0; t < n_signs / 6; t++) {
        unsigned at = 0;

        for (size_t i = 0; i < 6; i++)
            at |= bit_of(b, row, t / 4 * 24 + (t % 4 < 3 ? t % 4 * 8 + i : spare[i])) << i;
        sum += b->tables[t * SKETCH_TABLE_BYTES + at];
    }
    return sum;
}

/* The definition of sketch_kernel.h, by the first n_signs signs. */
static uint64_t above_by_definition(const struct block *b, enum sketch_tables tables, size_t n_signs,
                                    const uint16_t *factors, float *bounds)
{
    uint64_t bits = 0;

    for (size_t row = 0; row < SKETCH_BLOCK_ROWS; row++) {
        unsigned sum = tables == SKETCH_TABLES_OF_64 ? sum_of_64(b, n_signs, row) : sum_of_16(b, n_signs, row);
        size_t lane = sketch_lane(row);
        volatile float product = (float)sum * b->probe.delta; /* not fused with the addition */
        volatile float guess = product + b->probe.add, scaled = sketch_float(factors[lane]) * guess;

        bounds[lane] = sketch_float(factors[SKETCH_BLOCK_ROWS + lane]) + scaled;
        bits |= (uint64_t)(bounds[lane] > b->probe.threshold) << row;
    }
    return bits;
}

static void expect_definition(const struct sketch_kernel *kernel, const struct block *b)
{
    _Alignas(64) float expected[SKETCH_BLOCK_ROWS], got[SKETCH_BLOCK_ROWS];
    size_t n_signs = b->probe.n_signs;
    const uint16_t *factors = sketch_factors(b->fine, n_signs - b->probe.n_coarse);
    uint64_t bits = above_by_definition(b, kernel->tables, n_signs, factors, expected);

    for (int is_far = 0; is_far < 2; is_far++) {
        memset(got, 0, sizeof(got));
        assert_true(kernel->above(&b->probe, &(struct sketch_block){ b->coarse, b->fine }, is_far, got) == bits);
        if (bits)
            assert_memory_equal(got, expected, sizeof(got));
    }
}

static void expect_coarse_definition(const struct sketch_kernel *kernel, const struct block *b)
{
    _Alignas(64) float expected[SKETCH_BLOCK_ROWS], got[SKETCH_BLOCK_ROWS];
    size_t n = b->probe.n_coarse;
    uint64_t bits = above_by_definition(b, kernel->tables, n, sketch_factors(b->coarse, n), expected);
    float most = expected[0];

    for (size_t i = 1; i < SKETCH_BLOCK_ROWS; i++)
        most = fmaxf(most, expected[i]);
    for (int is_far = 0; is_far < 2; is_far++) {
        float highest = 0;

        memset(got, 0, sizeof(got));
        assert_true(kernel->coarse(&b->probe, b->coarse, is_far, got, &highest) == bits);
        assert_true(highest == most);
        if (bits)
            assert_memory_equal(got, expected, sizeof(got));
    }
}

static void every_kernel_gives_the_bounds_of_the_definition_bit_for_bit(void **state)
{
    static const size_t sizes[] = { 48, 72, 120, 384, 768, 1536, MAX_SIGNS };

    for (const struct sketch_kernel *kernel = sketch_kernels; kernel->name; kernel++)
        for (size_t i = 0; kernel->is_supported() && i < ARRAY_SIZE(sizes); i++)
            for (int round = 0; round < 6; round++) {
                struct dice dice = { 11 + i };
                struct block b;

                block_make(&b, sizes[i], &dice, kernel->tables == SKETCH_TABLES_OF_64 ? 63 : 31, round == 0);
                if (round == 1)
                    b.probe.threshold = 1e9F;
                if (round == 2)
                    b.probe.threshold = -INFINITY;
                expect_definition(kernel, &b);
                expect_coarse_definition(kernel, &b);
                block_clear(&b);
            }
}

static void the_last_kernel_for_sketches_runs_everywhere(void **state)
{
    const struct sketch_kernel *kernel = sketch_kernels;

    while (kernel[1].name)
        kernel++;
    assert_string_equal(kernel->name, "portable");
    assert_true(kernel->is_supported());
    assert_true(sketch_kernel_best()->is_supported());
}

/* --- units --- */

struct unit_rig {
    atomic_size_t account;
    struct slab *slab;
    struct sketch_set *set;
};

static struct unit_rig unit_make(struct dice *dice, size_t n_dimensions, float common)
{
    float *row = calloc(n_dimensions, sizeof(*row)), *same = calloc(n_dimensions, sizeof(*same));
    uint8_t *codes = aligned_alloc(KERNEL_ALIGN, quant_stride(n_dimensions));
    struct unit_rig x = { 0 };
    atomic_size_t *account = calloc(1, sizeof(*account));
    struct err e = { 0 };

    x.slab = slab_new(n_dimensions, account);
    dice_vector(dice, same, n_dimensions);
    for (size_t i = 0; i < SKETCH_UNIT_ROWS; i++) {
        float scale;

        dice_vector(dice, row, n_dimensions);
        for (size_t j = 0; j < n_dimensions; j++)
            row[j] += common * same[j];
        scale = quant_encode(row, n_dimensions, codes);
        assert_int_equal(slab_write(x.slab, i, codes, scale, (int64_t)i, &e), 0);
    }
    slab_publish(x.slab, SKETCH_UNIT_ROWS);
    x.set = x.slab->sketches = sketch_set_new(n_dimensions, account);
    assert_int_equal(sketch_add(x.set, x.slab, NULL, &e), 0);
    free(row);
    free(same);
    free(codes);
    return x;
}

static void unit_clear(struct unit_rig *x)
{
    atomic_size_t *account = x->slab->account;

    slab_unref(x->slab);
    assert_int_equal(atomic_load(account), 0);
    free(account);
}

static void bounds_of(const struct sketch_set *set, const struct sketch_kernel *kernel,
                      const struct sketch_probe *probe, size_t block, bool is_coarse, float *bounds)
{
    struct sketch_block b = sketch_block_of(set, sketch_unit_of(set, 0), block);
    float most;

    if (is_coarse)
        kernel->coarse(probe, b.coarse, false, bounds, &most);
    else
        kernel->above(probe, &b, false, bounds);
}

/* How many of a unit's rows score more above their sketches than so many deviations. */
static size_t n_above(const struct unit_rig *x, const struct quant_query *query, const struct sketch_kernel *kernel,
                      bool is_coarse, float deviations)
{
    const struct sketch_unit *u = sketch_unit_of(x->set, 0);
    struct sketch_query q;
    float distance, dot;
    size_t n = 0;

    sketch_query_init(&q, x->set, kernel->tables, query);
    dot = sketch_dot(u->centre, q.numbers, x->set->rotation.width);
    distance = sqrtf(q.square + u->centre_square - 2 * dot);
    for (size_t row = 0; row < SKETCH_UNIT_ROWS; row++) {
        _Alignas(64) static float bounds[SKETCH_BLOCK_ROWS];
        size_t at = row % SKETCH_BLOCK_ROWS;
        float error = deviations * (is_coarse ? x->set->coarse_spread : x->set->spread) * distance;
        const struct sketch_probe probe = {
            q.tables, x->set->n_signs, x->set->n_coarse, q.delta, error - (is_coarse ? q.coarse_least : q.least),
            -INFINITY
        };
        int32_t product;

        if (at == 0)
            bounds_of(x->set, kernel, &probe, row / SKETCH_BLOCK_ROWS, is_coarse, bounds);
        kernel_best()->dots(slab_codes(x->slab, row), x->slab->stride, 1, query->codes, &product);
        n += (float)(product - query->bias) * slab_scale(x->slab, row) * query->scale > bounds[sketch_lane(at)] + dot;
    }
    sketch_query_clear(&q);
    return n;
}

/* Shares of the normal law: .1587 above one deviation, .0228 above two, .00135 above three. */
static void expect_normal_errors(size_t n_dimensions, float mean, const struct sketch_kernel *kernel, bool is_coarse)
{
    enum { N_QUERIES = 8, N_PAIRS = N_QUERIES * SKETCH_UNIT_ROWS };
    struct dice dice = { 100 + n_dimensions };
    struct unit_rig x = unit_make(&dice, n_dimensions, mean);
    float *query = calloc(n_dimensions, sizeof(*query));
    size_t n[4] = { 0 };

    for (size_t j = 0; j < N_QUERIES; j++) {
        struct quant_query codes;

        dice_vector(&dice, query, n_dimensions);
        quant_query_init(&codes, query, n_dimensions);
        for (size_t k = 0; k < 4; k++)
            n[k] += n_above(&x, &codes, kernel, is_coarse, (float)k);
        quant_query_clear(&codes);
    }
    assert_true(n[0] > N_PAIRS * 0.45 && n[0] < N_PAIRS * 0.55);
    assert_true(n[1] > N_PAIRS * 0.12 && n[1] < N_PAIRS * 0.19);
    assert_true(n[2] > N_PAIRS * 0.01 && n[2] < N_PAIRS * 0.03);
    assert_true(n[3] < N_PAIRS * 0.003);
    free(query);
    unit_clear(&x);
}

static void errors_of_sketches_are_as_normal_as_their_bounds_assume(void **state)
{
    static const size_t sizes[] = { 64, 100, 384, 1536 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (const struct sketch_kernel *kernel = sketch_kernels; kernel->name; kernel++)
            for (int is_coarse = 0; kernel->is_supported() && is_coarse < 2; is_coarse++)
                expect_normal_errors(sizes[i], i % 2 ? 1 : 0, kernel, is_coarse);
}

static void expect_finite(const uint8_t *part, size_t n_signs)
{
    for (size_t i = 0; i < N_FACTORS; i++)
        assert_true(isfinite(sketch_float(sketch_factors(part, n_signs)[i])));
}

static void a_unit_of_equal_and_zero_rows_has_finite_bounds(void **state)
{
    uint8_t *codes = aligned_alloc(KERNEL_ALIGN, quant_stride(64));
    atomic_size_t account = 0;
    const float row[64] = { 1, 2, 3 }, zero[64] = { 0 };
    struct err e = { 0 };

    for (int has_zeros = 0; has_zeros < 2; has_zeros++) {
        struct slab *slab = slab_new(64, &account);
        const struct sketch_unit *u;

        for (size_t i = 0; i < SKETCH_UNIT_ROWS; i++) {
            float scale = quant_encode(has_zeros && i % 2 ? zero : row, 64, codes);

            assert_int_equal(slab_write(slab, i, codes, scale, (int64_t)i, &e), 0);
        }
        slab_publish(slab, SKETCH_UNIT_ROWS);
        slab->sketches = sketch_set_new(64, &account);
        assert_int_equal(sketch_add(slab->sketches, slab, NULL, &e), 0);
        u = sketch_unit_of(slab->sketches, 0);
        for (size_t i = 0; i < SKETCH_UNIT_ROWS / SKETCH_BLOCK_ROWS; i++) {
            struct sketch_block b = sketch_block_of(slab->sketches, u, i);

            expect_finite(b.coarse, slab->sketches->n_coarse);
            expect_finite(b.fine, slab->sketches->n_signs - slab->sketches->n_coarse);
        }
        slab_unref(slab);
    }
    assert_int_equal(atomic_load(&account), 0);
    free(codes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rotation_keeps_lengths_and_products),
        cmocka_unit_test(a_rotation_spreads_one_number_over_all),
        cmocka_unit_test(every_kernel_gives_the_bounds_of_the_definition_bit_for_bit),
        cmocka_unit_test(the_last_kernel_for_sketches_runs_everywhere),
        cmocka_unit_test(errors_of_sketches_are_as_normal_as_their_bounds_assume),
        cmocka_unit_test(a_unit_of_equal_and_zero_rows_has_finite_bounds),
    };

    return cmocka_run_group_tests_name("sketch", tests, NULL, NULL);
}
