#include "base/clock.h"
#include "base/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { DEADLINE_MS = 20000 }; /* a hanging loop fails instead of waiting */

struct fixture {
    struct loop *loop;
    struct loop_timer *deadline, *timer;
    struct loop_watch *watch;
    int n;
    int order[8];
    int fds[2];
    int64_t first_ms;
};

static void deadline_passed(void *arg)
{
    fail_msg("the loop did not end");
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(loop_new(&f->loop, NULL), 0);
    assert_int_equal(pipe2(f->fds, O_CLOEXEC | O_NONBLOCK), 0);
    f->deadline = loop_timer_new(f->loop, deadline_passed, NULL);
    loop_timer_set(f->deadline, DEADLINE_MS);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    loop_watch_free(f->watch);
    loop_timer_free(f->timer);
    loop_timer_free(f->deadline);
    loop_free(f->loop);
    close(f->fds[0]);
    close(f->fds[1]);
    freep(&f);
    return 0;
}

static void run(struct fixture *f)
{
    assert_int_equal(loop_run(f->loop, NULL), 0);
}

static void add_one(void *arg)
{
    struct fixture *f = arg;

    f->n++;
}

static void stop(void *arg)
{
    struct fixture *f = arg;

    loop_stop(f->loop);
}

static void note_1(void *arg)
{
    struct fixture *f = arg;

    f->order[f->n++] = 1;
}

static void note_2(void *arg)
{
    struct fixture *f = arg;

    f->order[f->n++] = 2;
}

static void post_within(void *arg)
{
    struct fixture *f = arg;

    loop_post(f->loop, note_2, f);
    f->order[f->n++] = 3;
}

static void posts_run_in_order_and_those_of_a_post_after_it(void **state)
{
    struct fixture *f = *state;

    loop_post(f->loop, post_within, f);
    loop_post(f->loop, note_1, f);
    loop_post(f->loop, stop, f);
    run(f);
    assert_int_equal(f->n, 3);
    assert_int_equal(f->order[0], 3);
    assert_int_equal(f->order[1], 1);
    assert_int_equal(f->order[2], 2);
}

static void a_stop_before_the_run_still_runs_what_was_posted(void **state)
{
    struct fixture *f = *state;

    loop_stop(f->loop);
    loop_post(f->loop, post_within, f);
    run(f);
    assert_int_equal(f->n, 2);
}

static void posts_after_the_end_run_when_the_loop_is_freed(void **state)
{
    struct fixture *f = *state;
    struct loop *own;

    assert_int_equal(loop_new(&own, NULL), 0);
    loop_stop(own);
    assert_int_equal(loop_run(own, NULL), 0);
    loop_post(own, add_one, f);
    assert_int_equal(f->n, 0);
    assert_null(loop_free(own));
    assert_int_equal(f->n, 1);
    assert_null(loop_free(NULL));
}

enum { POSTERS = 3, POSTS_EACH = 2000 };

static void count_to_the_end(void *arg)
{
    struct fixture *f = arg;

    if (++f->n == POSTERS * POSTS_EACH)
        loop_stop(f->loop);
}

static void *post_many(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < POSTS_EACH; i++)
        loop_post(f->loop, count_to_the_end, f);
    return NULL;
}

static void posts_of_many_threads_all_run_on_the_loop(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[POSTERS];

    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, f), 0);
    run(f);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(f->n, POSTERS * POSTS_EACH);
}

struct caller {
    struct fixture *f;
    pthread_t ran_on;
    bool was_current, saw_result;
};

static void note_thread(void *arg)
{
    struct caller *caller = arg;

    caller->ran_on = pthread_self();
    caller->was_current = loop_is_current(caller->f->loop);
}

static void *call_once(void *arg)
{
    struct caller *caller = arg;

    assert_false(loop_is_current(caller->f->loop));
    loop_call(caller->f->loop, note_thread, caller);
    caller->saw_result = caller->ran_on != 0;
    loop_stop(caller->f->loop);
    return NULL;
}

static void a_call_runs_on_the_loop_and_is_over_when_it_returns(void **state)
{
    struct caller caller = { .f = *state };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, call_once, &caller), 0);
    run(caller.f);
    pthread_join(thread, NULL);
    assert_true(caller.saw_result);
    assert_true(caller.was_current);
    assert_true(pthread_equal(caller.ran_on, pthread_self()));
}

static void a_call_on_the_loop_itself_runs_at_once(void **state)
{
    struct fixture *f = *state;

    loop_post(f->loop, add_one, f);
    loop_call(f->loop, note_1, f);
    assert_int_equal(f->order[0], 1);
    assert_int_equal(f->n, 1);
}

static void *call_after_the_end(void *arg)
{
    struct caller *caller = arg;

    loop_call(caller->f->loop, note_thread, caller);
    return NULL;
}

static void a_call_after_the_end_runs_where_it_is_made_behind_earlier_posts(void **state)
{
    struct caller caller = { .f = *state };
    pthread_t thread;

    loop_stop(caller.f->loop);
    run(caller.f);
    loop_post(caller.f->loop, add_one, caller.f);
    assert_int_equal(pthread_create(&thread, NULL, call_after_the_end, &caller), 0);
    pthread_join(thread, NULL);
    assert_true(pthread_equal(caller.ran_on, thread));
    assert_true(caller.was_current);
    assert_int_equal(caller.f->n, 1);
    assert_true(loop_is_current(caller.f->loop));
}

static void *call_many(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 300; i++)
        loop_call(f->loop, add_one, f);
    return NULL;
}

static void no_call_is_lost_while_the_loop_ends(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[3];

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, f), 0);
    loop_stop(f->loop);
    run(f);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(f->n, 900);
}

static void a_timer_fires_once_and_not_before_its_time(void **state)
{
    struct fixture *f = *state;
    int64_t before_ms = clock_mono_ms();

    f->timer = loop_timer_new(f->loop, stop, f);
    loop_timer_set(f->timer, DEADLINE_MS * 2);
    loop_timer_set(f->timer, 20); /* replaces the earlier setting */
    run(f);
    /* libevent's clock is the coarse one: it may lag by one tick of the kernel */
    assert_true(clock_mono_ms() - before_ms >= 20 - 10);
}

static void tick(void *arg)
{
    struct fixture *f = arg;

    if (++f->n == 3)
        loop_stop(f->loop);
}

static void a_repeated_timer_fires_again_and_again(void **state)
{
    struct fixture *f = *state;

    f->timer = loop_timer_new(f->loop, tick, f);
    loop_timer_every(f->timer, 1);
    run(f);
    assert_int_equal(f->n, 3);
}

static void cancel_then_end(void *arg)
{
    struct fixture *f = arg;

    f->n++;
    loop_timer_cancel(f->timer);
    loop_timer_set(f->deadline, 30); /* time for a timer that was not cancelled */
}

static void a_cancelled_timer_is_silent_even_from_within_itself(void **state)
{
    struct fixture *f = *state;

    loop_timer_free(f->deadline);
    f->deadline = loop_timer_new(f->loop, stop, f);
    f->timer = loop_timer_new(f->loop, cancel_then_end, f);
    loop_timer_every(f->timer, 1);
    run(f);
    assert_int_equal(f->n, 1);
}

static void free_itself(void *arg)
{
    struct fixture *f = arg;

    f->timer = loop_timer_free(f->timer);
    loop_stop(f->loop);
}

static void a_repeated_timer_may_free_itself(void **state)
{
    struct fixture *f = *state;

    f->timer = loop_timer_new(f->loop, free_itself, f);
    loop_timer_every(f->timer, 1);
    run(f);
    assert_null(f->timer);
    assert_null(loop_timer_free(NULL));
}

static void read_one_byte(int fd, void *arg)
{
    struct fixture *f = arg;
    char byte;

    assert_int_equal(fd, f->fds[0]);
    assert_int_equal(read(fd, &byte, 1), 1);
    if (++f->n == 3)
        loop_stop(f->loop);
}

static void a_watch_calls_as_long_as_there_is_something_to_read(void **state)
{
    struct fixture *f = *state;

    f->watch = loop_watch_read(f->loop, f->fds[0], read_one_byte, f);
    assert_non_null(f->watch);
    assert_int_equal(write(f->fds[1], "abc", 3), 3);
    run(f);
    assert_int_equal(f->n, 3);
}

static void unwatch(int fd, void *arg)
{
    struct fixture *f = arg;

    f->watch = loop_watch_free(f->watch);
    loop_post(f->loop, stop, f);
}

static void a_watch_may_free_itself_and_leaves_the_descriptor_open(void **state)
{
    struct fixture *f = *state;

    f->watch = loop_watch_read(f->loop, f->fds[0], unwatch, f);
    assert_int_equal(write(f->fds[1], "a", 1), 1);
    run(f);
    assert_null(f->watch);
    assert_int_not_equal(fcntl(f->fds[0], F_GETFD), -1);
    assert_null(loop_watch_free(NULL));
}

static void ignore(int number, void *arg)
{
}

static void what_the_kernel_cannot_watch_is_refused(void **state)
{
    struct fixture *f = *state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_null(loop_watch_read(f->loop, fd, ignore, f));
    close(fd);
    assert_null(loop_watch_read(f->loop, fd, ignore, f));
}

static void note_signal(int signum, void *arg)
{
    struct fixture *f = arg;

    f->n = signum;
    loop_stop(f->loop);
}

static void raise_in_process(void *arg)
{
    kill(getpid(), SIGUSR1);
}

static void a_signal_arrives_on_the_loop(void **state)
{
    struct fixture *f = *state;

    f->watch = loop_watch_signal(f->loop, SIGUSR1, note_signal, f);
    assert_non_null(f->watch);
    loop_post(f->loop, raise_in_process, NULL);
    run(f);
    assert_int_equal(f->n, SIGUSR1);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(posts_run_in_order_and_those_of_a_post_after_it),
        LOOP_TEST(a_stop_before_the_run_still_runs_what_was_posted),
        LOOP_TEST(posts_after_the_end_run_when_the_loop_is_freed),
        LOOP_TEST(posts_of_many_threads_all_run_on_the_loop),
        LOOP_TEST(a_call_runs_on_the_loop_and_is_over_when_it_returns),
        LOOP_TEST(a_call_on_the_loop_itself_runs_at_once),
        LOOP_TEST(a_call_after_the_end_runs_where_it_is_made_behind_earlier_posts),
        LOOP_TEST(no_call_is_lost_while_the_loop_ends),
        LOOP_TEST(a_timer_fires_once_and_not_before_its_time),
        LOOP_TEST(a_repeated_timer_fires_again_and_again),
        LOOP_TEST(a_cancelled_timer_is_silent_even_from_within_itself),
        LOOP_TEST(a_repeated_timer_may_free_itself),
        LOOP_TEST(a_watch_calls_as_long_as_there_is_something_to_read),
        LOOP_TEST(a_watch_may_free_itself_and_leaves_the_descriptor_open),
        LOOP_TEST(what_the_kernel_cannot_watch_is_refused),
        LOOP_TEST(a_signal_arrives_on_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
