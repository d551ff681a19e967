#include "vector/engine/helpers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/thread.h"
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SPIN_US = 30,   /* how long a caller looks for the last helper before it sleeps: about as long as waking takes */
    CROWDED_MS = 5, /* how long queries count as many after there were as many as processors */
};

/* On the stack of its caller. */
struct offer {
    helpers_work *work;
    void *arg;
    atomic_size_t n_working; /* changed under the lock */
    size_t n_wanted;         /* helpers that may still begin; under the lock */
};

struct helpers {
    size_t n_processors, n_threads;
    pthread_t threads[LIMIT_VECTOR_HELPERS];
    atomic_size_t n_queries;
    _Atomic int64_t crowded_ms; /* when there were as many queries as processors; 0: never */
    pthread_mutex_t lock;       /* of the members below */
    pthread_cond_t is_changed, is_left;
    size_t n_idle;
    struct offer *offer; /* borrowed; NULL: none is open */
    bool is_stopping;
};

/* --- a helper --- */

/* Under the lock, which is released meanwhile. */
static void take(struct helpers *h, struct offer *offer)
{
    offer->n_working++;
    if (--offer->n_wanted == 0)
        h->offer = NULL;
    h->n_idle--;
    pthread_mutex_unlock(&h->lock);
    offer->work(offer->arg, true);
    pthread_mutex_lock(&h->lock);
    h->n_idle++;
    if (h->offer == offer)
        h->offer = NULL; /* nothing is left to begin */
    offer->n_working--;
    pthread_cond_broadcast(&h->is_left);
}

static void *helper_main(void *arg)
{
    struct helpers *h = arg;

    pthread_mutex_lock(&h->lock);
    while (!h->is_stopping) {
        if (h->offer)
            take(h, h->offer);
        else
            pthread_cond_wait(&h->is_changed, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

struct helpers *helpers_start(size_t n_processors)
{
    struct helpers *h = xcalloc(1, sizeof(*h));
    size_t n_wanted = MIN(n_processors - 1, (size_t)LIMIT_VECTOR_HELPERS);

    h->n_processors = n_processors;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->is_changed, NULL);
    pthread_cond_init(&h->is_left, NULL);
    pthread_mutex_lock(&h->lock);
    while (h->n_threads < n_wanted && thread_start(&h->threads[h->n_threads], "vector-helper", helper_main, h) == 0)
        h->n_threads++;
    h->n_idle = h->n_threads;
    pthread_mutex_unlock(&h->lock);
    return h;
}

struct helpers *helpers_stop(struct helpers *h)
{
    if (!h)
        return NULL;
    pthread_mutex_lock(&h->lock);
    h->is_stopping = true;
    pthread_cond_broadcast(&h->is_changed);
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < h->n_threads; i++)
        pthread_join(h->threads[i], NULL);
    pthread_cond_destroy(&h->is_changed);
    pthread_cond_destroy(&h->is_left);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return NULL;
}

/* --- a query --- */

void helpers_enter(struct helpers *h)
{
    if (h && atomic_fetch_add(&h->n_queries, 1) + 1 >= h->n_processors)
        atomic_store_explicit(&h->crowded_ms, clock_mono_ms(), memory_order_relaxed);
}

void helpers_leave(struct helpers *h)
{
    if (h)
        atomic_fetch_sub(&h->n_queries, 1);
}

/* Between the queries of clients that together keep all processors busy, a helper would only be in their way. */
static bool was_crowded(struct helpers *h)
{
    int64_t crowded_ms = atomic_load_explicit(&h->crowded_ms, memory_order_relaxed);

    return crowded_ms > 0 && clock_mono_ms() - crowded_ms <= CROWDED_MS;
}

static size_t n_free(struct helpers *h)
{
    size_t n_queries = atomic_load_explicit(&h->n_queries, memory_order_relaxed);

    return n_queries < h->n_processors && !was_crowded(h) ? MIN(h->n_processors - n_queries, h->n_threads) : 0;
}

bool helpers_are_free(struct helpers *h)
{
    return h && n_free(h) > 0;
}

/* false: the helpers are busy. */
static bool open_offer(struct helpers *h, struct offer *offer)
{
    bool is_open;

    pthread_mutex_lock(&h->lock);
    offer->n_wanted = MIN(n_free(h), h->n_idle);
    is_open = !h->offer && offer->n_wanted > 0;
    if (is_open)
        h->offer = offer;
    if (is_open && offer->n_wanted == 1)
        pthread_cond_signal(&h->is_changed);
    else if (is_open)
        pthread_cond_broadcast(&h->is_changed);
    pthread_mutex_unlock(&h->lock);
    return is_open;
}

/* The last parts of several threads end at nearly the same time: sleeping would take longer. */
static void spin(const struct offer *offer)
{
    int64_t until_us = clock_mono_us() + SPIN_US;

    while (atomic_load(&offer->n_working) > 0 && clock_mono_us() < until_us)
        ;
}

static void close_offer(struct helpers *h, struct offer *offer)
{
    spin(offer);
    pthread_mutex_lock(&h->lock);
    if (h->offer == offer)
        h->offer = NULL;
    while (atomic_load(&offer->n_working) > 0)
        pthread_cond_wait(&h->is_left, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

void helpers_run(struct helpers *h, helpers_work *work, void *arg)
{
    struct offer offer = { .work = work, .arg = arg };
    bool is_open = helpers_are_free(h) && open_offer(h, &offer);

    work(arg, false);
    if (is_open)
        close_offer(h, &offer);
}
