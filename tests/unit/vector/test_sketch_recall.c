/* How much of the right answers queries by sketches find, and what they read for it, on every kind of data. */
#include "sketch_rig.h"
#include "../skip.h"
#include "../tsan.h"

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

static void recall_is_high_among_the_rows_of_a_filter(void **state)
{
    static const char *const filters[] = { "{\"tenth\":{\"$lt\":5}}", "{\"tenth\":3}", "{\"hundredth\":7}" };

    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        vector *rows = make_rows(&kinds[i], 65 + i, N_ROWS + N_QUERIES);
        struct rig *x = open_sketched(3);

        put_many(x, rows, 0, N_ROWS);
        settle(x);
        for (size_t j = 0; j < ARRAY_SIZE(filters); j++) {
            double recall = recall_of(x, rows + N_ROWS, TOP_K, filters[j]);

            if (recall < 0.99)
                fail_msg("%s, %s: recall %.4f", kinds[i].name, filters[j], recall);
        }
        rig_close(x);
        free(rows);
    }
}

/* All rows are passed, the first of them far from the query: what the nearest lists hold tells which to leave out. */
static void rows_in_the_order_of_lists_are_left_out_from_the_first_one_on(void **state)
{
    static const struct {
        int64_t top_k;
        const char *filter;
        double most; /* rows that are scored, as a share of all */
    } cases[] = { { TOP_K, "{\"tenth\":{\"$lt\":5}}", 0.013 }, { 100, NULL, 0.05 } };
    vector *rows;
    struct rig *x;

    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");
    rows = make_rows(&kinds[2], 88, N_ROWS + N_QUERIES);
    x = open_sketched(3);
    x->config.list_above_rows = 2 * SKETCH_UNIT_ROWS;
    rig_reopen(x);
    put_many(x, rows, 0, N_ROWS);
    settle(x);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double before = scored(), share;

        assert_true(recall_of(x, rows + N_ROWS, cases[i].top_k, cases[i].filter) >= 0.99);
        share = (scored() - before) / ((double)N_QUERIES * N_ROWS);
        if (share > cases[i].most)
            fail_msg("case %zu: %.4f of the rows were scored", i, share);
    }
    rig_close(x);
    free(rows);
}

/* What a query reads, as a share of the codes of all rows: a sketch is a seventh of a row's codes. */
static double share_read(struct rig *x, vector *queries, size_t n, double *ret_passed)
{
    double n_passed = passed(), n_scored = scored(), all = (double)n * (N_ROWS - N_ROWS % SKETCH_UNIT_ROWS);

    for (size_t i = 0; i < n; i++)
        hits_of(x, queries[i], TOP_K, false, NULL);
    n_passed = (passed() - n_passed) / all;
    n_scored = (scored() - n_scored) / all;
    *ret_passed = n_passed;
    return n_scored + n_passed / 7;
}

/* Data with structure has few rows scored. Without any, most units are soon scored by their codes alone: what is read
 * is at most a ninth more than all codes, so the speed is never below 0.9 of that without sketches. */
static void sketches_are_read_only_where_they_leave_out_rows(void **state)
{
    enum { ROUNDS = 20 };

    if (IS_UNDER_TSAN)
        SKIP_TEST("many rows, and no threads that meet");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (int deviations = 3; deviations <= 4; deviations++) {
            vector *rows = make_rows(&kinds[i], 70 + i, N_ROWS + N_QUERIES);
            struct rig *x = open_sketched(deviations);
            double n_passed, share;

            put_many(x, rows, 0, N_ROWS);
            settle(x);
            share_read(x, rows + N_ROWS, ROUNDS, &n_passed);
            share = share_read(x, rows + N_ROWS + ROUNDS, ROUNDS, &n_passed);
            if (share > 1.1 || (!kinds[i].is_dense && deviations == 3 && (n_passed < 0.9 || share > 0.5)))
                fail_msg("%s, %d deviations: sketches of %.3f of the rows read, %.3f of the bytes of all codes",
                         kinds[i].name, deviations, n_passed, share);
            if (kinds[i].is_dense && deviations == 4 && n_passed > 0.2)
                fail_msg("sketches of %.3f of the rows read in vain", n_passed);
            rig_close(x);
            free(rows);
        }
}

/* A block's sketches cost as much as the codes of the few rows in it that match. */
static void a_filter_that_leaves_few_rows_of_each_block_reads_no_sketches(void **state)
{
    static const struct {
        const char *filter;
        bool is_sketched;
    } cases[] = { { "{\"hundredth\":{\"$in\":[0,20,40,60,80]}}", false }, { "{\"tenth\":3}", true } };
    vector *rows = make_rows(&kinds[0], 90, N_ROWS + N_QUERIES);
    struct rig *x = open_sketched(3);

    put_many(x, rows, 0, N_ROWS);
    settle(x);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double before = passed();

        assert_true(recall_of(x, rows + N_ROWS, TOP_K, cases[i].filter) >= 0.99);
        assert_true((passed() > before) == cases[i].is_sketched);
    }
    rig_close(x);
    free(rows);
}

/* Codes rank nearly all rows as floats do, so few more than the hits are read from the file. */
static void few_rows_are_scored_by_their_floats(void **state)
{
    static const struct {
        int64_t top_k;
        double most; /* rows for each hit */
    } cases[] = { { 1, 4 }, { TOP_K, 2 }, { 100, 1.4 } };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        vector *rows = make_rows(&kinds[i], 110 + i, SKETCH_UNIT_ROWS + N_QUERIES);
        struct rig *x = open_sketched(3);

        put_many(x, rows, 0, SKETCH_UNIT_ROWS);
        settle(x);
        for (size_t j = 0; j < ARRAY_SIZE(cases); j++) {
            double before = metric_of("hearth_vector_float_rows_total"), n;

            for (size_t k = 0; k < N_QUERIES; k++)
                hits_of(x, rows[SKETCH_UNIT_ROWS + k], cases[j].top_k, false, NULL);
            n = (metric_of("hearth_vector_float_rows_total") - before) / (double)(N_QUERIES * cases[j].top_k);
            if (n < 1 || n > cases[j].most)
                fail_msg("%s, %lld hits: %.2f rows for each", kinds[i].name, (long long)cases[j].top_k, n);
        }
        rig_close(x);
        free(rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_is_high_on_every_kind_of_data),
        cmocka_unit_test(four_deviations_are_as_good_as_exact),
        cmocka_unit_test(recall_is_measured_and_reported),
        cmocka_unit_test(an_exact_query_reads_no_sketches),
        cmocka_unit_test(without_deviations_there_are_no_sketches),
        cmocka_unit_test(recall_is_high_among_the_rows_of_a_filter),
        cmocka_unit_test(rows_in_the_order_of_lists_are_left_out_from_the_first_one_on),
        cmocka_unit_test(a_filter_that_leaves_few_rows_of_each_block_reads_no_sketches),
        cmocka_unit_test(sketches_are_read_only_where_they_leave_out_rows),
        cmocka_unit_test(few_rows_are_scored_by_their_floats),
    };

    return cmocka_run_group_tests_name("sketch_recall", tests, NULL, NULL);
}
