#include "apps/launch.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena *arena;
static struct launch_plan plan;
static struct err e;
static const struct launch_place place = {
    .abbr = "svc", .base_url = "http://127.0.0.1:3001", .data_dir = "/data/app", .port = 23456
};

static int set_up(void **state)
{
    arena = arena_new();
    plan = (struct launch_plan){ 0 };
    e = (struct err){ 0 };
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static int make(const char *json)
{
    struct app_config c;
    int r = app_config_read(arena, slice_of(json), &c, &e);

    c.app_id = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    return r < 0 ? r : launch_plan_make(arena, &c, &place, &plan, &e);
}

static const char *command_line(void)
{
    char *line = arena_strdup(arena, plan.command);

    for (const char *const *arg = plan.args; *arg; arg++)
        line = arena_printf(arena, "%s|%s", line, *arg);
    return line;
}

static const char *variable(const char *name)
{
    size_t n = strlen(name);

    for (const char *const *at = plan.env; *at; at++)
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=')
            return *at + n + 1;
    return NULL;
}

static const struct {
    const char *type, *config, *line;
} lines[] = {
    { "python", "{\"args\":[\"main.py\",\"-v\"]}", "python3|main.py|-v" },
    { "python", "{\"command\":\"main.py\",\"args\":[\"-v\"]}", "python3|main.py|-v" },
    { "python", "{\"command\":\"/venv/bin/python\",\"args\":[\"main.py\"]}", "/venv/bin/python|main.py" },
    { "node", "{\"args\":[\"app.js\"]}", "node|app.js" },
    { "node", "{\"command\":\"server.mjs\"}", "node|server.mjs" },
    { "node", "{\"command\":\"/opt/node/bin/node\",\"args\":[\"app.js\"]}", "/opt/node/bin/node|app.js" },
    { "npx", "{\"args\":[\"http-server\",\"-p\",\"{port}\"]}", "npx|-y|http-server|-p|23456" },
    { "npx", "{\"command\":\"http-server\"}", "npx|-y|http-server" },
    { "npx", "{\"command\":\"npx\",\"args\":[\"-y\",\"http-server\"]}", "npx|-y|http-server" },
    { "npx", "{\"command\":\"/opt/bin/npx\",\"args\":[\"http-server\"]}", "/opt/bin/npx|-y|http-server" },
    { "uvx", "{\"command\":\"datasette\",\"args\":[\"--port\",\"{port}\"]}", "uvx|datasette|--port|23456" },
    { "uvx", "{\"args\":[\"datasette\"]}", "uvx|datasette" },
    { "custom", "{\"command\":\"{data_dir}/run\",\"args\":[\"{port}{port}\",\"{other}\",\"{data_dir}/x\"]}",
      "/data/app/run|2345623456|{other}|/data/app/x" },
};

static void each_type_has_its_command_line(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (make(arena_printf(arena, "{\"name\":\"n\",\"app_type\":\"%s\",\"config\":%s}", lines[i].type,
                              lines[i].config)) < 0)
            fail_msg("%s", e.text);
        assert_string_equal(command_line(), lines[i].line);
    }
}

static void the_environment_says_who_the_app_is(void **state)
{
    assert_int_equal(
        make(
            "{\"name\":\"demo\",\"config\":{\"command\":\"x\",\"env\":{\"AT\":\"{data_dir}:{port}\",\"SVC_APP_ID\":\"another\"}}}"),
        0);
    assert_string_equal(variable("SVC_APP_ID"), "6fa459ea-ee8a-4ca4-894e-db77e160355e");
    assert_string_equal(variable("SVC_APP_NAME"), "demo");
    assert_string_equal(variable("SVC_PORT"), "23456");
    assert_string_equal(variable("SERVER_URL"), "http://127.0.0.1:3001");
    assert_string_equal(variable("HEARTH_BASE_URL"), "http://127.0.0.1:3001");
    assert_string_equal(variable("AT"), "/data/app:23456");
    assert_string_equal(variable("PYTHONUNBUFFERED"), "1");
    assert_int_equal(make("{\"name\":\"demo\",\"config\":{\"command\":\"x\",\"env\":{\"PYTHONUNBUFFERED\":\"\"}}}"), 0);
    assert_string_equal(variable("PYTHONUNBUFFERED"), "");
}

static void nothing_else_is_inherited(void **state)
{
    setenv("SECRET_OF_THE_SERVICE", "1", 1);
    assert_int_equal(make("{\"name\":\"demo\",\"config\":{\"command\":\"x\"}}"), 0);
    assert_null(variable("SECRET_OF_THE_SERVICE"));
    assert_non_null(variable("PATH"));
    unsetenv("SECRET_OF_THE_SERVICE");
}

static void it_works_in_its_data_folder_unless_reported_otherwise(void **state)
{
    assert_int_equal(make("{\"name\":\"n\",\"config\":{\"command\":\"x\"}}"), 0);
    assert_string_equal(plan.working_dir, "/data/app");
    assert_int_equal(make("{\"name\":\"n\",\"config\":{\"command\":\"x\",\"working_dir\":\"{data_dir}/www\"}}"), 0);
    assert_string_equal(plan.working_dir, "/data/app/www");
}

static void one_that_is_started_elsewhere_has_no_plan(void **state)
{
    assert_int_equal(make("{\"name\":\"n\"}"), -EINVAL);
    assert_string_equal(e.code, "NOT_LAUNCHABLE");
}

static const struct launch_place deep = {
    .abbr = "svc",
    .base_url = "u",
    .data_dir = "/a/data/folder/with/a/longer/name/than/its/placeholder",
    .port = 1,
};

static int make_with_data_dirs(size_t n)
{
    char *many = arena_alloc(arena, 10 * n + 1);
    struct app_config c;

    for (size_t i = 0; i < n; i++)
        memcpy(many + 10 * i, "{data_dir}", 10);
    assert_int_equal(app_config_read(arena, SLICE_LIT("{\"name\":\"n\",\"config\":{\"command\":\"x\"}}"), &c, &e), 0);
    c.app_id = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    c.args = (struct field_strings){ (const char *const[]){ many }, 1 };
    return launch_plan_make(arena, &c, &deep, &plan, &e);
}

static void an_argument_that_grows_too_long_is_refused(void **state)
{
    size_t n = LIMIT_ARG_BYTES / strlen(deep.data_dir);

    assert_int_equal(make_with_data_dirs(n), 0);
    assert_int_equal(strlen(plan.args[0]), n * strlen(deep.data_dir));
    assert_int_equal(make_with_data_dirs(n + 1), -E2BIG);
    assert_string_equal(e.code, "ARGUMENT_TOO_LONG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_type_has_its_command_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_environment_says_who_the_app_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_else_is_inherited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_works_in_its_data_folder_unless_reported_otherwise, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_started_elsewhere_has_no_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_argument_that_grows_too_long_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
