/* Which addresses may be connected to for somebody who is not the administrator: an app, a user or a model that named a URL
 * (architecture, section 5; decision D13). Addresses the administrator configured do not go through it, but for one rule: none is the service itself.
 *
 * Judged is the address a connection is really made to, after one look-up, so no notation and no second DNS answer gets round it. Of a name
 * with several addresses the HTTP client connects to those that are allowed; guard_resolve() refuses the name for one that is not.
 * Public and loopback addresses are allowed; private ones when their host is listed; link-local, metadata, multicast, unspecified and
 * reserved ones never, nor the same inside IPv6; nor the service's own ports. One a process; any thread.
 *
 *     ask.guard = guard;                                          src/net/http_client.h
 *     r = guard_resolve(guard, host, 5432, &wait, &addresses, e);        for clients that connect by themselves (libpq)
 */
#pragma once

#include "net/wait.h"

#include <netdb.h>
#include <netinet/in.h>

enum { GUARD_ADDRESSES = 8 /* of one name that are tried */, GUARD_TEXT_CHARS = 46 /* INET6_ADDRSTRLEN */ };

enum guard_verdict { GUARD_PUBLIC, GUARD_LOOPBACK, GUARD_PRIVATE, GUARD_FORBIDDEN };

struct guard;

/* Copied: host names or addresses that may be private, with a port for that port only; "*" stands for all. */
struct guard_config { const char *const *private_hosts; size_t n_private_hosts; };

struct guard_addresses { struct sockaddr_storage items[GUARD_ADDRESSES]; size_t n; };

struct guard *guard_new(const struct guard_config *c) MUST_CHECK;
struct guard *guard_free(struct guard *g);
/* The service listens there: refused on loopback and on every address of this machine. Before the first request; 8 at most. */
void guard_add_own_port(struct guard *g, uint16_t port);
/* From now on no request of this process goes to g's own ports, guarded or not: it would wait for itself. NULL: none is kept from them. */
void guard_set_own(const struct guard *g);
/* -EPERM CONNECT_FAILED for an address that is the service itself. */
int guard_check_self(const char *host, const struct sockaddr *address, struct err *e) MUST_CHECK;

/* What an address is by itself; *ret_rule says why ("link-local, 169.254.0.0/16"). */
enum guard_verdict guard_judge(const struct sockaddr *address, const char **ret_rule);

/* -EPERM ADDRESS_REFUSED names host and rule. */
int guard_check(const struct guard *g, const char *host, const struct sockaddr *address, struct err *e) MUST_CHECK;
/* All of a look-up's answer: one address that is refused refuses the name. */
int guard_check_all(const struct guard *g, const char *host, const struct addrinfo *answer, struct guard_addresses *ret, struct err *e) MUST_CHECK;
/* Blocks for the look-up. -EPERM ADDRESS_REFUSED, and as net_resolve(). */
int guard_resolve(const struct guard *g, const char *host, uint16_t port, const struct net_wait *w, struct guard_addresses *ret, struct err *e) MUST_CHECK;

void guard_address_text(const struct sockaddr *address, char ret[GUARD_TEXT_CHARS]);
