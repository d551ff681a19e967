/* Which Host and Origin headers the service accepts (decision D2): the defence against pages of other sites and against
 * DNS rebinding. The rules are read once; any thread.
 *
 *     if (!host_is_allowed(rules, req)) ... 403 HOST_NOT_ALLOWED
 */
#pragma once

#include "http/http.h"
#include "settings/settings.h"

struct host_rules;

struct host_rules *host_rules_new(struct settings *s) MUST_CHECK;
struct host_rules *host_rules_free(struct host_rules *rules);
/* Adds an address that the service has bound. Call before the first request. */
void host_rules_add_address(struct host_rules *rules, const char *address, uint16_t port);
/* True for exactly one Host header with a loopback name, a loopback address or a configured name; the port does not
 * matter. A page of another site cannot send such a Host: the header holds that site's own name, even when DNS resolves
 * the name to this machine. */
bool host_is_allowed(const struct host_rules *rules, const struct http_request *req);
/* True for the Origin of the service's own pages: http:// and a bound address with its port, or `localhost` when no
 * other program can answer under that name; or the Origin that equals the request's Host, when that Host is a
 * configured name. Another program may serve its pages on the other addresses of 127.0.0.0/8. */
bool origin_is_own(const struct host_rules *rules, const struct http_request *req);
/* True without an Origin, for the service's own, and for a configured one. "null" is never allowed. */
bool origin_is_allowed(const struct host_rules *rules, const struct http_request *req);

/* Both rules, for requests that came over TCP: -EPERM HOST_NOT_ALLOWED, ORIGIN_NOT_ALLOWED. */
int host_check(const struct host_rules *rules, const struct http_request *req, struct err *e) MUST_CHECK;
/* Adds the CORS headers for the Origin that host_check() accepted. */
void host_add_cors(struct http_exchange *x);
