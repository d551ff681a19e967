#include "base/pool.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/stall.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_IDLE_MS = 60000 };

struct job {
    void (*fn)(void *arg);
    void *arg;
    int64_t since_us;
};

struct worker {
    struct worker *next;                /* owned */
    struct pool *pool;                  /* borrowed from its maker */
    pthread_t thread;
    bool has_left;                      /* the thread is at its end: only join is missing */
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pool_config config;
    char *name;                         /* owned */
    bool is_stopping;
    struct worker *workers;             /* owned */
    size_t n_threads, n_busy, n_made;   /* those not busy are idle or about to be */
    size_t first, n_waiting;            /* ring of jobs */
    struct job *jobs;                   /* owned; config.max_waiting of them */
    struct metric *wait_seconds, *stall_seconds;        /* borrowed from the registry */
};

/* Waits for a job or the order to leave. True when a job is there. */
static bool wait_for_job(struct pool *p)
{
    int64_t until_us = clock_mono_us() + p->config.idle_ms * 1000;
    bool is_over = false;

    while (p->n_waiting == 0 && !p->is_stopping && !(is_over && p->n_threads > p->config.n_min)) {
        if (is_over)
            pthread_cond_wait(&p->changed, &p->lock);
        else
            is_over = !cond_wait_until(&p->changed, &p->lock, until_us);
    }
    return p->n_waiting > 0;
}

static void run_measured(struct pool *p, const struct job *job)
{
    struct stall_span span = stall_begin();
    int64_t waited_us;

    stall_set_label("an unknown place");
    job->fn(job->arg);
    waited_us = p->config.must_not_wait ? stall_waited_us(&span) : 0;
    if (waited_us == 0)
        return;
    metric_observe(p->stall_seconds, (double)waited_us / 1e6);
    log_warn("pool", NULL, "a job of the pool %s waited for %lld ms at %s", p->name, (long long)waited_us / 1000, stall_place(NULL));
}

static void run_next_job(struct pool *p)
{
    struct job job = p->jobs[p->first];

    p->first = (p->first + 1) % p->config.max_waiting;
    p->n_waiting--;
    p->n_busy++;
    pthread_mutex_unlock(&p->lock);
    metric_observe(p->wait_seconds, (double)(clock_mono_us() - job.since_us) / 1e6);
    run_measured(p, &job);
    pthread_mutex_lock(&p->lock);
    p->n_busy--;
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    struct pool *p = self->pool;

    pthread_mutex_lock(&p->lock);
    while (wait_for_job(p))
        run_next_job(p);
    p->n_threads--;
    pthread_mutex_unlock(&p->lock);
    if (p->config.on_thread_end)
        p->config.on_thread_end(p->config.arg);
    pthread_mutex_lock(&p->lock);
    self->has_left = true;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Under the lock. */
static int add_worker(struct pool *p)
{
    struct worker *worker = xcalloc(1, sizeof(*worker));
    char name[16];                      /* the kernel's limit, with NUL */
    int r;

    worker->pool = p;
    snprintf(name, sizeof(name), "%.9s-%zu", p->name, ++p->n_made % 100000);
    r = thread_start(&worker->thread, name, worker_main, worker);
    if (r < 0) {
        free(worker);
        return r;
    }
    worker->next = p->workers;
    p->workers = worker;
    p->n_threads++;
    return 0;
}

/* Under the lock: joins the threads that left by themselves. */
static void reap_workers(struct pool *p)
{
    struct worker **at = &p->workers;

    while (*at) {
        struct worker *worker = *at;

        if (!worker->has_left) {
            at = &worker->next;
            continue;
        }
        *at = worker->next;
        pthread_join(worker->thread, NULL);
        free(worker);
    }
}

static double read_waiting(void *arg)
{
    return (double)pool_waiting(arg);
}

static double read_busy(void *arg)
{
    return (double)pool_busy(arg);
}

static void register_metrics(struct pool *p)
{
    char labels[64];

    snprintf(labels, sizeof(labels), "pool=\"%s\"", p->name);
    p->wait_seconds = metric_histogram("hearth_pool_wait_seconds", "Time a job waited for a worker thread.", labels);
    p->stall_seconds = metric_histogram("hearth_pool_stall_seconds", "Time a job waited for something else than store and processor, when it was above 50 ms.", labels);
    metric_gauge_fn("hearth_pool_queue_depth", "Jobs that wait for a worker thread.", labels, read_waiting, p);
    metric_gauge_fn("hearth_pool_busy", "Worker threads that run a job.", labels, read_busy, p);
}

static struct pool *make_pool(const struct pool_config *c)
{
    struct pool *p = xcalloc(1, sizeof(*p));

    p->config = *c;
    p->config.idle_ms = c->idle_ms ? c->idle_ms : POOL_IDLE_MS;
    p->name = xstrdup(c->name);
    p->config.name = p->name;
    p->jobs = xcalloc(c->max_waiting, sizeof(*p->jobs));
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->changed);
    register_metrics(p);
    return p;
}

int pool_start(const struct pool_config *c, struct pool **ret, struct err *e)
{
    struct pool *p;
    int r = 0;

    assert(c->n_max > 0 && c->n_min <= c->n_max && c->max_waiting > 0);
    p = make_pool(c);
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < c->n_min && r == 0; i++)
        r = add_worker(p);
    pthread_mutex_unlock(&p->lock);
    if (r < 0) {
        pool_stop(p);
        return err_errno(e, -r, "A worker thread of the pool %s could not be started", c->name);
    }
    *ret = p;
    return 0;
}

void pool_finish(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);

    while (p->workers) {                /* nobody changes the list any more */
        struct worker *worker = p->workers;

        p->workers = worker->next;
        pthread_join(worker->thread, NULL);
        free(worker);
    }
}

struct pool *pool_stop(struct pool *p)
{
    if (!p)
        return NULL;
    pool_finish(p);
    metric_gauge_fn_forget(p);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->jobs);
    free(p->name);
    free(p);
    return NULL;
}

/* Under the lock: one more thread when those that are idle are all spoken for. -EAGAIN when there is none at all. */
static int grow(struct pool *p)
{
    if (p->n_waiting >= p->n_threads - p->n_busy && p->n_threads < p->config.n_max) {
        reap_workers(p);
        if (add_worker(p) < 0 && p->n_threads == 0)
            return -EAGAIN;
    }
    return 0;
}

int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg)
{
    int r = 0;

    pthread_mutex_lock(&p->lock);
    if (p->is_stopping) {
        r = -EPIPE;
    } else if (p->n_waiting == p->config.max_waiting) {
        r = -EAGAIN;
    } else {
        r = grow(p);
    }
    if (r == 0) {
        p->jobs[(p->first + p->n_waiting++) % p->config.max_waiting] = (struct job){ fn, arg, clock_mono_us() };
        pthread_cond_signal(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

static size_t read_under_lock(struct pool *p, const size_t *count)
{
    size_t n;

    pthread_mutex_lock(&p->lock);
    n = *count;
    pthread_mutex_unlock(&p->lock);
    return n;
}

size_t pool_waiting(struct pool *p)
{
    return read_under_lock(p, &p->n_waiting);
}

size_t pool_threads(struct pool *p)
{
    return read_under_lock(p, &p->n_threads);
}

size_t pool_busy(struct pool *p)
{
    return read_under_lock(p, &p->n_busy);
}
