#include "os/env.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const inherited[] = { "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR" };

static int set_up(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
        unsetenv(inherited[i]);
    setenv("PATH", "/usr/bin", 1);
    setenv("TZ", "", 1);
    setenv("HEARTH_SECRET", "x", 1);
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static void assert_strings(struct env_list *l, const char *const *want)
{
    const char *const *strings = env_list_strings(l);

    for (; *want; want++, strings++) {
        assert_non_null(*strings);
        assert_string_equal(*strings, *want);
    }
    assert_null(*strings);
}

static void only_the_few_named_ones_are_inherited(void **state)
{
    struct env_list *l = env_list_new(*state);

    assert_strings(l, (const char *const[]){ "PYTHONUNBUFFERED=1", "PATH=/usr/bin", "TZ=", NULL });
}

static void each_of_the_few_is_inherited(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
        setenv(inherited[i], "x", 1);
    assert_strings(env_list_new(*state),
                   (const char *const[]){ "PYTHONUNBUFFERED=1", "PATH=/usr/bin", "HOME=x", "USER=x", "LOGNAME=x",
                                          "LANG=x", "LC_ALL=x", "TZ=", "TMPDIR=x", "XDG_RUNTIME_DIR=x", NULL });
}

static void a_later_setting_replaces_the_earlier(void **state)
{
    struct env_list *l = env_list_new(*state);

    assert_int_equal(env_list_set(l, "APP", "1", NULL), 0);
    assert_int_equal(env_list_set(l, "APP_ID", "2", NULL), 0);
    assert_int_equal(env_list_set(l, "PATH", "/bin", NULL), 0);
    assert_int_equal(env_list_set(l, "APP", "a=b\nc", NULL), 0);
    assert_strings(l,
                   (const char *const[]){ "PYTHONUNBUFFERED=1", "PATH=/bin", "TZ=", "APP=a=b\nc", "APP_ID=2", NULL });
}

static void there_may_be_many(void **state)
{
    struct env_list *l = env_list_new(*state);
    size_t n = 0;

    for (int i = 0; i < 500; i++)
        assert_int_equal(env_list_set(l, arena_printf(*state, "N%d", i), "v", NULL), 0);
    while (env_list_strings(l)[n])
        n++;
    assert_int_equal(n, 503);
    assert_string_equal(env_list_strings(l)[502], "N499=v");
}

static const char *const bad_names[] = { "", "1A", "A-B", "A=B", "A B", "\xC3\xA9" };

static void a_name_is_letters_digits_and_underscores(void **state)
{
    struct env_list *l = env_list_new(*state);
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(bad_names); i++)
        assert_int_equal(env_list_set(l, bad_names[i], "x", &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_int_equal(env_list_set(l, "_a1", "x", NULL), 0);
}

static void a_string_may_be_as_long_as_the_kernel_allows(void **state)
{
    struct env_list *l = env_list_new(*state);
    char *value = arena_alloc(*state, LIMIT_ARG_BYTES);
    struct err e = { 0 };

    memset(value, 'x', LIMIT_ARG_BYTES - 2); /* the maximum, together with "A=" */
    assert_int_equal(env_list_set(l, "A", value, &e), 0);
    assert_int_equal(env_list_set(l, "AB", value, &e), -E2BIG);
    assert_string_equal(e.text, "The environment variable AB with its value must be at most 131071 bytes.");
}

int main(void)
{
#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_ARENA(only_the_few_named_ones_are_inherited),    WITH_ARENA(each_of_the_few_is_inherited),
        WITH_ARENA(a_later_setting_replaces_the_earlier),     WITH_ARENA(there_may_be_many),
        WITH_ARENA(a_name_is_letters_digits_and_underscores), WITH_ARENA(a_string_may_be_as_long_as_the_kernel_allows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
