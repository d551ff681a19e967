#include "face/realtime_private.h"

#include "base/clock.h"
#include "base/cond.h"

#include <stdlib.h>

void rt_queue_init(struct rt_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    cond_init(&q->changed);
    STAILQ_INIT(&q->items);
}

struct rt_item *rt_item_new(enum rt_kind kind)
{
    struct rt_item *item = xcalloc(1, sizeof(*item));

    item->kind = kind;
    return item;
}

void rt_item_free(struct rt_item *item)
{
    if (item && item->change)
        rt_shape_free(item->change->shape);
    if (item)
        arena_free(item->arena);
    free(item);
}

void rt_queue_clear(struct rt_queue *q)
{
    struct rt_item *item;

    while ((item = STAILQ_FIRST(&q->items))) {
        STAILQ_REMOVE_HEAD(&q->items, links);
        rt_item_free(item);
    }
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

bool rt_queue_push(struct rt_queue *q, struct rt_item *item, size_t max)
{
    bool is_taken;

    pthread_mutex_lock(&q->lock);
    is_taken = max == 0 || (q->n < max && !q->is_closed);
    if (is_taken) {
        STAILQ_INSERT_TAIL(&q->items, item, links);
        q->n++;
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    if (!is_taken)
        rt_item_free(item);
    return is_taken;
}

struct rt_item *rt_queue_pop(struct rt_queue *q, int64_t wait_ms, bool *ret_is_closed)
{
    int64_t until_us = clock_mono_us() + wait_ms * 1000;
    struct rt_item *item;

    pthread_mutex_lock(&q->lock);
    while (STAILQ_EMPTY(&q->items) && !q->is_closed && cond_wait_until(&q->changed, &q->lock, until_us)) {
    }
    *ret_is_closed = q->is_closed;
    item = q->is_closed ? NULL : STAILQ_FIRST(&q->items);
    if (item) {
        STAILQ_REMOVE_HEAD(&q->items, links);
        q->n--;
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}

void rt_queue_close(struct rt_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->is_closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}
