/* Threads that take a part of a query's work while there are fewer queries than processors, and have been for some
 * milliseconds. Any thread calls.
 *
 * Work is offered, never handed over: a helper that has not begun when the caller is through does not begin any more,
 * and the caller waits only for those that have.
 *
 *     helpers_enter(h);
 *     helpers_run(h, work, &job);          work(&job, false) here, meanwhile work(&job, true) on helpers that are idle
 *     helpers_leave(h);
 */
#pragma once

#include "base/util.h"

struct helpers;

/* is_helper: end early, between two parts of the work, when helpers_are_free() no longer holds. */
typedef void helpers_work(void *arg, bool is_helper);

/* One thread less than there are processors, up to a limit; fewer when the system has no threads for them. */
struct helpers *helpers_start(size_t n_processors) MUST_CHECK;
struct helpers *helpers_stop(struct helpers *h); /* NULL is fine, here and below: no helpers */

/* A query begins and ends. */
void helpers_enter(struct helpers *h);
void helpers_leave(struct helpers *h);

/* Are there fewer queries than processors, were there lately, and is there a helper? */
bool helpers_are_free(struct helpers *h);
void helpers_run(struct helpers *h, helpers_work *work, void *arg);
