#include "agents/definition.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static int check(struct arena *a, const char *json, struct agent_definition *ret, struct err *e)
{
    struct json_value object;
    int r, r_rules;

    *ret = (struct agent_definition){ 0 };
    assert_int_equal(json_parse(a, slice_of(json), &object, NULL), 0);
    r = fields_read(agent_definition_fields, object, ret, a, "", e);
    r_rules = agent_definition_check(ret, NULL, e);
    return r < 0 ? r : r_rules;
}

static void a_model_agent_has_defaults(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition d;

    assert_int_equal(check(a, "{\"name\":\"m\",\"kind\":\"model\"}", &d, NULL), 0);
    assert_true(agent_is_model(&d));
    assert_int_equal(agent_approval_of(&d), AGENT_APPROVAL_DANGEROUS);
    assert_int_equal(d.max_steps, 20);
    assert_int_equal(d.max_tokens_per_turn, 0);
    assert_true(d.timeout_s == 900);
    assert_false(d.has_temperature);
    assert_null(d.provider);
    assert_null(d.instructions);
    assert_int_equal(d.tools.n, 0);
}

static void every_field_of_a_model_agent_is_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition d;

    assert_int_equal(check(a,
                           "{\"name\":\"m\",\"kind\":\"model\",\"instructions\":\"Sort.\",\"provider\":\"ollama\","
                           "\"model\":\"qwen3\",\"effort\":\"low\",\"temperature\":0,\"tools\":[\"builtin/now\"],"
                           "\"approval\":\"never\",\"max_steps\":3,\"max_tokens_per_turn\":900,\"timeout_s\":2.5,"
                           "\"hub_id\":\"h\"}",
                           &d, NULL),
                     0);
    assert_string_equal(d.instructions, "Sort.");
    assert_string_equal(d.provider, "ollama");
    assert_string_equal(d.model, "qwen3");
    assert_string_equal(d.effort, "low");
    assert_true(d.has_temperature && d.temperature == 0);
    assert_string_equal(d.tools.items[0], "builtin/now");
    assert_int_equal(agent_approval_of(&d), AGENT_APPROVAL_NEVER);
    assert_int_equal(d.max_steps, 3);
    assert_int_equal(d.max_tokens_per_turn, 900);
    assert_true(d.timeout_s == 2.5);
}

static void an_agent_without_kind_is_a_process(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition d;

    assert_int_equal(check(a, "{\"name\":\"p\",\"command\":\"true\"}", &d, NULL), 0);
    assert_false(agent_is_model(&d));
    assert_false(agent_is_model(&(struct agent_definition){ .name = "x" }));
}

static void a_rule_that_is_broken_is_named(void **state)
{
    static const struct {
        const char *members, *field, *text;
    } cases[] = {
        { "\"kind\":\"robot\"", "kind", "one of process, model" },
        { "\"kind\":\"process\"", "command", "required" },
        { "\"kind\":\"model\",\"command\":\"true\"", "command", "kind process only" },
        { "\"kind\":\"model\",\"args\":[\"x\"]", "args", "kind process only" },
        { "\"kind\":\"model\",\"working_dir\":\"/tmp\"", "working_dir", "kind process only" },
        { "\"kind\":\"model\",\"env\":{\"A\":\"1\"}", "env", "kind process only" },
        { "\"kind\":\"model\",\"pass_arguments\":true", "pass_arguments", "kind process only" },
        { "\"kind\":\"model\",\"sandbox\":{\"profile\":\"strict\"}", "sandbox", "kind process only" },
        { "\"command\":\"true\",\"instructions\":\"x\"", "instructions", "kind model only" },
        { "\"command\":\"true\",\"provider\":\"x\"", "provider", "kind model only" },
        { "\"command\":\"true\",\"model\":\"x\"", "model", "kind model only" },
        { "\"command\":\"true\",\"effort\":\"low\"", "effort", "kind model only" },
        { "\"command\":\"true\",\"temperature\":1", "temperature", "kind model only" },
        { "\"command\":\"true\",\"tools\":[\"a/b\"]", "tools", "kind model only" },
        { "\"command\":\"true\",\"approval\":\"never\"", "approval", "kind model only" },
        { "\"command\":\"true\",\"max_steps\":20", "max_steps", "kind model only" },
        { "\"command\":\"true\",\"max_tokens_per_turn\":20", "max_tokens_per_turn", "kind model only" },
        { "\"kind\":\"model\",\"approval\":\"sometimes\"", "approval", "never, dangerous, always" },
        { "\"kind\":\"model\",\"effort\":\"huge\"", "effort", "one of" },
        { "\"kind\":\"model\",\"temperature\":2.01", "temperature", "0 to 2" },
        { "\"kind\":\"model\",\"temperature\":-0.1", "temperature", "0 to 2" },
        { "\"kind\":\"model\",\"max_steps\":0", "max_steps", "1 to 200" },
        { "\"kind\":\"model\",\"max_steps\":201", "max_steps", "1 to 200" },
        { "\"kind\":\"model\",\"max_tokens_per_turn\":0", "max_tokens_per_turn", "from 1" },
        { "\"kind\":\"model\",\"max_tokens_per_turn\":1000000001", "max_tokens_per_turn", "from 1" },
        { "\"kind\":\"model\",\"tools\":[\"a/b\",\"noslash\"]", "tools[1]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"/b\"]", "tools[0]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"a/\"]", "tools[0]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"a*/b\"]", "tools[0]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"a/b*c\"]", "tools[0]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"a/b c\"]", "tools[0]", "pattern" },
        { "\"kind\":\"model\",\"tools\":[\"a/\\u0007\"]", "tools[0]", "pattern" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct agent_definition d;
        struct err e = { 0 };

        assert_int_equal(check(a, arena_printf(a, "{\"name\":\"a\",%s}", cases[i].members), &d, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
        assert_non_null(strstr(e.fields[0].rule, cases[i].text));
    }
}

static void the_largest_numbers_of_a_model_agent_are_taken(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *json =
        arena_printf(a, "{\"name\":\"a\",\"kind\":\"model\",\"max_steps\":%d,\"max_tokens_per_turn\":%d}",
                     LIMIT_AGENT_STEPS, LIMIT_AGENT_TOKENS);
    struct agent_definition d;
    struct err e = { 0 };

    assert_int_equal(check(a, json, &d, &e), 0);
    assert_int_equal(d.max_steps, LIMIT_AGENT_STEPS);
    assert_int_equal(d.max_tokens_per_turn, LIMIT_AGENT_TOKENS);
}

static void a_wrong_command_is_named_once(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition d;
    struct err e = { 0 };

    assert_int_equal(check(a, "{\"name\":\"a\",\"command\":\"\"}", &d, &e), -EINVAL);
    assert_int_equal(e.n_fields, 1);
    assert_string_equal(e.fields[0].rule, "must not be empty");
}

static void the_default_agent_is_no_process(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition d;
    struct err e = { 0 };

    assert_int_equal(check(a, "{\"name\":\"@agent\",\"command\":\"true\"}", &d, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "kind");
    assert_int_equal(check(a, "{\"name\":\"@agent\",\"kind\":\"model\"}", &d, NULL), 0);
}

static char *text_of(struct arena *a, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, 'x', n);
    text[n] = '\0';
    return text;
}

static char *patterns(struct arena *a, int n)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    for (int i = 0; i < n; i++)
        buf_printf(&out, "%s\"s/t%d\"", i ? "," : "", i);
    return buf_to_arena(&out, a);
}

static int check_sizes(struct arena *a, const char *instructions, const char *tools)
{
    struct agent_definition d;

    return check(a,
                 arena_printf(a, "{\"name\":\"a\",\"kind\":\"model\",\"instructions\":\"%s\",\"tools\":[%s]}",
                              instructions, tools),
                 &d, NULL);
}

static void limits_hold_at_their_edge(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *name = text_of(a, LIMIT_NAME_CHARS);
    struct agent_definition d;

    assert_int_equal(check_sizes(a, text_of(a, LIMIT_INSTRUCTIONS_CHARS), patterns(a, LIMIT_AGENT_PATTERNS)), 0);
    assert_int_equal(check_sizes(a, text_of(a, LIMIT_INSTRUCTIONS_CHARS + 1), ""), -EINVAL);
    assert_int_equal(check_sizes(a, "", patterns(a, LIMIT_AGENT_PATTERNS + 1)), -EINVAL);
    assert_int_equal(check_sizes(a, "", arena_printf(a, "\"%s/%s\"", name, name)), 0);
    assert_int_equal(check_sizes(a, "", arena_printf(a, "\"%sx/t\"", name)), -EINVAL);
    assert_int_equal(check_sizes(a, "", arena_printf(a, "\"s/%sx\"", name)), -EINVAL);
    assert_int_equal(check(a,
                           "{\"name\":\"a\",\"kind\":\"model\",\"max_steps\":200,"
                           "\"max_tokens_per_turn\":1000000000,\"temperature\":2}",
                           &d, NULL),
                     0);
}

static void patterns_choose_tools(void **state)
{
    static const struct {
        const char *pattern, *server, *tool;
        bool is_match;
    } cases[] = {
        { "files/read", "files", "read", true }, { "files/read", "files", "read_all", false },
        { "files/read", "file", "read", false }, { "files/read", "filesx", "read", false },
        { "files/*", "files", "read", true },    { "files/*", "files", "", true },
        { "files/*", "other", "read", false },   { "files/re*", "files", "read", true },
        { "files/re*", "files", "re", true },    { "files/re*", "files", "r", false },
        { "*/read", "files", "read", true },     { "*/read", "files", "write", false },
        { "*/*", "builtin", "now", true },       { "builtin/*", "builtin", "now", true },
        { "builtin/*", "files", "now", false },  { "files/a/b", "files", "a/b", true },
        { "files", "files", "files", false },    { "/x", "", "x", false },
        { "files/", "files", "", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(agent_tool_matches(cases[i].pattern, cases[i].server, cases[i].tool), cases[i].is_match);
}

static void any_pattern_of_an_agent_counts(void **state)
{
    static const char *const items[] = { "files/read", "builtin/*" };
    const struct agent_definition d = { .tools = { items, 2 } };

    assert_true(agent_tools_hold(&d, "files", "read"));
    assert_true(agent_tools_hold(&d, "builtin", "now"));
    assert_false(agent_tools_hold(&d, "files", "write"));
    assert_false(agent_tools_hold(&(struct agent_definition){ 0 }, "files", "read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_agent_has_defaults),
        cmocka_unit_test(every_field_of_a_model_agent_is_read),
        cmocka_unit_test(an_agent_without_kind_is_a_process),
        cmocka_unit_test(a_rule_that_is_broken_is_named),
        cmocka_unit_test(the_largest_numbers_of_a_model_agent_are_taken),
        cmocka_unit_test(a_wrong_command_is_named_once),
        cmocka_unit_test(the_default_agent_is_no_process),
        cmocka_unit_test(limits_hold_at_their_edge),
        cmocka_unit_test(patterns_choose_tools),
        cmocka_unit_test(any_pattern_of_an_agent_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
