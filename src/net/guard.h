/* Decides which addresses the service may connect to for a caller that is not the administrator: an app, a user or a
 * model that named a URL (architecture, section 5; decision D13). Addresses that the administrator configured are not
 * checked, with one exception: none may be the service itself.
 *
 * The guard checks the address of the actual connection, after one look-up, so neither another notation nor a second
 * DNS answer can evade it. For a name with several addresses the HTTP client connects only to allowed ones;
 * guard_resolve() refuses the name if any address is not allowed. Public and loopback addresses are allowed; private
 * addresses are allowed when their host is listed; link-local, metadata, multicast, unspecified and reserved addresses
 * are never allowed, nor are their forms embedded in IPv6, nor the service's own ports. Any thread.
 *
 *     request.guard = guard;                                         in struct http_call_request (net/http_client.h)
 *     r = guard_resolve(guard, host, 5432, &wait, &addresses, e);    for clients that connect by themselves (libpq)
 */
#pragma once

#include "net/wait.h"

#include <netdb.h>
#include <netinet/in.h>

enum { GUARD_ADDRESSES = 8 /* addresses of one name that are tried */, GUARD_TEXT_CHARS = 46 /* INET6_ADDRSTRLEN */ };

enum guard_verdict { GUARD_PUBLIC, GUARD_LOOPBACK, GUARD_PRIVATE, GUARD_FORBIDDEN };

struct guard;

/* Copied. Host names or addresses that may be private; an entry with a port allows only that port; "*" allows all. */
struct guard_config {
    const char *const *private_hosts;
    size_t n_private_hosts;
    bool is_public_only; /* loopback is private too */
};

struct guard_addresses {
    struct sockaddr_storage items[GUARD_ADDRESSES];
    size_t n;
};

struct guard *guard_new(const struct guard_config *c) MUST_CHECK;
struct guard *guard_free(struct guard *g);
/* Adds a port of the service, refused on loopback and on every address of this machine. Call before the first request;
 * at most 8. */
void guard_add_own_port(struct guard *g, uint16_t port);
/* From now on every request of this process, guarded or not, to one of g's own ports is refused, because the service
 * would wait for itself. NULL: no such refusal. */
void guard_set_own(const struct guard *g);
/* -EPERM CONNECT_FAILED for an address that is the service itself. */
int guard_check_self(const char *host, const struct sockaddr *address, struct err *e) MUST_CHECK;

/* Judges an address without its host; *ret_rule names the rule ("link-local, 169.254.0.0/16"). */
enum guard_verdict guard_judge(const struct sockaddr *address, const char **ret_rule);

/* Does the host's text alone tell that it is not public? True for an address that is not, and for a name without a dot;
 * no look-up. */
bool guard_is_near(const char *host);

/* -EPERM ADDRESS_REFUSED names host and rule. */
int guard_check(const struct guard *g, const char *host, const struct sockaddr *address, struct err *e) MUST_CHECK;
/* Checks every address of a look-up; a single refused address refuses the name. */
int guard_check_all(const struct guard *g, const char *host, const struct addrinfo *answer, struct guard_addresses *ret,
                    struct err *e) MUST_CHECK;
/* Blocks during the look-up. -EPERM ADDRESS_REFUSED, and the errors of net_resolve(). */
int guard_resolve(const struct guard *g, const char *host, uint16_t port, const struct net_wait *w,
                  struct guard_addresses *ret, struct err *e) MUST_CHECK;

void guard_address_text(const struct sockaddr *address, char ret[GUARD_TEXT_CHARS]);
