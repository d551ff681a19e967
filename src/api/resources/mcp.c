/* MCP servers and their tools for apps (specification, "MCP", "MCP server and tool"; decision D12; docs/mcp.md). An app
 * sees the servers and tools that its grant of mcp.tools covers (identity/mcp_permit.h). */
#include "api/api.h"
#include "api/resources/mcp.h"
#include "api/routes.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/mcp_permit.h"

struct servers_query {
    const char *provider;
};
struct execute_body {
    struct json_value arguments;
};

static const char *const providers[] = { "local", "remote", NULL };
static const char *const providers_or_all[] = { "local", "remote", "all", NULL };

static const struct field servers_fields[] = {
    FIELD_STRING(struct servers_query, provider, "provider", .one_of = providers_or_all, .def_str = "all",
                 .help = "local: servers that run as programs of this machine; remote: those behind a URL"),
    FIELD_END,
};
static const struct field provider_fields[] = {
    FIELD_STRING(struct servers_query, provider, "provider", .one_of = providers, .def_str = "local",
                 .help = "where the server is"),
    FIELD_END,
};
static const struct field execute_fields[] = {
    FIELD_OBJECT(struct execute_body, arguments, "arguments", .help = "as the tool's input_schema says; absent: {}"),
    FIELD_END,
};

static const char *const status_names[] = { "stopped", "starting", "running", "error", NULL };

static const struct field server_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("display_name"),
    SHAPE_STRING("description"),
    SHAPE_STRING("server_type", .help = "stdio, http or sse"),
    SHAPE_BOOL("enabled"),
    SHAPE_STRING("provider", .one_of = providers),
    SHAPE_STRINGS("tags"),
    SHAPE_STRING("status", .one_of = status_names),
    FIELD_END,
};
static const struct field tool_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("description"),
    SHAPE_OBJECT("input_schema", NULL, .help = "JSON Schema of the arguments"),
    FIELD_END,
};
static const struct field block_shape[] = {
    SHAPE_STRING("type", .help = "text, image, audio, resource, resource_link; others are passed on as they are"),
    SHAPE_STRING("text", .flags = FIELD_OPTIONAL),
    FIELD_END,
};
const struct field mcp_result_shape[] = {
    SHAPE_LIST("content", block_shape),
    SHAPE_BOOL("isError", .help = "true: the tool itself failed, and its content says why"),
    SHAPE_OBJECT("structuredContent", NULL, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field servers_answer[] = { SHAPE_LIST("servers", server_shape), FIELD_END };
static const struct field tools_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_STRING("provider", .one_of = providers),
    SHAPE_LIST("tools", tool_shape),
    FIELD_END,
};
static const struct field execute_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_STRING("tool"),
    SHAPE_STRING("provider", .one_of = providers),
    SHAPE_OBJECT("result", mcp_result_shape),
    FIELD_END,
};

/* ---- shared with the management routes ---- */

const char *mcp_provider_of(const struct mcp_server *server)
{
    return mcp_server_is_local(server) ? "local" : "remote";
}

void mcp_write_server(struct json_writer *w, const struct mcp_server *s)
{
    json_add_string(w, "name", s->name);
    json_add_string(w, "display_name", s->display_name);
    json_add_string(w, "description", s->description);
    json_add_string(w, "server_type", s->type);
    json_add_bool(w, "enabled", s->is_enabled);
    json_add_string(w, "provider", mcp_provider_of(s));
    json_add_strings(w, "tags", s->tags.items, s->tags.n);
}

struct mcp_call *mcp_call_of(struct request *req)
{
    struct net_wait *wait = ARENA_NEW(req->arena, struct net_wait);
    struct mcp_call *call = ARENA_NEW(req->arena, struct mcp_call);
    struct mcp_caller *caller = ARENA_NEW(req->arena, struct mcp_caller);

    *wait = net_wait_of(settings_ms(req->api->settings, SETTING_MCP_CALL_S), &req->exchange->is_gone,
                        &req->api->is_leaving);
    wait->holder = req->exchange->purse.holder;
    *caller = (struct mcp_caller){ .name = req->caller->scope, .who = req->caller };
    *call = (struct mcp_call){ .arena = req->arena, .wait = wait, .caller = caller };
    return call;
}

void mcp_write_result(struct json_writer *w, const struct mcp_result *result)
{
    json_begin_object_as(w, "result");
    json_add_value(w, "content", result->content);
    if (!json_is_absent(result->structured))
        json_add_value(w, "structuredContent", result->structured);
    json_add_bool(w, "isError", result->is_error);
    json_end(w);
}

static struct json_value masked(struct arena *a, struct json_value map)
{
    struct json_value ret = { NULL, 0 }, value;
    struct json_iter it = json_iter(map);
    struct json_writer w;
    struct slice name;
    struct buf out;

    buf_init(&out, 2 * LIMIT_MCP_DEFINITION);
    json_write_init(&w, &out);
    json_begin_object(&w);
    while (json_next(&it, &name, &value))
        json_add_string(&w, arena_slicedup(a, name), "****");
    json_end(&w);
    return json_parse(a, slice_of(buf_to_arena(&out, a)), &ret, NULL) < 0 ? (struct json_value){ NULL, 0 } : ret;
}

int mcp_audit(const struct request *req, const char *action, const struct mcp_server *server, struct err *e)
{
    struct mcp_server shown = *server;
    struct json_writer w;
    struct buf out;
    int r;

    shown.env = masked(req->arena, server->env);
    shown.headers = masked(req->arena, server->headers);
    shown.client_secret = server->client_secret ? "****" : NULL;
    shown.private_key = server->private_key ? "****" : NULL;
    shown.identity_client_secret = server->identity_client_secret ? "****" : NULL;
    buf_init(&out, 2 * LIMIT_MCP_DEFINITION); /* a mask may be longer than its value */
    json_write_init(&w, &out);
    mcp_server_write(&shown, &w);
    r = audit_append_json(req->api->identity, req->caller->actor, action, server->name, buf_slice(&out), e);
    buf_clear(&out);
    return r;
}

/* ---- GET /sdk/mcp/servers ---- */

static void write_server(struct json_writer *w, const struct mcp_server_info *info)
{
    json_begin_object(w);
    mcp_write_server(w, info->server);
    json_add_string(w, "status", mcp_status_name(info->status));
    json_end(w);
}

/* An app that was granted parts of mcp.tools sees the servers of these parts; mcp.servers alone shows all of them. */
static int may_see(const struct request *req, const struct mcp_server *s, bool *ret, struct err *e)
{
    bool has_any = false;
    int r = mcp_permit_any(req->api->identity, req->caller, &has_any, e);

    *ret = true;
    return r < 0 || !has_any ? r : mcp_permit_find(req->api->identity, req->caller, s->name, NULL, ret, e);
}

static int list_servers(struct request *req, struct response *res, struct err *e)
{
    const struct servers_query *query = req->query;
    bool is_all = strcmp(query->provider, "all") == 0, is_shown;
    struct mcp_server_infos infos;
    int r = mcp_host_servers(req->api->mcp_host, req->arena, &infos, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "servers");
    for (size_t i = 0; i < infos.n; i++) {
        const struct mcp_server *s = infos.items[i].server;

        if (!is_all && strcmp(query->provider, mcp_provider_of(s)) != 0)
            continue;
        r = may_see(req, s, &is_shown, e);
        if (r < 0)
            return r;
        if (is_shown)
            write_server(&res->json, &infos.items[i]);
    }
    json_end(&res->json);
    return 0;
}

/* ---- tools ---- */

static int find_server(struct request *req, struct mcp_server_info *ret, struct err *e)
{
    const struct servers_query *query = req->query;
    const char *name = req->params[0];
    int r = mcp_host_server(req->api->mcp_host, name, req->arena, ret, e);

    if (r == 0 && strcmp(query->provider, mcp_provider_of(ret->server)) != 0)
        r = err_set(e, -ENOENT, "SERVER_NOT_FOUND", "The MCP server %.64s is %s: ask with provider=%s.", name,
                    mcp_provider_of(ret->server), mcp_provider_of(ret->server));
    return r;
}

/* An unknown server is told after the permission, so that an app cannot find out names. */
static int permit(struct request *req, const char *tool, struct audit_use **ret, struct err *e)
{
    return mcp_permit(req->api->identity, req->caller, req->params[0], tool, req->arena, ret, e);
}

static void write_tool(struct json_writer *w, const struct mcp_tool *tool)
{
    json_begin_object(w);
    json_add_string(w, "name", tool->name);
    json_add_string(w, "description", tool->description ? tool->description : "");
    json_add_value(w, "input_schema", tool->input_schema);
    json_end(w);
}

static int write_tools(const struct request *req, struct json_writer *w, const struct mcp_host_tools *tools,
                       struct err *e)
{
    bool is_permitted = false;
    int r = 0;

    json_begin_array_as(w, "tools");
    for (size_t i = 0; r == 0 && i < tools->n; i++) {
        if (tools->items[i].why_not)
            continue;
        r = mcp_permit_find(req->api->identity, req->caller, req->params[0], tools->items[i].tool.name, &is_permitted,
                            e);
        if (r == 0 && is_permitted)
            write_tool(w, &tools->items[i].tool);
    }
    json_end(w);
    return r;
}

static int list_tools(struct request *req, struct response *res, struct err *e)
{
    struct mcp_server_info info = { 0 };
    struct mcp_host_tools tools = { 0 };
    struct audit_use *none = NULL; /* the list is no use */
    int r = permit(req, NULL, &none, e);

    if (r == 0)
        r = find_server(req, &info, e);
    if (r == 0)
        r = mcp_host_tools(req->api->mcp_host, req->params[0], mcp_call_of(req), &tools, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "provider", mcp_provider_of(info.server));
    return write_tools(req, &res->json, &tools, e);
}

static int call_tool(struct request *req, struct audit_use *use, struct mcp_server_info *info,
                     struct mcp_result *result, struct err *e)
{
    const struct execute_body *body = req->body;
    struct mcp_call *call = mcp_call_of(req);
    int r = find_server(req, info, e);

    call->meanwhile = audit_meanwhile;
    call->meanwhile_arg = use;
    if (r == 0)
        r = mcp_host_call(req->api->mcp_host, req->params[0], req->params[1], body->arguments, call, result, e);
    return r;
}

static int execute_tool(struct request *req, struct response *res, struct err *e)
{
    struct audit_use *use = NULL;
    struct mcp_server_info info = { 0 };
    struct mcp_result result = { 0 };
    int r = permit(req, req->params[1], &use, e);

    if (r == 0)
        r = mcp_permit_end(use, call_tool(req, use, &info, &result, e), e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "tool", req->params[1]);
    json_add_string(&res->json, "provider", mcp_provider_of(info.server));
    mcp_write_result(&res->json, &result);
    return 0;
}

const struct route mcp_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/mcp/servers",
      .permission = PERM_MCP_SERVERS,
      .is_sdk = true,
      ROUTE_QUERY(servers_fields, struct servers_query),
      .answer = servers_answer,
      .handler = list_servers,
      .summary = "The MCP servers that are set up",
      .tag = "MCP" },
    { .method = HTTP_GET,
      .path = "/sdk/mcp/servers/:server/tools",
      .permission = PERM_MCP_TOOLS,
      .takes_permission = true,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_QUERY(provider_fields, struct servers_query),
      .answer = tools_answer,
      .handler = list_tools,
      .summary = "The tools of an MCP server, which is started when needed",
      .tag = "MCP" },
    { .method = HTTP_POST,
      .path = "/sdk/mcp/servers/:server/tools/:tool/execute",
      .permission = PERM_MCP_TOOLS,
      .takes_permission = true,
      .takes_escaped_slash = true,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .max_body = LIMIT_BODY_TOOL,
      ROUTE_QUERY(provider_fields, struct servers_query),
      ROUTE_BODY(execute_fields, struct execute_body),
      .is_body_optional = true,
      .answer = execute_answer,
      .handler = execute_tool,
      .summary = "Call a tool of an MCP server, which is started when needed",
      .tag = "MCP" },
    ROUTE_END,
};
