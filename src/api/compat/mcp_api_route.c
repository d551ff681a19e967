/* A tool that is a route (api/inner.h), with the caller of the MCP request and its cancel. */
#include "api/compat/mcp_api_turn.h"
#include "api/inner.h"

static struct inner_route inner_of(const struct mcp_api_route *which)
{
    return (struct inner_route){ which->table, which->method, which->path, which->param };
}

const struct route *mcp_api_find_route(const struct mcp_api_route *which)
{
    const struct inner_route inner = inner_of(which);

    return inner_find_route(&inner);
}

static void attach(void *arg, atomic_bool *is_gone)
{
    struct mcp_api_turn *t = arg;

    mcp_api_running_attach(t->req->api->mcp_api, &t->running, is_gone);
}

int mcp_api_call_route(struct mcp_api_turn *t, const struct mcp_api_route *which, struct json_value arguments,
                       struct slice *ret, struct err *e)
{
    const struct inner_route inner = inner_of(which);
    const struct inner_call call = { .api = t->req->api,
                                     .caller = t->req->caller,
                                     .holder = t->req->exchange->purse.holder,
                                     .trace = t->req->trace,
                                     .arena = t->arena,
                                     .attach = attach,
                                     .arg = t };

    return inner_run(&call, &inner, arguments, ret, e);
}
