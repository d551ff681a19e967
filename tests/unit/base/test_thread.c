#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>

static void *read_mask(void *arg)
{
    pthread_sigmask(SIG_BLOCK, NULL, arg);
    return NULL;
}

static void a_thread_starts_with_all_signals_blocked(void **state)
{
    sigset_t mask, own;
    pthread_t thread;

    sigemptyset(&mask);
    assert_int_equal(thread_start(&thread, "a name that is too long for the kernel", read_mask, &mask), 0);
    pthread_join(thread, NULL);
    assert_true(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP) && sigismember(&mask, SIGCHLD));
    pthread_sigmask(SIG_BLOCK, NULL, &own);
    assert_false(sigismember(&own, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_with_all_signals_blocked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
