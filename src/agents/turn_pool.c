#include "agents/turn_pool.h"

#include "base/limits.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdlib.h>

enum { IDLE_MS = 10000 };

struct turn_pool {
    struct pool *turns, *calls; /* owned */
    pthread_mutex_t places;     /* held while places change and are told */
    struct turn_job waiting[LIMIT_TURNS + LIMIT_TURNS_WAITING];
    size_t n_waiting, n_running;
};

struct pool *turn_pool_calls(struct turn_pool *p)
{
    return p->calls;
}

int turn_pool_start(const struct turn_pool_config *c, struct turn_pool **ret, struct err *e)
{
    const struct pool_config turns = { .name = "agents",
                                       .n_max = LIMIT_TURNS,
                                       .max_waiting = LIMIT_TURNS + LIMIT_TURNS_WAITING,
                                       .idle_ms = IDLE_MS,
                                       .stack_bytes = LIMIT_TURN_STACK,
                                       .on_thread_end = c->on_thread_end,
                                       .arg = c->arg };
    struct pool_config calls = turns;
    struct turn_pool *p = xcalloc(1, sizeof(*p));
    int r;

    calls.name = "tools";
    calls.n_max = LIMIT_CALL_THREADS;
    pthread_mutex_init(&p->places, NULL);
    r = pool_start(&turns, &p->turns, e);
    if (r == 0)
        r = pool_start(&calls, &p->calls, e);
    if (r < 0) {
        turn_pool_stop(p);
        return r;
    }
    *ret = p;
    return 0;
}

struct turn_pool *turn_pool_stop(struct turn_pool *p)
{
    if (!p)
        return NULL;
    pool_stop(p->turns);
    pool_stop(p->calls);
    pthread_mutex_destroy(&p->places);
    free(p);
    return NULL;
}

/* The job at `at` waits for a thread only behind those that the free threads take. The caller holds the lock. */
static size_t place_of(const struct turn_pool *p, size_t at)
{
    size_t n_free = LIMIT_TURNS - p->n_running;

    return at < n_free ? 0 : at + 1 - n_free;
}

static void report_place(const struct turn_pool *p, size_t at)
{
    const struct turn_job *job = &p->waiting[at];

    if (job->on_place && place_of(p, at) > 0)
        job->on_place(job->arg, place_of(p, at));
}

static struct turn_job take_first(struct turn_pool *p)
{
    struct turn_job first = p->waiting[0];

    p->n_waiting--;
    p->n_running++;
    memmove(p->waiting, p->waiting + 1, p->n_waiting * sizeof(*p->waiting));
    return first;
}

static void run_first(void *arg)
{
    struct turn_pool *p = arg;
    struct turn_job job;

    pthread_mutex_lock(&p->places);
    job = take_first(p);
    for (size_t i = 0; i < p->n_waiting; i++)
        report_place(p, i);
    pthread_mutex_unlock(&p->places);
    job.run(job.arg);
    pthread_mutex_lock(&p->places);
    p->n_running--;
    pthread_mutex_unlock(&p->places);
}

static int add(struct turn_pool *p, const struct turn_job *job, struct err *e)
{
    int r;

    if (place_of(p, p->n_waiting) > LIMIT_TURNS_WAITING)
        return err_set(e, -EAGAIN, "TOO_MANY_TURNS", "%d turns of agents run and %d wait already; try again later.",
                       LIMIT_TURNS, LIMIT_TURNS_WAITING);
    p->waiting[p->n_waiting++] = *job;
    r = pool_submit(p->turns, run_first, p);
    if (r == 0)
        return 0;
    p->n_waiting--;
    return err_set(e, -EPIPE, "SHUTTING_DOWN", "The service is stopping.");
}

int turn_pool_submit(struct turn_pool *p, const struct turn_job *job, struct err *e)
{
    int r;

    pthread_mutex_lock(&p->places);
    r = add(p, job, e);
    if (r == 0)
        report_place(p, p->n_waiting - 1);
    pthread_mutex_unlock(&p->places);
    return r;
}

size_t turn_pool_running(struct turn_pool *p)
{
    size_t n;

    pthread_mutex_lock(&p->places);
    n = p->n_running;
    pthread_mutex_unlock(&p->places);
    return n;
}

size_t turn_pool_waiting(struct turn_pool *p)
{
    size_t n;

    pthread_mutex_lock(&p->places);
    n = p->n_waiting;
    pthread_mutex_unlock(&p->places);
    return n;
}
