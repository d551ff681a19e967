#include "base/pool.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "base/stall.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_IDLE_MS = 60000, STARTER_MAX = 4096 /* threads that wait to be started */ };

struct job {
    void (*fn)(void *arg);
    void *arg;
    int64_t since_us;
};

/* The jobs of one urgency in a ring, and the threads assigned to them. */
struct lane {
    pthread_cond_t changed;
    size_t n_min, n_max;
    size_t n_threads, n_busy; /* threads that are not busy are idle or about to be */
    size_t first, n_waiting;
    struct job *jobs; /* owned; config.max_waiting of them */
};

enum urgency { NORMAL, URGENT, URGENCIES };

struct worker {
    struct worker *next; /* owned */
    struct pool *pool;   /* borrowed from its maker */
    enum urgency lane;   /* URGENT: takes only jobs of that lane */
    pthread_t thread;
    size_t number;
    bool has_left; /* the thread has ended and must only be joined */
};

struct pool {
    pthread_mutex_t lock;
    struct lane lanes[URGENCIES];
    struct pool_config config;
    char *name; /* owned */
    bool is_stopping;
    struct worker *workers; /* owned */
    size_t n_made, n_starting;
    pthread_cond_t has_started;                  /* n_starting is 0 */
    struct metric *wait_seconds, *stall_seconds; /* borrowed from the registry */
};

/* The thread that starts the threads of all pools after their first ones, so that neither the loop nor a job waits for
 * that. Never freed. */
static struct {
    pthread_mutex_t lock;
    struct queue *workers; /* owned until each is started; NULL: the thread does not run */
} starter = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The lane with the next job of this worker; NULL: no job waits. The caller holds the lock. */
static struct lane *lane_with_job(const struct worker *self)
{
    struct pool *p = self->pool;

    if (p->lanes[URGENT].n_waiting > 0)
        return &p->lanes[URGENT];
    return self->lane == NORMAL && p->lanes[NORMAL].n_waiting > 0 ? &p->lanes[NORMAL] : NULL;
}

/* Waits for a job or the order to end. True when a job waits. */
static bool wait_for_job(const struct worker *self)
{
    struct pool *p = self->pool;
    struct lane *own = &p->lanes[self->lane];
    int64_t until_us = clock_mono_us() + p->config.idle_ms * 1000;
    bool is_over = false;

    while (!lane_with_job(self) && !p->is_stopping && !(is_over && own->n_threads > own->n_min)) {
        if (is_over)
            pthread_cond_wait(&own->changed, &p->lock);
        else
            is_over = !cond_wait_until(&own->changed, &p->lock, until_us);
    }
    return lane_with_job(self) != NULL;
}

static void run_measured(struct pool *p, const struct job *job)
{
    struct stall_span span = stall_begin();
    struct stall stall;

    job->fn(job->arg);
    stall = stall_waited(&span);
    if (stall.held_us == 0)
        return;
    metric_observe(p->stall_seconds, (double)stall.held_us / 1e6);
    log_warn("pool", NULL,
             "a job of the pool %s waited for %lld ms at %s (and %lld ms while the machine lacked processors)", p->name,
             (long long)stall.held_us / 1000, stall_place(NULL), (long long)(stall.ready_us + stall.starved_us) / 1000);
}

static void run(struct pool *p, const struct job *job)
{
    if (p->config.must_not_wait)
        run_measured(p, job);
    else
        job->fn(job->arg);
}

static void run_next_job(const struct worker *self)
{
    struct pool *p = self->pool;
    struct lane *from = lane_with_job(self), *own = &p->lanes[self->lane];
    struct job job = from->jobs[from->first];

    from->first = (from->first + 1) % p->config.max_waiting;
    from->n_waiting--;
    own->n_busy++;
    pthread_mutex_unlock(&p->lock);
    metric_observe(p->wait_seconds, (double)(clock_mono_us() - job.since_us) / 1e6);
    run(p, &job);
    pthread_mutex_lock(&p->lock);
    own->n_busy--;
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    struct pool *p = self->pool;

    pthread_mutex_lock(&p->lock);
    while (wait_for_job(self))
        run_next_job(self);
    p->lanes[self->lane].n_threads--;
    pthread_mutex_unlock(&p->lock);
    if (p->config.on_thread_end)
        p->config.on_thread_end(p->config.arg);
    pthread_mutex_lock(&p->lock);
    self->has_left = true;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Unlinks the threads that ended after their idle time. The caller holds the lock. */
static struct worker *take_left(struct pool *p)
{
    struct worker **at = &p->workers, *left = NULL;

    while (*at) {
        struct worker *worker = *at;

        if (!worker->has_left) {
            at = &worker->next;
            continue;
        }
        *at = worker->next;
        worker->next = left;
        left = worker;
    }
    return left;
}

static void join_all(struct worker *worker)
{
    while (worker) {
        struct worker *next = worker->next;

        pthread_join(worker->thread, NULL);
        free(worker);
        worker = next;
    }
}

/* The caller holds the lock. */
static struct worker *new_worker(struct pool *p, enum urgency lane)
{
    struct worker *worker = xcalloc(1, sizeof(*worker));

    *worker = (struct worker){ .pool = p, .lane = lane, .number = ++p->n_made };
    p->lanes[lane].n_threads++;
    p->n_starting++;
    return worker;
}

static int start_worker(struct worker *worker)
{
    struct pool *p = worker->pool;
    enum urgency lane = worker->lane;
    char name[16]; /* the kernel's limit, with NUL */
    int r;

    snprintf(name, sizeof(name), "%.9s-%zu", p->name, worker->number % 100000);
    r = thread_start_sized(&worker->thread, name, p->config.stack_bytes, worker_main, worker);
    pthread_mutex_lock(&p->lock);
    if (r < 0) {
        p->lanes[lane].n_threads--; /* the existing threads run the jobs later */
        free(worker);
    } else {
        worker->next = p->workers;
        p->workers = worker;
    }
    if (--p->n_starting == 0)
        pthread_cond_broadcast(&p->has_started); /* the pool may be freed after the unlock */
    pthread_mutex_unlock(&p->lock);
    return r;
}

static void *start_workers(void *arg)
{
    void *item;

    while (queue_pop(arg, -1, &item) == 0) {
        struct worker *worker = item, *left;
        struct pool *p = worker->pool;

        pthread_mutex_lock(&p->lock);
        left = take_left(p);
        pthread_mutex_unlock(&p->lock);
        join_all(left);
        (void)!start_worker(worker);
    }
    return NULL;
}

static struct queue *run_starter(void)
{
    struct queue *workers = queue_new(STARTER_MAX);
    pthread_t thread;

    if (thread_start(&thread, "starter", start_workers, workers) < 0)
        return queue_free(workers);
    pthread_detach(thread);
    return workers;
}

/* False: the starter does not run, or has too much to do. */
static bool start_soon(struct worker *worker)
{
    struct queue *workers;

    pthread_mutex_lock(&starter.lock);
    if (!starter.workers)
        starter.workers = run_starter();
    workers = starter.workers;
    pthread_mutex_unlock(&starter.lock);
    return workers && queue_push(workers, worker) == 0;
}

/* The caller holds the lock, which is free while the pool's first thread starts: without one no job would ever run. */
static int add_worker(struct pool *p, enum urgency lane)
{
    bool is_first = p->lanes[NORMAL].n_threads + p->lanes[URGENT].n_threads == p->n_starting;
    struct worker *worker = new_worker(p, lane);
    int r = 0;

    if (!is_first && start_soon(worker))
        return 0;
    pthread_mutex_unlock(&p->lock);
    r = start_worker(worker);
    pthread_mutex_lock(&p->lock);
    return r;
}

static size_t sum_under_lock(struct pool *p, size_t (*count)(const struct lane *lane))
{
    size_t n = 0;

    pthread_mutex_lock(&p->lock);
    for (enum urgency lane = NORMAL; lane < URGENCIES; lane++)
        n += count(&p->lanes[lane]);
    pthread_mutex_unlock(&p->lock);
    return n;
}

static size_t count_threads(const struct lane *lane)
{
    return lane->n_threads;
}

static double read_threads(void *arg)
{
    return (double)sum_under_lock(arg, count_threads);
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
    p->stall_seconds =
        metric_histogram("hearth_pool_stall_seconds",
                         "Time a job waited for something else than store and processor, when it was above 50 ms.",
                         labels);
    metric_gauge_fn("hearth_pool_queue_depth", "Jobs that wait for a worker thread.", labels, read_waiting, p);
    metric_gauge_fn("hearth_pool_threads", "Worker threads, idle ones included.", labels, read_threads, p);
    metric_gauge_fn("hearth_pool_busy", "Worker threads that run a job.", labels, read_busy, p);
}

static struct pool *make_pool(const struct pool_config *c)
{
    struct pool *p = xcalloc(1, sizeof(*p));

    p->config = *c;
    p->config.idle_ms = c->idle_ms ? c->idle_ms : POOL_IDLE_MS;
    p->name = xstrdup(c->name);
    p->config.name = p->name;
    for (enum urgency lane = NORMAL; lane < URGENCIES; lane++) {
        p->lanes[lane].jobs = xcalloc(c->max_waiting, sizeof(*p->lanes[lane].jobs));
        cond_init(&p->lanes[lane].changed);
    }
    p->lanes[NORMAL].n_min = c->n_min;
    p->lanes[NORMAL].n_max = c->n_max;
    p->lanes[URGENT].n_max = c->n_reserved;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->has_started, NULL);
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
        r = add_worker(p, NORMAL);
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
    for (enum urgency lane = NORMAL; lane < URGENCIES; lane++)
        pthread_cond_broadcast(&p->lanes[lane].changed);
    while (p->n_starting > 0)
        pthread_cond_wait(&p->has_started, &p->lock);
    pthread_mutex_unlock(&p->lock);
    join_all(TAKE(p->workers)); /* no thread changes the list any more */
}

struct pool *pool_stop(struct pool *p)
{
    if (!p)
        return NULL;
    pool_finish(p);
    metric_gauge_fn_forget(p);
    for (enum urgency lane = NORMAL; lane < URGENCIES; lane++) {
        pthread_cond_destroy(&p->lanes[lane].changed);
        free(p->lanes[lane].jobs);
    }
    pthread_cond_destroy(&p->has_started);
    pthread_mutex_destroy(&p->lock);
    free(p->name);
    free(p);
    return NULL;
}

static size_t n_idle(const struct lane *lane)
{
    return lane->n_threads - lane->n_busy;
}

/* Adds a thread; other jobs may be submitted meanwhile. False: there is none more. The caller holds the lock. */
static bool grow(struct pool *p, enum urgency which)
{
    const struct lane *lane = &p->lanes[which];

    return !p->is_stopping && lane->n_threads < lane->n_max && add_worker(p, which) == 0;
}

static bool has_idle_normal(const struct pool *p)
{
    return n_idle(&p->lanes[NORMAL]) > p->lanes[NORMAL].n_waiting + p->lanes[URGENT].n_waiting;
}

/* Which threads to wake for a job of this urgency; idle normal threads take urgent jobs too. Threads are added while
 * every idle one has a waiting job. The caller holds the lock. */
static enum urgency make_ready(struct pool *p, enum urgency urgency)
{
    const struct lane *urgent = &p->lanes[URGENT];

    while (!has_idle_normal(p))
        if (!grow(p, NORMAL))
            break;
    if (urgency == NORMAL || has_idle_normal(p))
        return NORMAL;
    while (n_idle(urgent) <= urgent->n_waiting)
        if (!grow(p, URGENT))
            break;
    return urgent->n_threads > 0 ? URGENT : NORMAL;
}

/* Whether the queue has room for one more job. The caller holds the lock. */
static bool is_open(const struct pool *p, const struct lane *lane)
{
    return !p->is_stopping && lane->n_waiting < p->config.max_waiting;
}

static int submit(struct pool *p, enum urgency urgency, struct job job)
{
    struct lane *lane = &p->lanes[urgency];
    enum urgency woken = NORMAL;
    int r = 0;

    pthread_mutex_lock(&p->lock);
    if (is_open(p, lane))
        woken = make_ready(p, urgency);
    if (p->is_stopping)
        r = -EPIPE;
    else if (!is_open(p, lane) || p->lanes[woken].n_threads == 0)
        r = -EAGAIN;
    if (r == 0) {
        lane->jobs[(lane->first + lane->n_waiting++) % p->config.max_waiting] = job;
        pthread_cond_signal(&p->lanes[woken].changed);
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg)
{
    return submit(p, NORMAL, (struct job){ fn, arg, clock_mono_us() });
}

int pool_submit_urgent(struct pool *p, void (*fn)(void *arg), void *arg)
{
    return submit(p, URGENT, (struct job){ fn, arg, clock_mono_us() });
}

static size_t count_waiting(const struct lane *lane)
{
    return lane->n_waiting;
}

static size_t count_busy(const struct lane *lane)
{
    return lane->n_busy;
}

size_t pool_waiting(struct pool *p)
{
    return sum_under_lock(p, count_waiting);
}

size_t pool_busy(struct pool *p)
{
    return sum_under_lock(p, count_busy);
}
