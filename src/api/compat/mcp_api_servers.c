/* The tools of the configured MCP servers, as server__tool: to each caller those of its grants (identity/mcp_permit.h).
 * What a server asks during such a call is passed on to the client that made it (mcp_api_question.c). */
#include "api/compat/mcp_api_turn.h"
#include "base/log.h"
#include "identity/audit.h"
#include "identity/mcp_permit.h"
#include "mcp/host.h"
#include "net/wait.h"

#define SEPARATOR "__"

struct place {
    const char *server, *tool;
};

/* Names of servers hold no two underscores in a row. NULL: not the name of a server's tool. */
static const char *find_separator(const char *name)
{
    const char *at = strstr(name, SEPARATOR);

    return at && at > name && at[strlen(SEPARATOR)] ? at : NULL;
}

static bool read_place(struct arena *a, const char *name, struct place *ret)
{
    const char *at = find_separator(name);

    if (!at)
        return false;
    ret->server = arena_slicedup(a, (struct slice){ name, (size_t)(at - name) });
    ret->tool = at + strlen(SEPARATOR);
    return true;
}

/* ---- the list ---- */

static void write_tool(const struct mcp_api_turn *t, const char *server, const struct mcp_tool *tool,
                       struct json_writer *w)
{
    json_begin_object(w);
    json_add_string(w, "name", arena_printf(t->arena, "%s" SEPARATOR "%s", server, tool->name));
    if (tool->title && t->version >= MCP_API_2025_06_18)
        json_add_string(w, "title", tool->title);
    if (tool->description)
        json_add_string(w, "description", tool->description);
    json_add_value(w, "inputSchema", tool->input_schema);
    if (!json_is_absent(tool->output_schema) && t->version >= MCP_API_2025_06_18)
        json_add_value(w, "outputSchema", tool->output_schema);
    if (!json_is_absent(tool->annotations) && t->version >= MCP_API_2025_03_26)
        json_add_value(w, "annotations", tool->annotations);
    json_end(w);
}

static int write_tools(const struct mcp_api_turn *t, const char *server, const struct mcp_host_tools *tools,
                       struct json_writer *w, struct err *e)
{
    bool may = false;
    int r = 0;

    for (size_t i = 0; r == 0 && i < tools->n; i++) {
        if (tools->items[i].why_not)
            continue;
        r = mcp_permit_find(t->req->api->identity, t->req->caller, server, tools->items[i].tool.name, &may, e);
        if (r == 0 && may)
            write_tool(t, server, &tools->items[i].tool, w);
    }
    return r;
}

/* A server that cannot be had is left out: its next change of state tells the clients that the list has changed. */
static int list_server(struct mcp_api_turn *t, const char *server, const struct mcp_call *call, struct json_writer *w,
                       struct err *e)
{
    struct mcp_host_tools tools = { 0 };
    struct err why;
    bool may = false;
    int r = mcp_permit_find(t->req->api->identity, t->req->caller, server, NULL, &may, e);

    err_init(&why);
    if (r < 0 || !may)
        return r;
    if (mcp_host_tools(t->req->api->mcp_host, server, call, &tools, &why) < 0) {
        log_info("mcp", t->req->exchange->request.id, "tools/list without %s: %s", server, LOG_Q(why.text));
        return 0;
    }
    return write_tools(t, server, &tools, w, e);
}

/* What a call waits for; cancelled with the client's request. */
static struct net_wait wait_of(struct mcp_api_turn *t, int64_t total_ms)
{
    struct net_wait wait = net_wait_of(total_ms, &t->running.is_cancelled, &t->req->api->is_leaving);

    wait.holder = t->req->exchange->purse.holder;
    return wait;
}

static int list_tools(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const struct net_wait wait = wait_of(t, LIMIT_MCP_LIST_WAIT_MS);
    const struct mcp_call call = { .arena = t->arena, .wait = &wait };
    struct mcp_server_infos servers = { 0 };
    bool may = false;
    int r = t->req->api->mcp_host ? mcp_permit_any(t->req->api->identity, t->req->caller, &may, e) : 0;

    if (r == 0 && may)
        r = mcp_host_servers(t->req->api->mcp_host, t->arena, &servers, e);
    for (size_t i = 0; r == 0 && i < servers.n; i++)
        if (servers.items[i].server->is_enabled && !servers.items[i].needs_trust)
            r = list_server(t, servers.items[i].server->name, &call, w, e);
    return r;
}

/* ---- a call ---- */

static void on_progress(void *arg, double progress, double total, const char *message)
{
    mcp_api_progress(arg, progress, total, message);
}

static int call_server(struct mcp_api_turn *t, const struct place *place, struct json_value arguments,
                       struct mcp_result *ret, struct err *e)
{
    const struct net_wait wait = wait_of(t, LIMIT_MCP_WAIT_S * INT64_C(1000));
    char name[RUNNING_NAME_SIZE];
    const struct mcp_caller caller = { .name = name, .who = t->req->caller };
    struct mcp_call call = { .arena = t->arena,
                             .wait = &wait,
                             .on_progress = on_progress,
                             .arg = t,
                             .caller = &caller,
                             .meanwhile = audit_meanwhile };
    struct audit_use *use = NULL;
    int r = mcp_permit(t->req->api->identity, t->req->caller, place->server, place->tool, t->arena, &use, e);

    mcp_api_running_name(&t->running, name);
    call.meanwhile_arg = use;
    if (r == 0)
        r = mcp_permit_end(
            use, mcp_host_call(t->req->api->mcp_host, place->server, place->tool, arguments, &call, ret, e), e);
    return r;
}

static void write_result(const struct mcp_api_turn *t, const struct mcp_result *result, struct json_writer *w)
{
    json_add_value(w, "content", result->content);
    if (!json_is_absent(result->structured) && t->version >= MCP_API_2025_06_18)
        json_add_value(w, "structuredContent", result->structured);
    if (result->is_error)
        json_add_bool(w, "isError", true);
}

static int call_tool(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                     struct err *e)
{
    struct mcp_result result = { 0 };
    struct place place;
    int r;

    if (!t->req->api->mcp_host || !read_place(t->arena, name, &place))
        return 0;
    if (t->version == MCP_API_2025_11_25 && !json_is_absent(json_get(t->frame->params, "task")))
        return mcp_api_refuse(t, JSON_RPC_METHOD_NOT_FOUND, e, "The tool %s cannot run as a task.", name);
    r = call_server(t, &place, arguments, &result, e);
    if (r < 0 && atomic_load(&t->running.is_cancelled))
        return mcp_api_refuse(t, MCP_API_REFUSED, e, "The request was cancelled.");
    if (r < 0)
        mcp_api_write_failure(t, w, r, e);
    else
        write_result(t, &result, w);
    return 1;
}

static enum mcp_api_manner manner_of(const char *name)
{
    return find_separator(name) ? MCP_API_MAY_REQUEST : MCP_API_AT_ONCE;
}

const struct mcp_api_source mcp_api_server_tools = { .list = list_tools, .call = call_tool, .manner = manner_of };
