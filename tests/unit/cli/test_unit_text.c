#include "cli/unit_text.h"

#include "base/hash.h"
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena *arena;

static int set_up(void **state)
{
    arena = arena_new();
    return hash_init(NULL);
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static const char *line_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    assert_non_null(at);
    return arena_strndup(arena, at, strcspn(at, "\n"));
}

static const struct {
    const char *program, *data_dir;
    bool names_data;
    const char *unit, *desktop;
} commands[] = {
    { "/usr/bin/hearth", "/srv/a/hearth", false, "ExecStart=:\"/usr/bin/hearth\" serve",
      "Exec=\"/usr/bin/hearth\" service start" },
    { "/a b/100%", "/d%n", true, "ExecStart=:\"/a b/100%%\" serve --data \"/d%%n\"",
      "Exec=\"/a b/100%%\" service start --data \"/d%%n\"" },
    { "/p", "/d$HOME`x`", true, "ExecStart=:\"/p\" serve --data \"/d$HOME`x`\"",
      "Exec=\"/p\" service start --data \"/d\\\\$HOME\\\\`x\\\\`\"" },
    { "/p", "/q\"u\\n", true, "ExecStart=:\"/p\" serve --data \"/q\\\"u\\\\n\"",
      "Exec=\"/p\" service start --data \"/q\\\\\"u\\\\\\\\n\"" },
    { "/o'c=d", "/d", false, "ExecStart=:/bin/sh -c \"exec \\\"$0\\\" \\\"$@\\\"\" \"/o'c=d\" serve",
      "Exec=/bin/sh -c \"exec \\\\\"\\\\$0\\\\\" \\\\\"\\\\$@\\\\\"\" \"/o'c=d\" service start" },
};

static void paths_are_quoted_for_their_reader(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        const struct unit_command c = { commands[i].program, commands[i].data_dir, commands[i].names_data };

        assert_int_equal(unit_command_check(&c, NULL), 0);
        assert_string_equal(line_of(unit_text(arena, &c), "ExecStart="), commands[i].unit);
        assert_string_equal(line_of(desktop_text(arena, &c), "Exec="), commands[i].desktop);
    }
}

static void a_path_that_no_file_can_hold_is_refused(void **state)
{
    static const char *const bad[] = { "/a\nb", "/a\tb", "/\x7f", "/\xff" };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = { 0 };

        assert_int_equal(unit_command_check(&(struct unit_command){ bad[i], "/d", true }, &e), -EINVAL);
        assert_int_equal(unit_command_check(&(struct unit_command){ "/p", bad[i], true }, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_PATH");
    }
}

static void every_change_of_a_text_is_seen(void **state)
{
    const struct unit_command c = { "/p", "/a folder", true };
    char *text = unit_text(arena, &c);
    size_t n = strlen(text);

    assert_int_equal(unit_text_kind((struct slice){ text, n }), UNIT_TEXT_OURS);
    assert_string_equal(unit_text_data_dir(arena, (struct slice){ text, n }), "/a folder");
    for (size_t i = 0; i < n; i++) {
        text[i] ^= 1;
        assert_int_not_equal(unit_text_kind((struct slice){ text, n }), UNIT_TEXT_OURS);
        text[i] ^= 1;
        assert_int_not_equal(unit_text_kind((struct slice){ text, i }), UNIT_TEXT_OURS);
    }
}

static void a_foreign_text_has_no_folder(void **state)
{
    static const char *const foreign[] = { "", "\n", "# hearth-service ", "[Unit]\n",
                                           "# hearth-service 00\n# data folder: /x\n" };

    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
        assert_int_equal(unit_text_kind(slice_of(foreign[i])), UNIT_TEXT_FOREIGN);
        assert_null(unit_text_data_dir(arena, slice_of(foreign[i])));
    }
}

static void a_unit_of_a_package_is_known_by_its_command(void **state)
{
    struct slice text = SLICE_LIT("[Service]\nExecStart=/usr/bin/hearth serve\n");

    assert_true(unit_text_runs(text, "/usr/bin/hearth"));
    assert_false(unit_text_runs(text, "/usr/bin/heart"));
    assert_false(unit_text_runs((struct slice){ text.p, text.n - 1 }, "/usr/bin/hearth"));
    assert_false(unit_text_runs((struct slice){ NULL, 0 }, "/usr/bin/hearth"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(paths_are_quoted_for_their_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_that_no_file_can_hold_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_change_of_a_text_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_foreign_text_has_no_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_unit_of_a_package_is_known_by_its_command, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
