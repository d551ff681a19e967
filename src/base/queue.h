/* A bounded first-in first-out queue of pointers between threads (mutex and condition).
 *
 * Owned by its creator; the callers own the items. queue_close() wakes all waiting threads: pushes fail; pops return
 * the remaining items and then fail.
 */
#pragma once

#include "base/util.h"

struct queue;

struct queue *queue_new(size_t max_items) MUST_CHECK;
struct queue *queue_free(struct queue *q);              /* does not free items: drain the queue first */
int queue_push(struct queue *q, void *item) MUST_CHECK; /* 0, -EAGAIN when full, -EPIPE when closed */
/* Waits at most timeout_ms (-1 = for ever). 0, -ETIMEDOUT, -EPIPE when closed and empty. */
int queue_pop(struct queue *q, int timeout_ms, void **ret_item) MUST_CHECK;
void queue_close(struct queue *q);
