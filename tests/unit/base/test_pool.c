#include "../wait.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

/* Jobs that report when they run, and block until they are released. */
struct gate {
    sem_t entered, leave;
};

static void gate_init(struct gate *gate)
{
    sem_init(&gate->entered, 0, 0);
    sem_init(&gate->leave, 0, 0);
}

static void gate_clear(struct gate *gate)
{
    sem_destroy(&gate->entered);
    sem_destroy(&gate->leave);
}

static void stand_in_gate(void *arg)
{
    struct gate *gate = arg;

    sem_post(&gate->entered);
    sem_wait(&gate->leave);
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static struct pool *start(struct pool_config config)
{
    struct pool *p = NULL;

    if (!config.name)
        config.name = "test";
    assert_int_equal(pool_start(&config, &p, NULL), 0);
    return p;
}

/* As the page of metrics shows it. */
static size_t count_threads(struct pool *p)
{
    static const char line[] = "\nhearth_pool_threads{pool=\"test\"} ";
    const char *found;
    struct buf page;
    size_t n;

    buf_init(&page, MIB(1));
    metrics_print(&page);
    found = strstr(buf_str(&page), line);
    assert_non_null(found);
    n = strtoul(found + strlen(line), NULL, 10);
    buf_clear(&page);
    return n;
}

static void every_job_runs_once_and_stop_runs_what_waits(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 2, .n_max = 4, .max_waiting = 1000 });
    atomic_int n = 0;

    for (int i = 0; i < 1000; i++)
        assert_int_equal(pool_submit(p, count, &n), 0);
    assert_null(pool_stop(p));
    assert_int_equal(n, 1000);
    assert_null(pool_stop(NULL));
}

static void jobs_wait_up_to_the_maximum_and_one_more_is_refused(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 1, .max_waiting = 2 });
    struct gate gate;
    atomic_int n = 0;

    gate_init(&gate);
    assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
    sem_wait(&gate.entered);
    assert_int_equal(pool_busy(p), 1);
    assert_int_equal(pool_submit(p, count, &n), 0);
    assert_int_equal(pool_submit(p, count, &n), 0);
    assert_int_equal(pool_submit(p, count, &n), -EAGAIN);
    assert_int_equal(pool_waiting(p), 2);
    sem_post(&gate.leave);
    pool_stop(p);
    assert_int_equal(n, 2);
    gate_clear(&gate);
}

static void threads_are_added_while_all_are_busy_up_to_the_maximum(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 3, .max_waiting = 10 });
    struct gate gate;

    gate_init(&gate);
    assert_int_equal(count_threads(p), 1);
    for (size_t i = 1; i <= 3; i++) {
        assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
        sem_wait(&gate.entered);
        assert_int_equal(count_threads(p), i);
    }
    assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
    assert_int_equal(count_threads(p), 3);
    assert_int_equal(pool_waiting(p), 1);
    assert_int_equal(pool_busy(p), 3);
    for (int i = 0; i < 4; i++)
        sem_post(&gate.leave);
    pool_stop(p);
    gate_clear(&gate);
}

static void one_idle_thread_is_enough_for_one_job(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 3, .max_waiting = 10 });
    struct gate gate;

    gate_init(&gate);
    sem_post(&gate.leave);
    assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
    assert_int_equal(count_threads(p), 1);
    pool_stop(p);
    gate_clear(&gate);
}

static bool has_one_thread(void *arg)
{
    return count_threads(arg) == 1;
}

static void added_threads_leave_when_idle_and_come_back_when_needed(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 3, .max_waiting = 10, .idle_ms = 1 });
    struct gate gate;

    gate_init(&gate);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
        for (int i = 0; i < 3; i++)
            sem_wait(&gate.entered);
        assert_int_equal(count_threads(p), 3);
        for (int i = 0; i < 3; i++)
            sem_post(&gate.leave);
        assert_true(wait_until(has_one_thread, p));
    }
    pool_stop(p);
    gate_clear(&gate);
}

static void a_pool_may_start_without_threads(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 0, .n_max = 1, .max_waiting = 10 });
    atomic_int n = 0;

    assert_int_equal(count_threads(p), 0);
    assert_int_equal(pool_submit(p, count, &n), 0);
    pool_stop(p);
    assert_int_equal(n, 1);
}

struct resubmit {
    struct pool *pool;
    struct gate gate;
    int r;
};

static bool is_refused(void *arg)
{
    struct resubmit *resubmit = arg;

    resubmit->r = pool_submit(resubmit->pool, stand_in_gate, &resubmit->gate);
    sem_post(&resubmit->gate.leave); /* for the job just taken */
    return resubmit->r == -EPIPE;
}

static void submit_until_refused(void *arg)
{
    struct resubmit *resubmit = arg;

    sem_post(&resubmit->gate.entered);
    wait_until(is_refused, resubmit);
}

static void a_stopping_pool_takes_no_more_jobs(void **state)
{
    struct resubmit resubmit = { .pool = start((struct pool_config){ .n_min = 2, .n_max = 2, .max_waiting = 100 }) };

    gate_init(&resubmit.gate);
    assert_int_equal(pool_submit(resubmit.pool, submit_until_refused, &resubmit), 0);
    sem_wait(&resubmit.gate.entered);
    pool_stop(resubmit.pool);
    assert_int_equal(resubmit.r, -EPIPE);
    gate_clear(&resubmit.gate);
}

static void each_thread_runs_the_end_hook_once(void **state)
{
    atomic_int n_ended = 0;
    struct pool *p = start(
        (struct pool_config){ .n_min = 3, .n_max = 3, .max_waiting = 10, .on_thread_end = count, .arg = &n_ended });

    pool_stop(p);
    assert_int_equal(n_ended, 3);
}

struct thread_facts {
    char name[16];
    sigset_t blocked;
};

static void note_thread(void *arg)
{
    struct thread_facts *facts = arg;

    pthread_getname_np(pthread_self(), facts->name, sizeof(facts->name));
    pthread_sigmask(SIG_SETMASK, NULL, &facts->blocked);
}

static void threads_bear_the_name_of_the_pool_and_block_signals(void **state)
{
    struct pool *p =
        start((struct pool_config){ .name = "a-rather-long-name", .n_min = 1, .n_max = 1, .max_waiting = 1 });
    struct thread_facts facts;
    sigset_t own;

    assert_int_equal(pool_submit(p, note_thread, &facts), 0);
    pool_stop(p);
    assert_string_equal(facts.name, "a-rather--1");
    assert_true(sigismember(&facts.blocked, SIGTERM));
    assert_true(sigismember(&facts.blocked, SIGCHLD));
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    assert_false(sigismember(&own, SIGTERM));
}

static void the_page_of_metrics_shows_the_pool_while_it_lives(void **state)
{
    struct pool *p = start((struct pool_config){ .name = "shown", .n_min = 1, .n_max = 1, .max_waiting = 10 });
    struct gate gate;
    struct buf out;

    gate_init(&gate);
    buf_init(&out, MIB(1));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
    sem_wait(&gate.entered);
    metrics_print(&out);
    assert_non_null(strstr(buf_str(&out), "hearth_pool_queue_depth{pool=\"shown\"} 2\n"));
    assert_non_null(strstr(buf_str(&out), "hearth_pool_busy{pool=\"shown\"} 1\n"));
    assert_non_null(strstr(buf_str(&out), "hearth_pool_wait_seconds_count{pool=\"shown\"} 1\n"));
    for (int i = 0; i < 3; i++)
        sem_post(&gate.leave);
    pool_stop(p);
    buf_reset(&out);
    metrics_print(&out);
    assert_null(strstr(buf_str(&out), "hearth_pool_busy{pool=\"shown\"}"));
    assert_non_null(strstr(buf_str(&out), "hearth_pool_wait_seconds_count{pool=\"shown\"} 3\n"));
    buf_clear(&out);
    gate_clear(&gate);
}

struct submitter {
    struct pool *pool;
    atomic_int *n_run;
    int n_taken;
};

static void *submit_many(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < 500; i++)
        submitter->n_taken += pool_submit(submitter->pool, count, submitter->n_run) == 0;
    return NULL;
}

static void jobs_from_many_threads_are_all_run(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 4, .max_waiting = 8, .idle_ms = 1 });
    struct submitter submitters[3];
    pthread_t threads[ARRAY_SIZE(submitters)];
    atomic_int n_run = 0;
    int n_taken = 0;

    for (size_t i = 0; i < ARRAY_SIZE(submitters); i++) {
        submitters[i] = (struct submitter){ p, &n_run, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(submitters); i++) {
        pthread_join(threads[i], NULL);
        n_taken += submitters[i].n_taken;
    }
    pool_stop(p);
    assert_true(n_taken > 0);
    assert_int_equal(n_run, n_taken);
}

static void an_urgent_job_runs_while_all_threads_and_the_queue_are_held(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 2, .max_waiting = 3, .n_reserved = 1 });
    struct gate gate, urgent;
    atomic_int n = 0;

    gate_init(&gate);
    gate_init(&urgent);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
        sem_wait(&gate.entered);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pool_submit(p, count, &n), 0);
    assert_int_equal(pool_submit(p, count, &n), -EAGAIN);
    assert_int_equal(pool_submit_urgent(p, stand_in_gate, &urgent), 0);
    sem_wait(&urgent.entered);
    assert_int_equal(atomic_load(&n), 0);
    sem_post(&urgent.leave);
    sem_post(&gate.leave);
    sem_post(&gate.leave);
    pool_stop(p);
    assert_int_equal(atomic_load(&n), 3);
    gate_clear(&gate);
    gate_clear(&urgent);
}

static void without_reserved_threads_an_urgent_job_is_the_next(void **state)
{
    struct pool *p = start((struct pool_config){ .n_min = 1, .n_max = 1, .max_waiting = 3 });
    struct gate gate, urgent;
    atomic_int n = 0;

    gate_init(&gate);
    gate_init(&urgent);
    assert_int_equal(pool_submit(p, stand_in_gate, &gate), 0);
    sem_wait(&gate.entered);
    assert_int_equal(pool_submit(p, count, &n), 0);
    assert_int_equal(pool_submit_urgent(p, stand_in_gate, &urgent), 0);
    sem_post(&gate.leave);
    sem_wait(&urgent.entered);
    assert_int_equal(atomic_load(&n), 0);
    sem_post(&urgent.leave);
    pool_stop(p);
    assert_int_equal(atomic_load(&n), 1);
    gate_clear(&gate);
    gate_clear(&urgent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once_and_stop_runs_what_waits),
        cmocka_unit_test(jobs_wait_up_to_the_maximum_and_one_more_is_refused),
        cmocka_unit_test(threads_are_added_while_all_are_busy_up_to_the_maximum),
        cmocka_unit_test(one_idle_thread_is_enough_for_one_job),
        cmocka_unit_test(added_threads_leave_when_idle_and_come_back_when_needed),
        cmocka_unit_test(a_pool_may_start_without_threads),
        cmocka_unit_test(a_stopping_pool_takes_no_more_jobs),
        cmocka_unit_test(each_thread_runs_the_end_hook_once),
        cmocka_unit_test(threads_bear_the_name_of_the_pool_and_block_signals),
        cmocka_unit_test(the_page_of_metrics_shows_the_pool_while_it_lives),
        cmocka_unit_test(jobs_from_many_threads_are_all_run),
        cmocka_unit_test(an_urgent_job_runs_while_all_threads_and_the_queue_are_held),
        cmocka_unit_test(without_reserved_threads_an_urgent_job_is_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
