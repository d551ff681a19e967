/* A loop that can watch no more descriptors: this file replaces libevent's event_add(). */
#include "place.h"

#include <dlfcn.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <sys/wait.h>

static atomic_int n_until_failure = -1; /* calls that succeed before one fails; -1: none fails */

int event_add(struct event *ev, const struct timeval *timeout)
{
    int (*real)(struct event *, const struct timeval *) =
        (int (*)(struct event *, const struct timeval *))dlsym(RTLD_NEXT, "event_add");
    int left = atomic_load(&n_until_failure);

    if (left < 0 || !(event_get_events(ev) & EV_PERSIST))
        return real(ev, timeout);
    if (left == 0)
        return -1;
    atomic_store(&n_until_failure, left - 1);
    return real(ev, timeout);
}

static void a_child_that_cannot_be_watched_is_not_started(void **state)
{
    struct place *p = *state;
    const char *const args[] = { "1000", NULL };
    const struct child_spec spec = { .label = "test", .command = "sleep", .args = args, .env = place_env };
    struct child *c = NULL;
    struct err e = { 0 };

    for (int n = 0; n < 3; n++) {
        atomic_store(&n_until_failure, n);
        assert_int_equal(child_start(p->supervisor, &spec, &c, &e), -ENOMEM);
        atomic_store(&n_until_failure, -1);
        assert_null(c);
        assert_non_null(strstr(e.text, "could not be watched"));
        assert_int_equal(supervisor_n_children(p->supervisor), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left running */
        assert_int_equal(errno, ECHILD);
    }
}

static void the_next_one_starts(void **state)
{
    struct story s = { 0 };

    a_child_that_cannot_be_watched_is_not_started(state);
    story_start_script(&s, *state, "exit 4", (struct child_spec){ 0 });
    story_wait(&s);
    assert_int_equal(s.how.code, 4);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_that_cannot_be_watched_is_not_started, place_set_up, place_tear_down),
        cmocka_unit_test_setup_teardown(the_next_one_starts, place_set_up, place_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
