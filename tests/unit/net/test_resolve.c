/* Waiting for a peer, and look-ups of names, end at a deadline and when the result is not needed any more. */
#include "net/resolve.h"

#include "base/clock.h"
#include "base/limits.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

enum { LONG_MS = 60000, SHORT_MS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static size_t n_threads_before;
static bool is_held;

/* Takes the place of the C library's function in this program: a name server that does not answer while it is held.
 * Numeric addresses need no server. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *wanted, struct addrinfo **ret)
{
    typeof(getaddrinfo) *real = (typeof(getaddrinfo) *)dlsym(RTLD_NEXT, "getaddrinfo");

    if (wanted->ai_flags & AI_NUMERICHOST)
        return real(host, service, wanted, ret);
    pthread_mutex_lock(&lock);
    while (is_held)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
    return real("127.0.0.1", service, wanted, ret);
}

static size_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t n = 0;

    assert_non_null(tasks);
    while (readdir(tasks))
        n++;
    closedir(tasks);
    return n;
}

static void hold(bool is)
{
    pthread_mutex_lock(&lock);
    is_held = is;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

/* Abandoned look-ups continue without their caller: waits until the last has ended. */
static int end_look_ups(void **state)
{
    int64_t deadline_ms = clock_mono_ms() + LONG_MS;

    hold(false);
    while (count_threads() > n_threads_before && clock_mono_ms() < deadline_ms)
        poll(NULL, 0, 1);
    return count_threads() > n_threads_before;
}

static int resolve(const char *host, int64_t total_ms, const atomic_bool *is_gone, struct err *e)
{
    const struct net_wait wait = net_wait_of(total_ms, is_gone, NULL);
    struct addrinfo *answer = NULL;
    int r = net_resolve(host, 80, &wait, &answer, e);

    if (r == 0)
        freeaddrinfo(answer);
    return r;
}

static void a_look_up_that_takes_too_long_is_given_up(void **state)
{
    atomic_bool is_gone = true;
    struct err e = { 0 };

    hold(true);
    assert_int_equal(resolve("slow.example", SHORT_MS, NULL, &e), -ETIMEDOUT);
    assert_string_equal(e.code, "UPSTREAM_TIMEOUT");
    assert_int_equal(resolve("slow.example", LONG_MS, &is_gone, &e), -ECANCELED);
    assert_int_equal(resolve("127.0.0.1", LONG_MS, NULL, &e), 0); /* no look-up */
    hold(false);
    assert_int_equal(resolve("slow.example", LONG_MS, NULL, &e), 0);
}

static void only_so_many_names_are_looked_up_at_a_time(void **state)
{
    struct err e = { 0 };

    hold(true);
    for (int i = 0; i < LIMIT_LOOKUPS; i++)
        assert_int_equal(resolve("slow.example", 1, NULL, &e), -ETIMEDOUT);
    assert_int_equal(resolve("slow.example", LONG_MS, NULL, &e), -EAGAIN);
    assert_string_equal(e.code, "OVERLOADED");
    assert_int_equal(end_look_ups(NULL), 0);
    assert_int_equal(resolve("slow.example", LONG_MS, NULL, &e), 0);
}

static void a_descriptor_is_waited_for_until_it_is_ready_or_the_wait_is_over(void **state)
{
    static atomic_bool is_leaving;
    struct net_wait wait = net_wait_of(SHORT_MS, NULL, &is_leaving);
    struct err e = { 0 };
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(net_wait_fd(&wait, ends[0], POLLIN, &e), -ETIMEDOUT);
    assert_non_null(strstr(e.text, "0.06 seconds"));
    wait = net_wait_of(LONG_MS, NULL, &is_leaving);
    assert_int_equal(net_wait_fd(&wait, ends[1], POLLOUT, &e), 0);
    atomic_store(&is_leaving, true);
    assert_int_equal(net_wait_fd(&wait, ends[0], POLLIN, &e), -ECANCELED);
    assert_string_equal(e.code, "SHUTTING_DOWN");
    close(ends[0]);
    close(ends[1]);
}

static void a_part_of_an_operation_never_has_more_time_than_the_whole(void **state)
{
    struct net_wait whole = net_wait_of(LONG_MS, NULL, NULL);

    assert_true(net_wait_part(&whole, 10 * LONG_MS).deadline_ms == whole.deadline_ms &&
                net_wait_part(&whole, 10 * LONG_MS).total_ms == LONG_MS);
    assert_true(net_wait_part(&whole, 10).deadline_ms < whole.deadline_ms && net_wait_part(&whole, 10).total_ms == 10);
}

static void *do_nothing(void *arg)
{
    return NULL;
}

/* ThreadSanitizer starts its own thread together with the first one. */
static void start_first_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_look_up_that_takes_too_long_is_given_up, end_look_ups),
        cmocka_unit_test_teardown(only_so_many_names_are_looked_up_at_a_time, end_look_ups),
        cmocka_unit_test(a_descriptor_is_waited_for_until_it_is_ready_or_the_wait_is_over),
        cmocka_unit_test(a_part_of_an_operation_never_has_more_time_than_the_whole),
    };

    start_first_thread();
    n_threads_before = count_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
