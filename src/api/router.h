/* The route tables as they answer: checked, aliases spelled out, matched. Built once, then read only; any thread.
 *
 * A row answers under its path, with "{token}" as the setting identity.token and as "svc" (decision D1), and below /api
 * when it is of the SDK (decision D2).
 */
#pragma once

#include "api/route.h"
#include "api/tally.h"
#include "settings/settings.h"

struct router;

struct route_entry {
    const struct route *route;          /* NULL: of requests no route took */
    const char *path;                   /* as it answers */
    struct tally tally;
};

/* -EINVAL BAD_ROUTE naming the row and the rule it breaks. */
int router_new(const struct route *const *tables, struct settings *s, struct router **ret, struct err *e) MUST_CHECK;
struct router *router_free(struct router *r);
/* The entry and its match; NULL when there is none: ret_match says whether the path is known and with which methods. */
struct route_entry *router_find(struct router *r, enum http_method method, const char *path, struct http_match *ret_match);
size_t router_count(const struct router *r);
const struct route_entry *router_entry(const struct router *r, size_t i);
