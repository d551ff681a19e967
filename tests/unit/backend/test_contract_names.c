/* Tables with every legal name: set up, claimed, completed, deleted, reported and called by name. */
#include "recorder.h"
#include "../skip.h"
#include "backend/functions.h"

#include <string.h>

/* A name of 63 bytes; quotes are doubled in its declared form. */
#define LONG_PART "\"a 23456789 123456789 123456789 123456789 123456789 123456789 12\""

#define TOO_LONG "\"a 23456789 123456789 123456789 123456789 123456789 123456789 123\""

static const char *const names[] = {
    "\"my orders\"",
    "\"a.b\"",
    "\"say \"\"now\"\"\"",
    LONG_PART,
    "\"\xC3\xBC\xE2\x82\xAC \xF0\x9F\x98\x80\"",
    "\"x; DROP TABLE svc_activities; --\"",
    "\"{table} {name} $1 %s %1$s\"",
    "\"$fn$ $do$ $hearth$ $q$\"",
    "\"select\"",
    "\"b?c#d%2e&e=f\"",
};
/* A server may take no path with such a segment. */
static const char *const names_beside_paths[] = {
    "\"tab\tand\nline\"",
    "\"back\\slash\"",
    "\"..\"",
    "\"a/../b\"",
};
static const char *const names_in_schemas[] = {
    "sales.\"a.b\"",
    "\"Sales\".\"Orders\"",
    "\"it's\".\"say \"\"now\"\"\"",
    "\"$fn$ $do$ $hearth$ $q$\".\"$fn$ $do$ $hearth$ $q$\"",
    (LONG_PART "." LONG_PART),
};

static struct backend_row work_on(struct rig *rig, const char *table, const char *id)
{
    struct backend_claim claim = { .table = table, .row_id = id, .machine_id = "lin-a", .stale_after_ms = STALE_MS };
    struct backend_lease lease;
    struct backend_row row;
    struct err e = { 0 };

    must(backend_claim(rig->backend, &claim, rig->arena, &row, &lease, &e), &e);
    must(backend_heartbeat(rig->backend, &lease, &e), &e);
    must(backend_complete(rig->backend, &lease, "{\"ok\":1}", &e), &e);
    must(backend_get(rig->backend, table, id, NULL, rig->arena, &row, &e), &e);
    assert_string_equal(row.table, table);
    return row;
}

static void live_in(struct rig *rig, const char *name)
{
    struct backend_new_row in = { .raw_data = "{\"n\":1}" };
    struct backend_row row;
    struct err e = { 0 };
    char *table = NULL;

    must(backend_table_name(rig->arena, name, &table, &e), &e);
    must(OPS(rig)->ensure_table(rig->backend, name, &e), &e);
    must(OPS(rig)->ensure_table(rig->backend, table, &e), &e);
    in.table = table;
    must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
    assert_string_equal(work_on(rig, table, row.id).status, "completed");
    must(backend_remove(rig->backend, table, row.id, NULL, &e), &e);
}

static void rows_live_in_a_table_of_any_name(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        live_in(*state, names[i]);
}

static void rows_live_in_a_table_whose_name_is_no_path(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(names_beside_paths); i++)
        live_in(*state, names_beside_paths[i]);
}

static void rows_live_in_a_table_of_any_schema(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(names_in_schemas); i++)
        live_in(*state, names_in_schemas[i]);
}

static void report_under(struct rig *rig, struct recorder *rec, const char *name)
{
    struct backend_new_row in = { .raw_data = "{\"n\":1}" };
    size_t n = recorder_n(rec); /* nothing is under way */
    const struct recorded *events;
    struct backend_row row;
    struct err e = { 0 };
    char *table = NULL;

    must(backend_table_name(rig->arena, name, &table, &e), &e);
    must(OPS(rig)->ensure_table(rig->backend, table, &e), &e);
    hosted_settle(rig->backend);
    in.table = table;
    must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
    must(backend_remove(rig->backend, table, row.id, NULL, &e), &e);
    events = recorder_wait(rec, n + 2);
    assert_string_equal(events[n].table, table);
    assert_int_equal(events[n + 1].op, BACKEND_DELETE);
    assert_string_equal(events[n + 1].work_source, table);
}

static void changes_are_reported_under_any_name(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec;

    if (!rig_has_events(rig))
        SKIP_TEST("the provider has no events here");
    rec = recorder_start(rig->backend);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        report_under(rig, rec, names[i]);
    recorder_stop(rig->backend, rec);
}

static void changes_are_reported_under_any_schema(void **state)
{
    struct rig *rig = *state;
    struct recorder *rec;

    if (!rig_has_events(rig))
        SKIP_TEST("the provider has no events here");
    rec = recorder_start(rig->backend);
    for (size_t i = 0; i < ARRAY_SIZE(names_in_schemas); i++)
        report_under(rig, rec, names_in_schemas[i]);
    recorder_stop(rig->backend, rec);
}

static struct json_value call(struct rig *rig, const char *function, const char *arguments)
{
    const struct function_call it = { function, rig_json(rig, arguments), NULL };
    char *result = NULL;
    struct err e = { 0 };

    must(functions_call(rig->backend, &it, rig->arena, &result, &e), &e);
    return rig_json(rig, result);
}

static struct json_value first(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value item = { 0 };

    assert_true(json_next(&it, NULL, &item));
    return item;
}

static void functions_take_a_name_as_it_is_declared(void **state)
{
    struct rig *rig = *state;
    struct backend_new_row in = { .table = "sales.\"my orders\"", .raw_data = "{}" };
    struct json_value table;
    struct backend_row row;
    struct err e = { 0 };

    must(OPS(rig)->ensure_table(rig->backend, "\"sales\".\"my orders\"", &e), &e);
    must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
    assert_true(json_bool(json_get(
        call(
            rig, "svc_fn_claim_task",
            arena_printf(rig->arena,
                         "{\"task_id\":\"%s\",\"machine_id\":\"m\",\"table_name\":\"\\\"sales\\\".\\\"my orders\\\"\"}",
                         row.id)),
        "success")));
    table = first(json_get(first(call(rig, "get_publications_full", "{}")), "tables"));
    assert_string_equal(json_cstr(json_get(table, "schema")), "sales");
    assert_string_equal(json_cstr(json_get(table, "table")), "my orders");
}

static void names_that_no_database_holds_are_refused(void **state)
{
    static const char *const wrong[] = { "\"\"",          "\"a",    "a\"b\"",          "\"a\" ",          "\"\xFF\"",
                                         "\"a" LONG_PART, TOO_LONG, "sales." TOO_LONG, TOO_LONG ".orders" };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct err e = { 0 };

        assert_int_equal(OPS(rig)->ensure_table(rig->backend, wrong[i], &e), -EINVAL);
        assert_non_null(strstr(e.text, "1 to 63 bytes"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_live_in_a_table_of_any_name),         TEST(rows_live_in_a_table_whose_name_is_no_path),
        TEST(rows_live_in_a_table_of_any_schema),       TEST(changes_are_reported_under_any_name),
        TEST(changes_are_reported_under_any_schema),    TEST(functions_take_a_name_as_it_is_declared),
        TEST(names_that_no_database_holds_are_refused),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
