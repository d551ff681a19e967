#include "base/queue.h"
#include "base/clock.h"
#include "base/cond.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed;
    size_t max_items, first, n;
    void *items[]; /* ring: n of them from first on */
};

struct queue *queue_new(size_t max_items)
{
    struct queue *q;

    assert(max_items > 0 && max_items <= SIZE_MAX / sizeof(void *) / 2);
    q = xcalloc(1, sizeof(*q) + max_items * sizeof(void *));
    q->max_items = max_items;
    pthread_mutex_init(&q->lock, NULL);
    cond_init(&q->changed);
    return q;
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}

int queue_push(struct queue *q, void *item)
{
    int r = 0;

    pthread_mutex_lock(&q->lock);
    if (q->is_closed) {
        r = -EPIPE;
    } else if (q->n == q->max_items) {
        r = -EAGAIN;
    } else {
        q->items[(q->first + q->n++) % q->max_items] = item;
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* Waits until there is an item, the queue is closed, or the time is over. */
static void wait_for_change(struct queue *q, int timeout_ms)
{
    int64_t until_us = clock_mono_us() + (int64_t)timeout_ms * 1000;
    bool is_over = false;

    while (q->n == 0 && !q->is_closed && !is_over) {
        if (timeout_ms < 0)
            pthread_cond_wait(&q->changed, &q->lock);
        else
            is_over = !cond_wait_until(&q->changed, &q->lock, until_us);
    }
}

int queue_pop(struct queue *q, int timeout_ms, void **ret_item)
{
    int r = 0;

    pthread_mutex_lock(&q->lock);
    if (q->n == 0 && timeout_ms != 0)
        wait_for_change(q, timeout_ms);
    if (q->n > 0) {
        *ret_item = q->items[q->first];
        q->first = (q->first + 1) % q->max_items;
        q->n--;
    } else {
        r = q->is_closed ? -EPIPE : -ETIMEDOUT;
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->is_closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}
