#include "agents/agents.h"
#include "base/limits.h"
#include "os/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    struct store *store;
    struct agents *agents;
    char dir[64];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/hearth-agents-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->arena = arena_new();
    assert_int_equal(store_open(f->dir, &f->store, NULL), 0);
    assert_int_equal(agents_open(f->store, NULL, f->dir, &f->agents, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    agents_close(f->agents);
    store_close(f->store);
    assert_int_equal(dir_remove(f->dir, NULL), 0);
    arena_free(f->arena);
    free(f);
    return 0;
}

static int read_definition(struct fixture *f, const char *json, struct agent_definition *ret, struct err *e)
{
    struct json_value object;

    *ret = (struct agent_definition){ 0 };
    assert_int_equal(json_parse(f->arena, slice_of(json), &object, NULL), 0);
    return fields_read(agent_definition_fields, object, ret, f->arena, "", e);
}

static int put(struct fixture *f, const char *json, struct err *e)
{
    struct agent_definition d;
    int r = read_definition(f, json, &d, e);

    return r < 0 ? r : agent_put(f->agents, &d, slice_of(json), e);
}

static void a_definition_is_found_as_it_was_put(void **state)
{
    struct fixture *f = *state;
    struct agent_definition d;

    assert_int_equal(
        put(f,
            "{\"name\":\"sorter\",\"display_name\":\"The Sorter\",\"command\":\"node\",\"args\":[\"a.js\",\"-x\"],"
            "\"working_dir\":\"/tmp\",\"env\":{\"MODE\":\"fast\"},\"timeout_s\":2.5,\"unknown\":1}",
            NULL),
        0);
    assert_int_equal(agent_find(f->agents, "sorter", f->arena, &d, NULL), 0);
    assert_string_equal(d.name, "sorter");
    assert_string_equal(d.display_name, "The Sorter");
    assert_string_equal(d.command, "node");
    assert_int_equal(d.args.n, 2);
    assert_string_equal(d.args.items[1], "-x");
    assert_string_equal(d.working_dir, "/tmp");
    assert_string_equal(json_cstr(json_get(d.env, "MODE")), "fast");
    assert_true(d.timeout_s == 2.5);
}

static void what_is_not_said_has_its_default(void **state)
{
    struct fixture *f = *state;
    struct agent_definition d;

    assert_int_equal(put(f, "{\"name\":\"a\",\"command\":\"true\"}", NULL), 0);
    assert_int_equal(agent_find(f->agents, "a", f->arena, &d, NULL), 0);
    assert_string_equal(d.display_name, "a");
    assert_string_equal(d.description, "");
    assert_true(d.timeout_s == 900);
    assert_null(d.working_dir);
}

static void putting_it_again_replaces_it(void **state)
{
    struct fixture *f = *state;
    struct agent_definition d;

    assert_int_equal(put(f, "{\"name\":\"a\",\"command\":\"true\"}", NULL), 0);
    assert_int_equal(put(f, "{\"name\":\"a\",\"command\":\"false\"}", NULL), 0);
    assert_int_equal(agent_find(f->agents, "a", f->arena, &d, NULL), 0);
    assert_string_equal(d.command, "false");
}

static void a_bad_definition_is_refused_with_every_reason(void **state)
{
    static const struct {
        const char *json, *field;
    } cases[] = {
        { "{\"command\":\"true\"}", "name" },
        { "{\"name\":\"\",\"command\":\"true\"}", "name" },
        { "{\"name\":\"a\"}", "command" },
        { "{\"name\":\"a\",\"command\":\"true\",\"timeout_s\":0}", "timeout_s" },
        { "{\"name\":\"a\",\"command\":\"true\",\"timeout_s\":86401}", "timeout_s" },
        { "{\"name\":\"a\",\"command\":\"true\",\"args\":[1]}", "args[0]" },
        { "{\"name\":\"a\",\"command\":\"true\",\"env\":{\"A\":1}}", "env.A" },
        { "{\"name\":\"a\",\"command\":\"true\",\"env\":{\"no name\":\"1\"}}", "env" },
        { "{\"name\":\"a\",\"command\":\"true\",\"working_dir\":\"here\"}", "working_dir" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(put(f, cases[i].json, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
    }
}

static void the_longest_time_and_name_are_taken(void **state)
{
    struct fixture *f = *state;
    char name[LIMIT_NAME_CHARS + 2];

    memset(name, 'n', sizeof(name));
    name[LIMIT_NAME_CHARS] = '\0';
    assert_int_equal(
        put(f, arena_printf(f->arena, "{\"name\":\"%s\",\"command\":\"true\",\"timeout_s\":86400}", name), NULL), 0);
    name[LIMIT_NAME_CHARS] = 'n';
    name[LIMIT_NAME_CHARS + 1] = '\0';
    assert_int_equal(put(f, arena_printf(f->arena, "{\"name\":\"%s\",\"command\":\"true\"}", name), NULL), -EINVAL);
}

static void one_that_is_not_there_is_named(void **state)
{
    struct fixture *f = *state;
    struct agent_definition d;
    struct err e = { 0 };

    assert_int_equal(agent_find(f->agents, "nobody", f->arena, &d, &e), -ENOENT);
    assert_string_equal(e.code, "AGENT_NOT_FOUND");
    assert_non_null(strstr(e.text, "nobody"));
    assert_int_equal(put(f, "{\"name\":\"a\",\"command\":\"true\"}", NULL), 0);
    assert_int_equal(agent_remove(f->agents, "a", NULL), 0);
    e = (struct err){ 0 };
    assert_int_equal(agent_remove(f->agents, "a", &e), -ENOENT);
    assert_string_equal(e.code, "AGENT_NOT_FOUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_definition_is_found_as_it_was_put, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_said_has_its_default, set_up, tear_down),
        cmocka_unit_test_setup_teardown(putting_it_again_replaces_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_definition_is_refused_with_every_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_time_and_name_are_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_not_there_is_named, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
