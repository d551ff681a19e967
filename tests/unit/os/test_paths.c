#include "os/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pwd.h>
#include <unistd.h>

struct dir_case {
    const char *flag, *hearth_data, *xdg_data_home, *home;
    const char *want;
};

static const struct dir_case cases[] = {
    { "/flag", "/env", "/xdg", "/h/a", "/flag" },       { NULL, "/env", "/xdg", "/h/a", "/env" },
    { NULL, NULL, "/xdg", "/h/a", "/xdg/hearth" },      { NULL, NULL, NULL, "/h/a", "/h/a/.local/share/hearth" },
    { "", "", "", "/h/a", "/h/a/.local/share/hearth" }, { NULL, NULL, "relative", "/h/a", "/h/a/.local/share/hearth" },
};

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void the_most_particular_place_wins(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *dir = NULL;

        set_or_unset("HEARTH_DATA", cases[i].hearth_data);
        set_or_unset("XDG_DATA_HOME", cases[i].xdg_data_home);
        set_or_unset("HOME", cases[i].home);
        assert_int_equal(paths_data_dir(a, cases[i].flag, &dir, NULL), 0);
        assert_string_equal(dir, cases[i].want);
    }
}

static void a_relative_place_is_made_absolute(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(freep) char *here = getcwd(NULL, 0);
    char *dir = NULL;

    assert_int_equal(paths_data_dir(a, "data/x", &dir, NULL), 0);
    assert_string_equal(dir, arena_printf(a, "%s/data/x", here));
}

static void without_HOME_the_password_database_knows_the_home(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct passwd *me = getpwuid(geteuid());
    struct err e = { 0 };
    char *dir = NULL;
    int r;

    unsetenv("HEARTH_DATA");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    r = paths_data_dir(a, NULL, &dir, &e);
    if (me) {
        assert_int_equal(r, 0);
        assert_string_equal(dir, arena_printf(a, "%s/.local/share/hearth", me->pw_dir));
    } else {
        assert_int_equal(r, -ENOENT);
        assert_non_null(strstr(e.text, "--data"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_particular_place_wins),
        cmocka_unit_test(a_relative_place_is_made_absolute),
        cmocka_unit_test(without_HOME_the_password_database_knows_the_home),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
