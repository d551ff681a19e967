#include "base/secret.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 64, WROTE = 3 };

static int set_up(void **state)
{
    return hash_init(NULL);
}

static void is_zeroed_and_takes_what_is_written(void **state)
{
    unsigned char *p = secret_new(SIZE);

    assert_non_null(p);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(p[i], 0);
    memset(p, 7, SIZE);
    assert_int_equal(p[SIZE - 1], 7);
    assert_null(secret_free(p));
    assert_null(secret_free(NULL));
}

/* A write must end the child by a signal; ASan turns the signal into an exit code. */
static void dies_of_writing_at(unsigned char *p, size_t at)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        ((volatile unsigned char *)p)[at] = 1;
        _exit(WROTE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == WROTE);
}

static void frozen_it_cannot_be_overwritten(void **state)
{
    unsigned char *p = secret_new(SIZE);

    secret_freeze(p);
    dies_of_writing_at(p, 0);
    assert_int_equal(p[0], 0);
    secret_free(p);
}

static void ends_at_a_guard_page(void **state)
{
    unsigned char *p = secret_new(SIZE);

    dies_of_writing_at(p, SIZE);
    secret_free(p);
}

static void wipe_leaves_zeros(void **state)
{
    char text[] = "a copy of a key";

    secret_wipe(text, sizeof(text));
    for (size_t i = 0; i < sizeof(text); i++)
        assert_int_equal(text[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_zeroed_and_takes_what_is_written),
        cmocka_unit_test(frozen_it_cannot_be_overwritten),
        cmocka_unit_test(ends_at_a_guard_page),
        cmocka_unit_test(wipe_leaves_zeros),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
