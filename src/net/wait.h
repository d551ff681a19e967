/* Bounds the time that a worker waits for a peer; the wait ends early when the client leaves or the service stops.
 *
 * One net_wait serves all steps of an operation, so the deadline applies to the whole. Constant during its use; any
 * thread. An operation whose peer reports progress has a second deadline, which each report moves on.
 *
 *     const struct net_wait wait = net_wait_of(60000, &exchange->is_gone, &api->is_leaving);
 *     r = net_wait_fd(&wait, fd, POLLIN, e);
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>

struct budget_holder;
struct pollfd;

struct net_wait {
    int64_t total_ms, deadline_ms;           /* clock_mono_ms() */
    const atomic_bool *is_gone, *is_leaving; /* NULL: never */
    struct budget_holder *holder;            /* borrowed; pays for the memory of answers (net/pay.h); NULL: no charge */
    const _Atomic int64_t *quiet_until_ms;   /* a second deadline, which others may move on; NULL: none */
};

struct net_wait net_wait_of(int64_t total_ms, const atomic_bool *is_gone, const atomic_bool *is_leaving);
/* The same for a part of the operation that has a limit of its own. */
struct net_wait net_wait_part(const struct net_wait *w, int64_t total_ms);
/* The remaining milliseconds, at least 1. -ETIMEDOUT UPSTREAM_TIMEOUT, -ECANCELED SHUTTING_DOWN. */
int64_t net_wait_left(const struct net_wait *w, struct err *e) MUST_CHECK;
/* Waits until poll() reports one of the events or an error of the descriptor. Fails like net_wait_left(). */
int net_wait_fd(const struct net_wait *w, int fd, short events, struct err *e) MUST_CHECK;
/* The same for several descriptors; sets revents as poll() does. */
int net_wait_fds(const struct net_wait *w, struct pollfd *fds, size_t n, struct err *e) MUST_CHECK;
