/* The threads of turns: at most LIMIT_TURNS turns run at once, up to LIMIT_TURNS_WAITING wait and are told their place.
 *
 * A turn is one job that blocks. Any thread but the loop's submits; on_place is called on any thread, with no lock
 * held, when the place of a waiting turn has changed (1: next), and never after run has begun.
 *
 *     r = turn_pool_submit(pool, &(struct turn_job){ .run = run, .on_place = place, .arg = turn }, e);
 */
#pragma once

#include "base/err.h"

struct pool;
struct turn_pool;

struct turn_job {
    void (*run)(void *arg);
    void (*on_place)(void *arg, size_t place); /* NULL: is not told */
    void *arg;
};

struct turn_pool_config {
    void (*on_thread_end)(void *arg); /* for example to close the thread's connection to the store; NULL: none */
    void *arg;
};

int turn_pool_start(const struct turn_pool_config *c, struct turn_pool **ret, struct err *e) MUST_CHECK;
/* No turn begins any more: waiting ones are run with their owner's cancel set, so owners cancel all turns first.
 * Returns when the last has ended. */
struct turn_pool *turn_pool_stop(struct turn_pool *p);
/* The job is copied. -EAGAIN TOO_MANY_TURNS when LIMIT_TURNS_WAITING wait; -EPIPE SHUTTING_DOWN. */
int turn_pool_submit(struct turn_pool *p, const struct turn_job *job, struct err *e) MUST_CHECK;
/* Threads for the calls of tools that run beside their turn; borrowed. */
struct pool *turn_pool_calls(struct turn_pool *p);
size_t turn_pool_running(struct turn_pool *p);
size_t turn_pool_waiting(struct turn_pool *p);
