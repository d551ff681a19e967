/* The columns of declared tables, which the backend keeps for a moment and other programs may change at any time. */
#include "query_rig.h"
#include "rig_postgres.h"

#include "backend/postgres/postgres_shapes.h"
#include "base/clock.h"
#include "base/limits.h"

/* --- what is kept --- */

static struct table_column columns[] = { { .name = "id", .type_name = "uuid", .is_key = true },
                                         { .name = "n", .type_name = "int4", .default_text = "0" } };
static const struct table_shape shape = { .table = "notes", .columns = columns, .n_columns = 2 };

static void a_kept_shape_is_a_copy(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_shapes *s = postgres_shapes_new();
    struct table_shape found;

    assert_false(postgres_shapes_find(s, "notes", a, &found));
    postgres_shapes_keep(s, &shape, clock_mono_ms() + 60000);
    assert_true(postgres_shapes_find(s, "notes", a, &found));
    assert_false(postgres_shapes_find(s, "Notes", a, &found));
    postgres_shapes_free(s);
    assert_string_equal(found.table, "notes");
    assert_true(found.n_columns == 2 && found.columns[0].is_key && !found.columns[1].is_key);
    assert_string_equal(found.columns[1].type_name, "int4");
    assert_string_equal(found.columns[1].default_text, "0");
}

static void an_old_shape_and_one_read_before_a_change_are_not_given(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_shapes *s = postgres_shapes_new();
    int64_t before_ms = clock_mono_ms();
    struct table_shape found;

    postgres_shapes_keep(s, &shape, before_ms - LIMIT_BACKEND_SHAPE_MS);
    assert_false(postgres_shapes_find(s, "notes", a, &found));
    postgres_shapes_keep(s, &shape, before_ms + 60000);
    postgres_shapes_forget(s, "notes");
    assert_false(postgres_shapes_find(s, "notes", a, &found));
    postgres_shapes_keep(s, &shape, before_ms);
    assert_false(postgres_shapes_find(s, "notes", a, &found));
    postgres_shapes_free(s);
}

static void the_shapes_of_the_last_256_tables_are_kept(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_shapes *s = postgres_shapes_new();
    struct table_shape one = shape, found;
    size_t n = 0;

    for (int i = 0; i < LIMIT_BACKEND_SHAPES + 20; i++) {
        one.table = arena_printf(a, "notes_%d", i);
        postgres_shapes_keep(s, &one, clock_mono_ms() + 60000);
    }
    for (int i = 0; i < LIMIT_BACKEND_SHAPES + 20; i++)
        n += postgres_shapes_find(s, arena_printf(a, "notes_%d", i), a, &found) && i >= 20;
    assert_int_equal(n, LIMIT_BACKEND_SHAPES);
    postgres_shapes_free(s);
}

/* --- a table that another program changes --- */

static const char *code_of(struct rig *rig, const char *column)
{
    struct query_item item = { .path = { .column = column } };
    struct query q = select_all();
    struct query_reply reply;
    struct err e;

    q.items = &item;
    q.n_items = 1;
    return run(rig, &q, &reply, &e) == 0 ? "" : arena_strdup(rig->arena, e.code);
}

static void a_change_of_the_columns_is_noticed_by_the_next_query(void **state)
{
    struct rig *rig = *state;

    declare(rig, &orders);
    assert_string_equal(code_of(rig, "later"), "UNKNOWN_COLUMN");
    for (int i = 0; i < 3; i++) { /* whether the shape is fresh or not */
        rig_sql(rig, "ALTER TABLE orders ADD COLUMN later text");
        assert_string_equal(code_of(rig, "later"), "");
        rig_sql(rig, "ALTER TABLE orders DROP COLUMN later");
        assert_string_equal(code_of(rig, "later"), "UNKNOWN_COLUMN");
    }
    rig_sql(rig, "ALTER TABLE orders RENAME TO elsewhere");
    assert_string_equal(code_of(rig, "name"), "UNKNOWN_TABLE");
    rig_sql(rig, "ALTER TABLE elsewhere RENAME TO orders");
    assert_string_equal(code_of(rig, "name"), "");
}

static void a_declaration_is_seen_at_once(void **state)
{
    struct table_column more[] = { order_columns[0], { .name = "added", .type = TABLE_TEXT, .is_nullable = true } };
    struct table_shape first = { .table = "orders", .columns = more, .n_columns = 1 };
    struct table_shape found = { 0 };
    struct rig *rig = *state;
    struct err e = { 0 };

    declare(rig, &first);
    must(backend_shape(rig->backend, "orders", rig->arena, &found, &e), &e);
    assert_int_equal(found.n_columns, 1);
    first.n_columns = 2;
    declare(rig, &first);
    must(backend_shape(rig->backend, "orders", rig->arena, &found, &e), &e);
    assert_int_equal(found.n_columns, 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_shape_is_a_copy),
        cmocka_unit_test(an_old_shape_and_one_read_before_a_change_are_not_given),
        cmocka_unit_test(the_shapes_of_the_last_256_tables_are_kept),
        POSTGRES_TEST(a_change_of_the_columns_is_noticed_by_the_next_query),
        POSTGRES_TEST(a_declaration_is_seen_at_once),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
