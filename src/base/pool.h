/* Worker threads that run jobs as plain blocking code.
 *
 * pool_start() makes n_min threads; up to n_max are added while jobs wait and none is idle, and leave again after a
 * minute of idleness. At most max_waiting jobs wait: beyond that pool_submit() says -EAGAIN and the caller answers
 * OVERLOADED. Urgent jobs have a queue of their own, run before the others, and have n_reserved threads that run nothing else: so they
 * run also while all other threads are kept waiting. pool_stop() stops taking jobs, runs what waits, joins. Any thread may submit.
 */
#pragma once

#include "base/err.h"

struct pool;

struct pool_config {
    const char *name;                   /* "short", "long": thread names and the metrics label */
    size_t n_min, n_max, max_waiting;   /* max_waiting: of each queue */
    size_t n_reserved;                  /* threads beyond n_max for urgent jobs, made when they are needed */
    bool must_not_wait;                 /* a job that waited for anything but the store is logged and counted (`hearth_pool_stall_seconds`) */
    int64_t idle_ms;                    /* an added thread leaves after this; 0 = a minute */
    void (*on_thread_end)(void *arg);   /* optional: e.g. close this thread's database connection */
    void *arg;
};

int pool_start(const struct pool_config *c, struct pool **ret, struct err *e) MUST_CHECK;
/* The same, but the pool stays: later submits are told -EPIPE. For pools that others still know; one caller. */
void pool_finish(struct pool *p);
struct pool *pool_stop(struct pool *p);                 /* NULL is fine; returns NULL */
int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg) MUST_CHECK;   /* 0, -EAGAIN full, -EPIPE stopping */
int pool_submit_urgent(struct pool *p, void (*fn)(void *arg), void *arg) MUST_CHECK;    /* the same */
size_t pool_waiting(struct pool *p);
size_t pool_busy(struct pool *p);
size_t pool_threads(struct pool *p);
