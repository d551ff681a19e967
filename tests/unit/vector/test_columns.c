#include "vector/engine/column.h"
#include "vector/engine/columns.h"
#include "vector/engine/engine.h"
#include "rig.h"
#include "../skip.h"
#include "../tsan.h"

static int set(struct rig *x, struct column *c, size_t slot, const char *metadata)
{
    return column_set(c, slot, rig_json(x, metadata));
}

/* The slots, among the first 64, for which the filter's one condition holds. */
static uint64_t apply(struct rig *x, struct column *c, const char *filter, size_t n, int expected)
{
    uint64_t mask = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0);
    struct vector_filter f = { 0 };

    MUST(vector_filter_parse(x->a, rig_json(x, filter), &f, &x->e));
    assert_int_equal(column_apply(c, f.items, &mask, n), expected);
    return mask;
}

static void a_column_reports_rows_by_their_value(void **state)
{
    static const char *const rows[] = { "{\"k\":1}",    "{\"k\":\"1\"}", "{}",        "{\"k\":1.0}",
                                        "{\"k\":null}", "{\"k\":[1]}",   "{\"k\":{}}" };
    struct rig *x = rig_open();
    struct column *c = column_new("k");

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(set(x, c, i, rows[i]), 0);
    assert_int_equal(apply(x, c, "{\"k\":1}", 7, 0), 0x09);
    assert_int_equal(apply(x, c, "{\"k\":\"1\"}", 7, 0), 0x02);
    assert_int_equal(apply(x, c, "{\"k\":null}", 7, 0), 0x14);
    assert_int_equal(apply(x, c, "{\"k\":{\"$ne\":1}}", 7, 0), 0x76);
    assert_int_equal(set(x, c, 7, "{\"k\":\"new\"}"), 0);
    assert_int_equal(apply(x, c, "{\"k\":{\"$in\":[\"new\",\"1\"]}}", 8, 0), 0x82);
    column_free(c);
    rig_close(x);
}

static void a_row_the_file_no_longer_has_is_unknown(void **state)
{
    struct rig *x = rig_open();
    struct column *c = column_new("k");

    assert_int_equal(set(x, c, 0, "{\"k\":1}"), 0);
    assert_int_equal(set(x, c, 2, "{\"k\":1}"), 0);
    apply(x, c, "{\"k\":1}", 3, -ESTALE);
    assert_int_equal(apply(x, c, "{\"k\":1}", 1, 0), 1);
    column_free(c);
    rig_close(x);
}

static void many_values_keep_apart(void **state)
{
    struct rig *x = rig_open();
    struct column *c = column_new("k");

    for (size_t i = 0; i < TENTH_UNDER_TSAN(5000); i++)
        assert_int_equal(set(x, c, i, arena_printf(x->a, "{\"k\":\"value %zu\"}", i % TENTH_UNDER_TSAN(1000))), 0);
    assert_int_equal(c->n_values, TENTH_UNDER_TSAN(1000));
    assert_int_equal(apply(x, c, "{\"k\":\"value 17\"}", 64, 0), UINT64_C(1) << 17);
    column_free(c);
    rig_close(x);
}

/* --- beyond the memory limits for values and for columns --- */

/* Values whose texts exceed the limit together: they are compared in the file. */
static void values_beyond_the_limit_are_compared_in_the_file(void **state)
{
    enum { VALUE = LIMIT_VECTOR_METADATA - 100, N = LIMIT_VECTOR_COLUMN_BYTES / VALUE + 2 };

    if (IS_UNDER_TSAN)
        SKIP_TEST("a size at its limit is tested under ASan");
    struct rig *x = rig_open();
    const float vector[] = { 1, 0 };
    struct vector_query q = { .vector = vector, .n_dimensions = 2, .top_k = 5, .min_score = -2 };
    struct vector_hits hits;
    char *value = arena_alloc(x->a, VALUE + 1);

    memset(value, 'v', VALUE);
    for (size_t i = 0; i < N; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();

        rig_put(x, "ns", arena_printf(a, "%zu", i), vector, 2, arena_printf(a, "{\"k\":\"%s%zu\"}", value, i));
    }
    q.filter = rig_json(x, arena_printf(x->a, "{\"k\":\"%s77\"}", value));
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 1);
    assert_string_equal(hits.items[0].id, "77");
    rig_close(x);
}

static size_t count_columns(struct space *s)
{
    size_t n = 0;

    for (struct column *c = s->columns.first; c; c = c->next)
        n++;
    return n;
}

static void columns_used_least_recently_make_room(void **state)
{
    struct rig *x = rig_open();
    struct engine *engine = engine_of(x->v);
    const float vector[] = { 1, 0 };
    struct vector_query q = { .vector = vector, .n_dimensions = 2, .top_k = 5, .min_score = -2 };
    struct space *s = engine_take(engine, "ns");
    size_t bytes;

    rig_put(x, "ns", "a", vector, 2, "{\"k7\":1}");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < LIMIT_VECTOR_CONDITIONS + 9; i++) {
            q.filter = rig_json(x, arena_printf(x->a, "{\"k%d\":1}", i));
            assert_int_equal(rig_query(x, "ns", &q).n, i == 7);
        }
    assert_int_equal(count_columns(s), LIMIT_VECTOR_CONDITIONS);
    bytes = atomic_load(&engine->bytes);
    columns_forget(&s->columns);
    assert_int_equal(count_columns(s), 0);
    assert_true(atomic_load(&engine->bytes) < bytes);
    space_unload(s);
    assert_int_equal(atomic_load(&engine->bytes), 0);
    engine_give_back(engine, s);
    rig_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_reports_rows_by_their_value),
        cmocka_unit_test(a_row_the_file_no_longer_has_is_unknown),
        cmocka_unit_test(many_values_keep_apart),
        cmocka_unit_test(values_beyond_the_limit_are_compared_in_the_file),
        cmocka_unit_test(columns_used_least_recently_make_room),
    };

    return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
