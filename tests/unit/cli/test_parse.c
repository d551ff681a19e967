#include "cli/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct cli cli;
static struct err e;

static int set_up(void **state)
{
    cli = (struct cli){ .arena = arena_new() };
    e = (struct err){ 0 };
    return 0;
}

static int tear_down(void **state)
{
    arena_free(cli.arena);
    return 0;
}

/* "key new --name x", split at blanks. */
static int parse(const char *line)
{
    char *argv[32] = { (char[]){ "hearth" } }, *rest = arena_strdup(cli.arena, line), *word;
    int argc = 1;

    cli = (struct cli){ .arena = cli.arena };
    e = (struct err){ 0 };
    while ((word = strsep(&rest, " ")))
        if (*word)
            argv[argc++] = word;
    return cli_parse(argc, argv, &cli, &e);
}

static const struct {
    const char *line, *words, *option, *value, *first, *second;
} accepted[] = {
    { "key new --name x", "key new", "--name", "x", NULL, NULL },
    { "key new --name=x", "key new", "--name", "x", NULL, NULL },
    { "key new --name=", "key new", "--name", "", NULL, NULL },
    { "--data /d key new", "key new", "--data", "/d", NULL, NULL },
    { "--data=/d --json key list", "key list", "--json", "true", NULL, NULL },
    { "key --json list", "key list", "--json", "true", NULL, NULL },
    { "app logs demo -f -n 5", "app logs", "--lines", "5", "demo", NULL },
    { "settings", "settings", NULL, NULL, NULL, NULL },
    { "settings tasks.sweep_s", "settings", NULL, NULL, "tasks.sweep_s", NULL },
    { "settings set tasks.sweep_s 5", "settings set", NULL, NULL, "tasks.sweep_s", "5" },
    { "permission grant app llm.chat --until 2030-01-01", "permission grant", "--until", "2030-01-01", "app",
      "llm.chat" },
    { "key revoke -- --json", "key revoke", NULL, NULL, "--json", NULL },
    { "app add -", "app add", NULL, NULL, "-", NULL },
};

static void what_is_right_is_understood(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        if (parse(accepted[i].line) < 0)
            fail_msg("%s: %s", accepted[i].line, e.text);
        assert_string_equal(cli.command->words, accepted[i].words);
        if (accepted[i].option)
            assert_string_equal(cli_value(&cli, accepted[i].option), accepted[i].value);
        assert_int_equal(cli.n_args, (accepted[i].first != NULL) + (accepted[i].second != NULL));
        if (accepted[i].first)
            assert_string_equal(cli.args[0], accepted[i].first);
        if (accepted[i].second)
            assert_string_equal(cli.args[1], accepted[i].second);
    }
}

static void help_after_the_name_of_a_group_is_of_the_group(void **state)
{
    static const char *const lines[] = { "key --help", "key -h", "--help key" };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        assert_int_equal(parse(lines[i]), 0);
        assert_true(cli.is_help);
        assert_null(cli.command);
        assert_string_equal(cli.group, "key");
    }
}

static const struct {
    const char *line, *says;
} refused[] = {
    { "frob", "no command frob" },
    { "key", "key what?" },
    { "key frob", "no command key frob" },
    { "--frob key list", "no option --frob" },
    { "key list --frob", "no option --frob" },
    { "key list x", "x is one argument too many" },
    { "key revoke", "needs ID" },
    { "key new --name", "--name needs a value" },
    { "key new --name a --name b", "given twice" },
    { "key list --json=1", "takes no value" },
    { "task list --agent x", "no option --agent" },
    { "app remove", "needs APP" },
};

static void what_is_wrong_is_told(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        assert_int_equal(parse(refused[i].line), -EINVAL);
        assert_string_equal(e.code, "BAD_USE");
        if (!strstr(e.text, refused[i].says))
            fail_msg("%s: %s", refused[i].line, e.text);
    }
}

static void a_repeated_option_keeps_every_value_in_order(void **state)
{
    const char *const *values;
    size_t n;

    assert_int_equal(parse("serve --set a=1 --listen 127.0.0.1:0 --set b=2=3"), 0);
    values = cli_values(&cli, "--set", &n);
    assert_int_equal(n, 2);
    assert_string_equal(values[0], "a=1");
    assert_string_equal(values[1], "b=2=3");
    assert_null(values[2]);
    assert_null(cli_value(&cli, "--config"));
}

static int parse_with_sets(size_t n)
{
    char *argv[ARRAY_SIZE(cli.given) + 4] = { (char[]){ "hearth" }, (char[]){ "serve" } };

    cli = (struct cli){ .arena = cli.arena };
    for (size_t i = 0; i < n; i++)
        argv[2 + i] = arena_strdup(cli.arena, "--set=a=1");
    return cli_parse((int)n + 2, argv, &cli, &e);
}

static void the_options_given_are_bounded(void **state)
{
    assert_int_equal(parse_with_sets(ARRAY_SIZE(cli.given)), 0);
    assert_int_equal(parse_with_sets(ARRAY_SIZE(cli.given) + 1), -EINVAL);
}

static void help_is_given_without_the_arguments(void **state)
{
    assert_int_equal(parse("key revoke --help"), 0);
    assert_true(cli.is_help);
    assert_int_equal(parse("--help"), 0);
    assert_true(cli.is_help);
    assert_null(cli.command);
    assert_int_equal(parse("--version"), 0);
    assert_true(cli.is_version);
}

/* --- the table itself --- */

static void no_command_is_there_twice(void **state)
{
    for (const struct command *c = command_first(); c; c = command_next(c))
        assert_ptr_equal(command_find(c->words), c);
}

static void note_option(const struct cli_option *option, void *arg)
{
    assert_true(strncmp(option->name, "--", 2) == 0);
    assert_non_null(option->help);
    (*(size_t *)arg)++;
}

static void every_row_can_be_carried_out(void **state)
{
    for (const struct command *c = command_first(); c; c = command_next(c)) {
        size_t n_options = 0;

        assert_non_null(c->summary);
        assert_true(c->run || c->path);
        assert_true(c->n_args_max <= CLI_MAX_ARGS && c->n_args_min <= c->n_args_max);
        assert_int_equal(c->args != NULL, c->n_args_max > 0);
        if (!c->run)
            assert_true(c->list ? c->columns && c->empty : c->done != NULL);
        command_each_option(c, note_option, &n_options);
        assert_true(n_options >= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_right_is_understood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_after_the_name_of_a_group_is_of_the_group, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repeated_option_keeps_every_value_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_options_given_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_is_given_without_the_arguments, set_up, tear_down),
        cmocka_unit_test(no_command_is_there_twice),
        cmocka_unit_test(every_row_can_be_carried_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
