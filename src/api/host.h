/* Which Host and which Origin may talk to the service (decision D2): the defence against pages of other sites and against
 * DNS rebinding. Rules are read once; any thread.
 *
 *     if (!host_is_allowed(rules, req)) ... 403 HOST_NOT_ALLOWED
 */
#pragma once

#include "http/http.h"
#include "settings/settings.h"

struct host_rules;

struct host_rules *host_rules_new(struct settings *s) MUST_CHECK;
struct host_rules *host_rules_free(struct host_rules *rules);
/* An address that the service has bound. Before the first request. */
void host_rules_add_address(struct host_rules *rules, const char *address, uint16_t port);
/* One Host header with a loopback name, a loopback address or a configured name; the port does not matter. A page of another site cannot have
 * such a Host: its own name stands there, also after DNS has led that name to this machine. */
bool host_is_allowed(const struct host_rules *rules, const struct http_request *req);
/* The Origin of a page of the service itself: http:// and a bound address with its port, or `localhost` when nobody else can answer under that name;
 * or that of the Host asked, when that is a configured name. Another program may serve its pages on the other addresses of 127.0.0.0/8. */
bool origin_is_own(const struct host_rules *rules, const struct http_request *req);
/* No Origin; the service's own; or a configured one. "null" is none of them. */
bool origin_is_allowed(const struct host_rules *rules, const struct http_request *req);

/* Both rules, for requests that came over TCP: -EPERM HOST_NOT_ALLOWED, ORIGIN_NOT_ALLOWED. */
int host_check(const struct host_rules *rules, const struct http_request *req, struct err *e) MUST_CHECK;
/* For the Origin that host_check() let pass. */
void host_add_cors(struct http_exchange *x);
