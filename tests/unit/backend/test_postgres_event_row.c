#include "fixture.h"
#include "backend/postgres/postgres_event_row.h"

#include <string.h>

#define LEASE_OF(id, status, retries)                                                                                  \
    "[" id ",null,null,null,null," status ",\"m\",null,null,null,null," retries ",null,null,\"5\",\"UPDATE\",null,\"1\""
#define LEASE LEASE_OF("\"7\"", "\"claimed\"", "\"2\"") "]"
#define WHOLE                                                                                                          \
    "[\"7\",\"app\",null,\"{\\\"a\\\": [1, 2]}\",null,\"pending\",null,null,null,null,\"[]\",\"0\",null,"              \
    "\"2026-11-23T10:00:00.000000Z\",\"0\",\"INSERT\",null,\"0\"]"

static int read_image(struct arena *a, const char *json, struct backend_row *ret, struct err *e)
{
    const struct postgres_event_image image = { .json = slice_of(json), .table = "t" };

    return postgres_event_row_read(a, &image, ret, e);
}

static void a_whole_row_has_every_column_and_compact_json(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(read_image(a, WHOLE, &row, &e), &e);
    assert_string_equal(row.table, "t");
    assert_string_equal(row.id, "7");
    assert_string_equal(row.app_id, "app");
    assert_null(row.user_id);
    assert_string_equal(row.raw_data, "{\"a\":[1,2]}");
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(row.event, BACKEND_INSERT);
    assert_false(row.is_dirty);
}

static void a_row_whose_lease_changed_has_the_columns_of_a_lease(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(read_image(a, LEASE, &row, &e), &e);
    assert_string_equal(row.status, "claimed");
    assert_string_equal(row.locked_by, "m");
    assert_int_equal(row.retry_count, 2);
    assert_int_equal(row.attempt, 5);
    assert_int_equal(row.event, BACKEND_UPDATE);
    assert_true(row.is_dirty);
    assert_null(row.raw_data);
}

static void what_is_no_list_of_its_columns_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "null",
        "[\"7\"]",
        LEASE_OF("\"7\"", "\"claimed\"", "\"2\""),
        LEASE_OF("\"7\"", "\"claimed\"", "2") "]",
        LEASE_OF("\"7\"", "\"claimed\"", "\"2\"") ",null]",
        LEASE_OF("null", "\"claimed\"", "\"2\"") "]",
        LEASE_OF("\"7\"", "null", "\"2\"") "]",
        LEASE_OF("\"7\"", "\"a\\u0000b\"", "\"2\"") "]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct backend_row row = { .id = "kept" };
        struct err e = { 0 };

        if (read_image(a, bad[i], &row, &e) != -EINVAL)
            fail_msg("%s was read", bad[i]);
        assert_string_equal(e.code, "INVALID_JSON");
        assert_string_equal(row.id, "kept");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_row_has_every_column_and_compact_json),
        cmocka_unit_test(a_row_whose_lease_changed_has_the_columns_of_a_lease),
        cmocka_unit_test(what_is_no_list_of_its_columns_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
