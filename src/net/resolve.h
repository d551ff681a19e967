/* Resolves host names to addresses within a time limit: getaddrinfo() itself has no limit and cannot be cancelled.
 *
 * Each look-up has a thread of its own, which continues when its caller gives up; at most LIMIT_LOOKUPS run at the same
 * time. Blocks a worker; any thread.
 */
#pragma once

#include "net/wait.h"

#include <netdb.h>

/* Free *ret with freeaddrinfo(). -EHOSTUNREACH DNS_FAILED, -EAGAIN OVERLOADED, and the errors of net_wait_left(). */
int net_resolve(const char *host, uint16_t port, const struct net_wait *w, struct addrinfo **ret,
                struct err *e) MUST_CHECK;
