/* A route that this service calls itself: for tools of MCP clients and of model agents. The arguments are read by the
 * route's tables, and its handler runs with the given caller, on an exchange of its own. Permission, budget, rules and
 * the size of the body are those of the route.
 *
 * Blocks a worker. Only for routes whose handlers answer with JSON before they return.
 *
 *     static const struct inner_route route = { activity_routes, HTTP_PATCH, "/activities/:id", "id" };
 *     r = inner_run(&(struct inner_call){ .api = api, .caller = caller, .arena = arena }, &route, arguments, &json, e);
 */
#pragma once

#include "api/route.h"

#include <stdatomic.h>

struct inner_route {
    const struct route *table; /* ended as route tables are */
    enum http_method method;
    const char *path;
    const char *param; /* the argument that becomes the parameter of the path; NULL: there is none */
};

struct inner_call {
    struct api *api;
    const struct caller *caller;
    struct budget_holder *holder; /* borrowed; NULL: nobody pays */
    const struct trace *trace;    /* NULL: none */
    struct arena *arena;          /* receives the answer */
    int64_t trigger_depth;        /* of the request */
    /* While the handler runs, *is_gone may be set to end it; then it is called with NULL. NULL: nobody ends it. */
    void (*attach)(void *arg, atomic_bool *is_gone);
    void *arg;
};

const struct route *inner_find_route(const struct inner_route *which);
/* The answer's JSON text. -E2BIG BODY_TOO_LARGE, -EFBIG REPLY_TOO_LARGE, and the errors of the route. */
int inner_run(const struct inner_call *c, const struct inner_route *which, struct json_value arguments,
              struct slice *ret, struct err *e) MUST_CHECK;
