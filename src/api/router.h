/* The route tables, checked, with their aliases expanded, for matching. Built once, then read only; any thread.
 *
 * A row answers under its path, with "{token}" replaced by the setting identity.token and by "svc" (decision D1), and
 * also below /api when the row has is_sdk (decision D2).
 */
#pragma once

#include "api/route.h"
#include "api/tally.h"
#include "settings/settings.h"

struct router;

struct route_entry {
    const struct route *route; /* NULL: requests that matched no route */
    const char *path;          /* with aliases expanded */
    struct tally tally;
};

/* -EINVAL BAD_ROUTE naming the row and the rule it breaks. */
int router_new(const struct route *const *tables, struct settings *s, struct router **ret, struct err *e) MUST_CHECK;
struct router *router_free(struct router *r);
/* The entry and its match; NULL when there is none: ret_match then says whether the path is known and with which
 * methods. */
struct route_entry *router_find(struct router *r, enum http_method method, const char *path,
                                struct http_match *ret_match);
/* The form of a request's errors. A request without a route (unknown path or method, refused sender) gets the form of
 * its path. entry: the request's route, or NULL. */
const struct error_form *router_error_form(struct router *r, const struct route_entry *entry,
                                           const struct http_request *req);
size_t router_count(const struct router *r);
const struct route_entry *router_entry(const struct router *r, size_t i);
