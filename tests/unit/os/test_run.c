#include "os/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const env[] = { "PATH=/usr/bin:/bin", "WORD=a word", NULL };

static int run_sh(const char *script, int64_t deadline_ms, struct run_result *ret, struct err *e)
{
    const char *const argv[] = { "sh", "-c", script, NULL };

    return run_program(&(struct run_plan){ "/bin/sh", argv, env, deadline_ms }, ret, e);
}

static void both_outputs_and_the_code_come_back(void **state)
{
    struct run_result result;
    struct err e = { 0 };

    assert_int_equal(run_sh("cat; echo out \"$WORD\"; echo err >&2; exit 7", 60000, &result, &e), 0);
    assert_string_equal(result.output, "out a word\n");
    assert_string_equal(result.errors, "err\n");
    assert_int_equal(result.code, 7);
    assert_int_equal(run_sh("kill -TERM $$", 60000, &result, &e), 0);
    assert_int_equal(result.code, 128 + SIGTERM);
}

static void more_than_fits_is_cut_and_delays_nobody(void **state)
{
    struct run_result result;
    struct err e = { 0 };

    assert_int_equal(run_sh("head -c 1000000 /dev/zero | tr '\\0' x; printf 'a\\0b' >&2", 60000, &result, &e), 0);
    assert_int_equal(strlen(result.output), RUN_OUTPUT_BYTES - 1);
    assert_string_equal(result.errors, "ab");
}

static void a_program_that_does_not_end_is_killed_with_what_it_started(void **state)
{
    struct run_result result;
    struct err e = { 0 };

    assert_int_equal(run_sh("sleep 1000 & echo $!; wait", 500, &result, &e), -ETIMEDOUT);
    assert_string_equal(e.code, "COMMAND_TIMED_OUT");
    assert_non_null(strstr(e.text, "sh"));
}

static void what_is_left_running_delays_nobody(void **state)
{
    struct run_result result;
    struct err e = { 0 };

    assert_int_equal(run_sh("sleep 1000 & echo $!", 60000, &result, &e), 0);
    assert_int_equal(kill((pid_t)strtol(result.output, NULL, 10), SIGKILL), 0);
}

static void a_program_that_is_missing_is_told(void **state)
{
    const char *const argv[] = { "nothing", NULL };
    struct run_result result;
    struct err e = { 0 };

    assert_int_equal(run_program(&(struct run_plan){ "/nowhere/nothing", argv, env, 1000 }, &result, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nowhere/nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_outputs_and_the_code_come_back),
        cmocka_unit_test(more_than_fits_is_cut_and_delays_nobody),
        cmocka_unit_test(a_program_that_does_not_end_is_killed_with_what_it_started),
        cmocka_unit_test(what_is_left_running_delays_nobody),
        cmocka_unit_test(a_program_that_is_missing_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
