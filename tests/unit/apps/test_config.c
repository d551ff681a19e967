#include "app_config.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena *arena;
static struct app_config config;
static struct err e;

static int set_up(void **state)
{
    arena = arena_new();
    config = (struct app_config){ 0 };
    e = (struct err){ 0 };
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static int parse(const char *json)
{
    return parse_app_config(arena, slice_of(json), &config, &e);
}

static const char *rule_of(const char *field)
{
    for (unsigned i = 0; i < e.n_fields; i++)
        if (strcmp(e.fields[i].field, field) == 0)
            return e.fields[i].rule;
    return NULL;
}

static void the_whole_table_of_the_specification_is_read(void **state)
{
    static const char whole[] =
        "{\"app_id\":\"6fa459ea-ee8a-4ca4-894e-db77e160355e\",\"name\":\"triage\",\"display_name\":\"Triage\",\"app_type\":\"python\","
        "\"description\":\"sorts\",\"icon\":\"inbox\",\"enabled\":true,\"require_user_auth\":true,\"permissions\":[\"llm.chat\",\"x.y\"],"
        "\"config\":{\"command\":\"main.py\",\"args\":[\"--port\",\"{port}\"],\"working_dir\":\"/srv/triage\",\"env\":{\"MODE\":\"fast\"},"
        "\"agentHandlers\":[{\"tableName\":\"public.orders\",\"agentId\":\"sorter\",\"eventTypes\":[\"INSERT\",\"DELETE\"],"
        "\"description\":\"new ones\",\"review\":true}],"
        "\"backend\":{\"enabled\":true,\"mode\":\"compatible\",\"tables\":[\"public.orders\"],"
        "\"tableActions\":{\"public.orders\":[\"INSERT\"]},\"filter\":\"status=eq.pending\",\"max_concurrent_tasks\":3}}}";
    const struct app_handler *handler;

    if (parse(whole) < 0)
        fail_msg("%s", e.text);
    handler = config.handlers.items;
    assert_string_equal(config.app_id, "6fa459ea-ee8a-4ca4-894e-db77e160355e");
    assert_string_equal(config.display_name, "Triage");
    assert_string_equal(config.app_type, "python");
    assert_true(config.is_enabled);
    assert_true(config.is_user_auth_required);
    assert_int_equal(config.permissions.n, 2);
    assert_string_equal(config.command, "main.py");
    assert_string_equal(config.args.items[1], "{port}");
    assert_string_equal(config.working_dir, "/srv/triage");
    assert_string_equal(json_cstr(json_get(config.env, "MODE")), "fast");
    assert_int_equal(config.handlers.n, 1);
    assert_string_equal(handler->agent_id, "sorter");
    assert_int_equal(handler->event_types.n, 2);
    assert_true(handler->is_review);
    assert_true(config.backend.is_enabled);
    assert_string_equal(config.backend.mode, "compatible");
    assert_string_equal(config.backend.filter, "status=eq.pending");
    assert_int_equal(config.backend.max_concurrent_tasks, 3);
}

static void the_smallest_one_has_the_defaults(void **state)
{
    if (parse("{\"name\":\"n\"}") < 0)
        fail_msg("%s", e.text);
    assert_string_equal(config.display_name, "n");
    assert_string_equal(config.backend.mode, "compatible");
    assert_int_equal(config.backend.max_concurrent_tasks, 1);
    assert_false(config.backend.is_enabled);
    assert_false(config.is_enabled);
    assert_false(app_config_is_launchable(&config));
}

static void every_error_is_reported_at_once(void **state)
{
    static const char *const fields[] = {
        "name",
        "config.command",
        "config.working_dir",
        "config.env.1A",
        "config.agentHandlers[0].agentId",
        "config.agentHandlers[0].eventTypes[0]",
        "config.backend.mode",
        "config.backend.max_concurrent_tasks",
        "config.backend.tables[0]",
        "config.backend.tableActions.zzz",
        "config.backend.filter",
    };
    int r = parse(
        "{\"name\":\"a/b\",\"app_type\":\"custom\",\"config\":{\"working_dir\":\"rel\",\"env\":{\"1A\":\"x\"},"
        "\"agentHandlers\":[{\"tableName\":\"nope\",\"eventTypes\":[\"FOO\"]}],"
        "\"backend\":{\"enabled\":true,\"mode\":\"odd\",\"tables\":[\"x y\"],\"tableActions\":{\"zzz\":[\"INSERT\"]},"
        "\"filter\":\"bogus\",\"max_concurrent_tasks\":0}}}");

    assert_int_equal(r, -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (!rule_of(fields[i]))
            fail_msg("nothing is said about %s", fields[i]);
    assert_int_equal(e.n_fields, ARRAY_SIZE(fields));
}

static const struct {
    const char *what, *json, *field;
} refused[] = {
    { "no name", "{}", "name" },
    { "an empty name", "{\"name\":\"\"}", "name" },
    { "a control character in the name", "{\"name\":\"a\\u001bb\"}", "name" },
    { "an id that is no UUID", "{\"name\":\"n\",\"app_id\":\"7\"}", "app_id" },
    { "an unknown type", "{\"name\":\"n\",\"app_type\":\"ruby\"}", "app_type" },
    { "custom without command", "{\"name\":\"n\",\"app_type\":\"custom\"}", "config.command" },
    { "enabled without command", "{\"name\":\"n\",\"enabled\":true}", "config.command" },
    { "python without script", "{\"name\":\"n\",\"app_type\":\"python\"}", "config.args" },
    { "npx without package", "{\"name\":\"n\",\"app_type\":\"npx\",\"config\":{}}", "config.args" },
    { "a number for args", "{\"name\":\"n\",\"config\":{\"args\":1}}", "config.args" },
    { "a number among args", "{\"name\":\"n\",\"config\":{\"args\":[\"a\",1]}}", "config.args[1]" },
    { "env of numbers", "{\"name\":\"n\",\"config\":{\"env\":{\"A\":1}}}", "config.env.A" },
    { "a table twice", "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"orders\",\"public.orders\"]}}}",
      "config.backend.tables[1]" },
    { "a table of the service's own", "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"_changes\"]}}}",
      "config.backend.tables[0]" },
    { "an underscore in front", "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"public._mine\"]}}}",
      "config.backend.tables[0]" },
    { "a table of SQLite's", "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"SQLite_master\"]}}}",
      "config.backend.tables[0]" },
    { "the table of deletions",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"orders\",\"public.SVC_deletions\"]}}}",
      "config.backend.tables[1]" },
    { "custom mode without tables",
      "{\"name\":\"n\",\"config\":{\"home_url\":\"http://127.0.0.1:9\",\"backend\":{\"enabled\":true,\"mode\":\"custom\"}}}",
      "config.backend.tables" },
    { "custom mode without an address",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"enabled\":true,\"mode\":\"custom\",\"tables\":[\"orders\"]}}}",
      "config.home_url" },
    { "custom mode of the service's table",
      "{\"name\":\"n\",\"config\":{\"home_url\":\"http://127.0.0.1:9\",\"backend\":{\"enabled\":true,\"mode\":\"custom\",\"tables\":[\"svc_activities\"]}}}",
      "config.backend.tables[0]" },
    { "a custom table without a status",
      "{\"name\":\"n\",\"config\":{\"home_url\":\"http://127.0.0.1:9\",\"backend\":{\"enabled\":true,\"mode\":\"custom\",\"tables\":[\"orders\"],\"schema\":{\"orders\":{\"columns\":{\"id\":{\"type\":\"uuid\",\"key\":true},\"locked_by\":{\"type\":\"text\"},\"locked_at\":{\"type\":\"timestamptz\"}}}}}}}",
      "config.backend.schema.orders.columns.status" },
    { "a custom table with a wrong type",
      "{\"name\":\"n\",\"config\":{\"home_url\":\"http://127.0.0.1:9\",\"backend\":{\"enabled\":true,\"mode\":\"custom\",\"tables\":[\"orders\"],\"schema\":{\"orders\":{\"columns\":{\"id\":{\"type\":\"uuid\",\"key\":true},\"status\":{\"type\":\"text\"},\"locked_by\":{\"type\":\"text\"},\"locked_at\":{\"type\":\"text\"}}}}}}}",
      "config.backend.schema.orders.columns.locked_at" },
    { "a custom table without a key of one column",
      "{\"name\":\"n\",\"config\":{\"home_url\":\"http://127.0.0.1:9\",\"backend\":{\"enabled\":true,\"mode\":\"custom\",\"tables\":[\"orders\"],\"schema\":{\"orders\":{\"columns\":{\"id\":{\"type\":\"uuid\",\"key\":true},\"other\":{\"type\":\"uuid\",\"key\":true},\"status\":{\"type\":\"text\"},\"locked_by\":{\"type\":\"text\"},\"locked_at\":{\"type\":\"timestamptz\"}}}}}}}",
      "config.backend.schema.orders.columns" },
    { "actions that are no array",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"tableActions\":{\"svc_activities\":\"INSERT\"}}}}",
      "config.backend.tableActions.svc_activities" },
    { "no action at all", "{\"name\":\"n\",\"config\":{\"backend\":{\"tableActions\":{\"svc_activities\":[]}}}}",
      "config.backend.tableActions.svc_activities" },
    { "an unknown action",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"tableActions\":{\"svc_activities\":[\"TRUNCATE\"]}}}}",
      "config.backend.tableActions.svc_activities" },
    { "a handler for an undeclared table",
      "{\"name\":\"n\",\"config\":{\"agentHandlers\":[{\"tableName\":\"orders\",\"agentId\":\"a\",\"eventTypes\":[\"INSERT\"]}]}}",
      "config.agentHandlers[0].tableName" },
    { "a handler without events",
      "{\"name\":\"n\",\"config\":{\"agentHandlers\":[{\"tableName\":\"svc_activities\",\"agentId\":\"a\"}]}}",
      "config.agentHandlers[0].eventTypes" },
    { "two handlers of one event",
      "{\"name\":\"n\",\"config\":{\"agentHandlers\":[{\"tableName\":\"svc_activities\",\"agentId\":\"a\",\"eventTypes\":[\"INSERT\"]},"
      "{\"tableName\":\"public.svc_activities\",\"agentId\":\"b\",\"eventTypes\":[\"UPDATE\",\"INSERT\"]}]}}",
      "config.agentHandlers[1]" },
};

static void what_is_refused_names_its_field(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        e = (struct err){ 0 };
        if (parse(refused[i].json) != -EINVAL || e.n_fields != 1 || !rule_of(refused[i].field))
            fail_msg("%s: %u errors, %s", refused[i].what, e.n_fields, e.text);
    }
}

/* Each table is looked up in the list of tables: 150,000 of them used up the memory of a request. */
static void actions_are_named_for_as_many_tables_as_there_may_be(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;

    for (size_t n = LIMIT_APP_TABLES + 1; n <= LIMIT_APP_TABLES + 2; n++) {
        buf_init(&text, MIB(1));
        buf_add_str(&text, "{\"name\":\"n\",\"config\":{\"backend\":{\"tableActions\":{");
        for (size_t i = 0; i < n; i++)
            buf_printf(&text, "%s\"t%zu\":[\"INSERT\"]", i ? "," : "", i);
        e = (struct err){ 0 };
        assert_int_equal(parse(arena_printf(a, "%s}}}}", buf_str(&text))), -EINVAL);
        assert_int_equal(strcmp(e.fields[0].field, "config.backend.tableActions") == 0, n == LIMIT_APP_TABLES + 2);
        buf_clear(&text);
    }
}

static const struct {
    const char *what, *json;
} accepted[] = {
    { "the implicit table",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"tableActions\":{\"public.svc_activities\":[\"DELETE\"]}}}}" },
    { "a working_dir below the data folder",
      "{\"name\":\"n\",\"config\":{\"command\":\"x\",\"working_dir\":\"{data_dir}/www\"}}" },
    { "handlers of different events",
      "{\"name\":\"n\",\"config\":{\"agentHandlers\":[{\"tableName\":\"svc_activities\",\"agentId\":\"a\",\"eventTypes\":[\"INSERT\"]},"
      "{\"tableName\":\"svc_activities\",\"agentId\":\"b\",\"eventTypes\":[\"UPDATE\"]}]}}" },
    { "tables that only look reserved",
      "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[\"my_changes\",\"sqlite\",\"svc_deletions_of_mine\"]}}}" },
    { "null for what is absent", "{\"name\":\"n\",\"config\":null,\"app_type\":null,\"permissions\":null}" },
    { "unknown members", "{\"name\":\"n\",\"subscription\":1,\"config\":{\"color\":2}}" },
    { "a package in the arguments", "{\"name\":\"n\",\"app_type\":\"uvx\",\"config\":{\"args\":[\"ruff\"]}}" },
};

static void what_is_right_is_accepted(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        e = (struct err){ 0 };
        if (parse(accepted[i].json) < 0)
            fail_msg("%s: %s", accepted[i].what, e.text);
    }
}

static int parse_with_concurrency(int n)
{
    e = (struct err){ 0 };
    return parse(arena_printf(arena, "{\"name\":\"n\",\"config\":{\"backend\":{\"max_concurrent_tasks\":%d}}}", n));
}

static int parse_with_tables(size_t n)
{
    char *tables = arena_strdup(arena, "\"t0\"");

    for (size_t i = 1; i < n; i++)
        tables = arena_printf(arena, "%s,\"t%zu\"", tables, i);
    e = (struct err){ 0 };
    return parse(arena_printf(arena, "{\"name\":\"n\",\"config\":{\"backend\":{\"tables\":[%s]}}}", tables));
}

static int parse_with_prompt(size_t n_bytes)
{
    char *prompt = arena_alloc(arena, n_bytes + 1);

    for (size_t i = 0; i + 1 < n_bytes; i += 2)
        memcpy(prompt + i, "é", 2);
    if (n_bytes % 2)
        prompt[n_bytes - 1] = 'x';
    prompt[n_bytes] = '\0';
    e = (struct err){ 0 };
    return parse(arena_printf(
        arena,
        "{\"name\":\"n\",\"config\":{\"agentHandlers\":[{\"tableName\":\"svc_activities\",\"agentId\":\"a\","
        "\"eventTypes\":[\"INSERT\"],\"prompt\":\"%s\"}]}}",
        prompt));
}

static void a_prompt_fits_into_a_variable(void **state)
{
    assert_int_equal(parse_with_prompt(LIMIT_ARG_BYTES - strlen("AGENT_PROMPT=")), 0);
    assert_int_equal(parse_with_prompt(LIMIT_ARG_BYTES - strlen("AGENT_PROMPT=") + 1), -EINVAL);
    assert_non_null(rule_of("config.agentHandlers[0].prompt"));
}

static void the_limits_hold_at_their_edges(void **state)
{
    assert_int_equal(parse_with_concurrency(LIMIT_MAX_CONCURRENT), 0);
    assert_int_equal(parse_with_concurrency(LIMIT_MAX_CONCURRENT + 1), -EINVAL);
    assert_int_equal(parse_with_concurrency(0), -EINVAL);
    assert_int_equal(parse_with_tables(LIMIT_APP_TABLES), 0);
    assert_int_equal(parse_with_tables(LIMIT_APP_TABLES + 1), -EINVAL);
}

static void broken_json_is_reported_as_such(void **state)
{
    assert_int_equal(parse("{\"name\":"), -EINVAL);
    assert_string_equal(e.code, "INVALID_JSON");
    e = (struct err){ 0 };
    assert_int_equal(parse("[]"), -EINVAL);
}

#define WITH_SCHEMA(tables, schema)                                                                                    \
    "{\"name\":\"a\",\"config\":{\"backend\":{\"tables\":[" tables "],\"schema\":" schema "}}}"

static void tables_with_columns_of_their_own_are_checked(void **state)
{
    static const struct {
        const char *json, *field;
    } cases[] = {
        { WITH_SCHEMA("", "{\"orders\":{\"columns\":{\"id\":{\"type\":\"uuid\",\"key\":true,"
                          "\"default\":\"gen_random_uuid()\"},\"n\":{\"type\":\"int4\",\"default\":3,"
                          "\"check\":{\"in\":[1,2,3]}}}}}"),
          NULL },
        { WITH_SCHEMA("", "[]"), "config.backend.schema" },
        { WITH_SCHEMA("", "{\"a b\":{\"columns\":{\"id\":{\"type\":\"uuid\"}}}}"), "config.backend.schema.a b" },
        { WITH_SCHEMA("", "{\"t\":{}}"), "config.backend.schema.t.columns" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{}}}"), "config.backend.schema.t.columns" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":1}}}"), "config.backend.schema.t.columns.c" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{}}}}"), "config.backend.schema.t.columns.c.type" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"money\"}}}}"),
          "config.backend.schema.t.columns.c.type" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\",\"default\":\"x\"}}}}"),
          "config.backend.schema.t.columns.c.default" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\",\"key\":1}}}}"),
          "config.backend.schema.t.columns.c.key" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\",\"primary\":true}}}}"),
          "config.backend.schema.t.columns.c.primary" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\",\"check\":{\"in\":[]}}}}}"),
          "config.backend.schema.t.columns.c.check" },
        { WITH_SCHEMA("", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\",\"check\":{\"in\":[\"x\"]}}}}}"),
          "config.backend.schema.t.columns.c.check.in" },
        { WITH_SCHEMA("", "{\"svc_activities\":{\"columns\":{\"c\":{\"type\":\"int4\"}}}}"),
          "config.backend.schema.svc_activities" },
        { WITH_SCHEMA("\"public.t\"", "{\"t\":{\"columns\":{\"c\":{\"type\":\"int4\"}}}}"), "config.backend.schema.t" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        e = (struct err){ 0 };
        config = (struct app_config){ 0 };
        if (!cases[i].field && parse(cases[i].json) < 0)
            fail_msg("%s", e.text);
        if (cases[i].field && (parse(cases[i].json) == 0 || !rule_of(cases[i].field)))
            fail_msg("%s: %s", cases[i].json, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_with_columns_of_their_own_are_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_whole_table_of_the_specification_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_smallest_one_has_the_defaults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_error_is_reported_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_names_its_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_right_is_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_limits_hold_at_their_edges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_prompt_fits_into_a_variable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_json_is_reported_as_such, set_up, tear_down),
        cmocka_unit_test_setup_teardown(actions_are_named_for_as_many_tables_as_there_may_be, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
