/* The columns of a project's tables: what is read of the project's answer, and how many tables are kept. */
#include "backend/hosted/hosted_query.h"
#include "hosted_script.h"

static int parse(struct arena *a, const char *text, struct table_shape *ret, struct err *e)
{
    bool is_listed;

    return hosted_shape_parse("orders", text, a, ret, &is_listed, e);
}

static const char *with_columns(struct arena *a, size_t n)
{
    struct buf out;

    buf_init(&out, MIB(1));
    buf_add_str(&out, "{\"columns\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(&out, "%s{\"name\":\"c%zu\",\"type\":\"text\"}", i ? "," : "", i);
    buf_add_str(&out, "]}");
    return buf_to_arena(&out, a);
}

static void a_table_has_1600_columns_at_most(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_shape shape = { 0 };
    struct err e = { 0 };

    assert_int_equal(parse(a, with_columns(a, LIMIT_HOSTED_COLUMNS), &shape, &e), 0);
    assert_int_equal(shape.n_columns, LIMIT_HOSTED_COLUMNS);
    assert_int_equal(parse(a, with_columns(a, LIMIT_HOSTED_COLUMNS + 1), &shape, &e), -EIO);
    assert_string_equal(e.code, "STORE_FAILED");
}

static void a_column_has_a_name_and_a_type(void **state)
{
    static const char *const lies[] = {
        "{\"columns\":[{}]}",
        "{\"columns\":[5]}",
        "{\"columns\":[{\"name\":\"a\"}]}",
        "{\"columns\":[{\"type\":\"text\"}]}",
        "{\"columns\":[{\"name\":\"a\\u0000b\",\"type\":\"text\"}]}",
        "{\"columns\":[{\"name\":\"a\",\"type\":[\"text\"]}]}",
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_shape shape = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        struct err e = { 0 };

        assert_int_equal(parse(a, lies[i], &shape, &e), -EIO);
        assert_string_equal(e.code, "STORE_FAILED");
    }
    assert_int_equal(parse(a, "{\"columns\":null}", &shape, NULL), 0);
    assert_int_equal(shape.n_columns, 0);
}

static int n_requests_of(struct project *p, const char *table)
{
    int n = atomic_load(&p->script.n);
    struct table_shape shape;
    struct err e = { 0 };

    if (hosted_shape(p->backend, table, p->arena, &shape, &e) < 0)
        fail_msg("%s: %s %s", table, e.code, e.text);
    return atomic_load(&p->script.n) - n;
}

static void the_columns_of_1024_tables_are_kept(void **state)
{
    static const char *const bodies[] = {
        TABLE_THERE, "{\"columns\":[{\"name\":\"id\",\"type\":\"int8\",\"key\":true}],\"is_declared\":true}"
    };
    static const int statuses[] = { 200, 200 };
    struct project p;
    char name[32];

    open_patient_project(&p, bodies, statuses, 2);
    for (int i = 0; i < LIMIT_HOSTED_SHAPES; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        assert_int_equal(n_requests_of(&p, name), 1);
    }
    assert_int_equal(n_requests_of(&p, name), 0);
    assert_int_equal(n_requests_of(&p, "another"), 1);
    assert_int_equal(n_requests_of(&p, "another"), 1);
    hosted_shape_forget(hosted_of(p.backend), name);
    assert_int_equal(n_requests_of(&p, name), 1);
    assert_int_equal(n_requests_of(&p, name), 0);
    close_project(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_has_1600_columns_at_most),
        cmocka_unit_test(a_column_has_a_name_and_a_type),
        cmocka_unit_test(the_columns_of_1024_tables_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
