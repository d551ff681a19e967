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
void host_rules_set_port(struct host_rules *rules, uint16_t port);
/* One Host header with a loopback name, a loopback address or a configured name; the port does not matter. */
bool host_is_allowed(const struct host_rules *rules, const struct http_request *req);
/* The Origin of a page of the service itself: that of the Host asked, or http://<loopback name>:<our port>. */
bool origin_is_own(const struct host_rules *rules, const struct http_request *req);
/* No Origin; that of the Host asked; http://<loopback name>:<our port>; or a configured one. "null" is none of them. */
bool origin_is_allowed(const struct host_rules *rules, const struct http_request *req);

/* Both rules, for requests that came over TCP: -EPERM HOST_NOT_ALLOWED, ORIGIN_NOT_ALLOWED. */
int host_check(const struct host_rules *rules, const struct http_request *req, struct err *e) MUST_CHECK;
/* For the Origin that host_check() let pass. */
void host_add_cors(struct http_exchange *x);
