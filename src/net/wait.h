/* How long a worker waits for a peer, and what ends the wait before: the client left, the service stops.
 *
 * One for all steps of an operation, so that the deadline is that of the whole. Not changed while it is used; any thread.
 *
 *     const struct net_wait wait = net_wait_of(60000, &exchange->is_gone, &api->is_leaving);
 *     r = net_wait_fd(&wait, fd, POLLIN, e);
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>

struct budget_holder;

struct net_wait {
    int64_t total_ms, deadline_ms;      /* clock_mono_ms() */
    const atomic_bool *is_gone, *is_leaving;    /* NULL: never */
    struct budget_holder *holder;       /* borrowed; pays for the memory that answers take (net/pay.h); NULL: nobody */
};

struct net_wait net_wait_of(int64_t total_ms, const atomic_bool *is_gone, const atomic_bool *is_leaving);
/* The same for a part of it that has a limit of its own. */
struct net_wait net_wait_part(const struct net_wait *w, int64_t total_ms);
/* Milliseconds that are left, at least 1. -ETIMEDOUT UPSTREAM_TIMEOUT, -ECANCELED SHUTTING_DOWN. */
int64_t net_wait_left(const struct net_wait *w, struct err *e) MUST_CHECK;
/* Until poll() has one of the events, which may be an error of the descriptor. Fails as net_wait_left(). */
int net_wait_fd(const struct net_wait *w, int fd, short events, struct err *e) MUST_CHECK;
