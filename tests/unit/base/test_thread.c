#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

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

struct found {
    int policy, nice;
};

static void *preempt_none(void *arg)
{
    struct found *found = arg;

    thread_give_way(PRIO_MIN);
    thread_preempt_none(15);
    found->policy = sched_getscheduler(0);
    found->nice = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

/* And leaves the thread alone that starts it. */
static void a_thread_of_the_background_preempts_none(void **state)
{
    struct found found = { 0 };
    pthread_t thread;

    assert_int_equal(thread_start(&thread, "background", preempt_none, &found), 0);
    pthread_join(thread, NULL);
    assert_int_equal(found.policy, SCHED_BATCH);
    assert_true(found.nice >= 15);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_with_all_signals_blocked),
        cmocka_unit_test(a_thread_of_the_background_preempts_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
