/* Names of hosts become addresses, within a time limit: getaddrinfo() itself has none and cannot be called off.
 *
 * Each look-up has a thread of its own, which goes on without its caller when that gives up; LIMIT_LOOKUPS run at a time. Blocks a worker; any
 * thread.
 */
#pragma once

#include "net/wait.h"

#include <netdb.h>

/* ret: freeaddrinfo(). -EHOSTUNREACH DNS_FAILED, -EAGAIN OVERLOADED, and as net_wait_left(). */
int net_resolve(const char *host, uint16_t port, const struct net_wait *w, struct addrinfo **ret, struct err *e) MUST_CHECK;

/* The look-up in place of getaddrinfo(), for tests; NULL: getaddrinfo(). Before the first call. */
typedef int net_lookup_fn(const char *host, const char *service, const struct addrinfo *wanted, struct addrinfo **ret);
void net_resolve_with(net_lookup_fn *fn);
