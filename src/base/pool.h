/* Worker threads that run jobs as plain blocking code.
 *
 * pool_start() makes n_min threads. While jobs wait and no thread is idle, threads are added, up to n_max; an added
 * thread ends after a minute of idleness. At most max_waiting jobs wait: beyond that pool_submit() returns -EAGAIN and
 * the caller answers OVERLOADED. Urgent jobs have a queue of their own and run before the others. n_reserved threads
 * run only urgent jobs, so these run even while all other threads are blocked. pool_stop() stops accepting jobs, runs
 * the waiting jobs and joins the threads. Any thread may submit.
 */
#pragma once

#include "base/err.h"

struct pool;

struct pool_config {
    const char *name;                 /* "short", "long": thread names and the metrics label */
    size_t n_min, n_max, max_waiting; /* max_waiting: of each queue */
    size_t n_reserved;                /* threads beyond n_max for urgent jobs, made when needed */
    bool must_not_wait;               /* a job that waited for anything except the store is logged and counted
                                         (`hearth_pool_stall_seconds`) */
    size_t stack_bytes;               /* of each thread; 0: the usual size */
    int64_t idle_ms;                  /* an added thread ends after this idle time; 0 = a minute */
    void (*on_thread_end)(void *arg); /* optional, for example to close this thread's database connection */
    void *arg;
};

int pool_start(const struct pool_config *c, struct pool **ret, struct err *e) MUST_CHECK;
/* Like pool_stop(), but the pool is not freed: later submits return -EPIPE. For pools to which other objects still
 * point; only one caller. */
void pool_finish(struct pool *p);
struct pool *pool_stop(struct pool *p);                                       /* NULL is fine; returns NULL */
int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg) MUST_CHECK; /* 0, -EAGAIN full, -EPIPE stopping */
int pool_submit_urgent(struct pool *p, void (*fn)(void *arg), void *arg) MUST_CHECK; /* the same */
size_t pool_waiting(struct pool *p);
size_t pool_busy(struct pool *p);
