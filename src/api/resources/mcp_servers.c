/* Management of MCP servers for the local administrator (docs/mcp.md). Secrets are masked: of `env` and `headers` the
 * names are shown. */
#include "agents/approvals.h"
#include "api/api.h"
#include "api/resources/mcp.h"
#include "api/routes.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/consent.h"
#include "mcp/pins.h"

#include <pthread.h>

#define MASK "****"

struct put_query {
    bool is_accepted;
};
struct tool_body {
    const char *tool, *hash;
};
struct call_body {
    const char *tool;
    struct json_value arguments;
};

static const struct field put_fields[] = {
    FIELD_BOOL(struct put_query, is_accepted, "accept",
               .help = "a person has seen what runs and accepts it; else the first use asks"),
    FIELD_END,
};
static const struct field tool_fields[] = {
    FIELD_STRING(struct tool_body, tool, "tool", .min = 1, .max = LIMIT_MCP_NAME_BYTES,
                 .help = "one tool; absent: the server"),
    FIELD_END,
};
static const struct field accept_fields[] = {
    FIELD_STRING(struct tool_body, tool, "tool", .min = 1, .max = LIMIT_MCP_NAME_BYTES,
                 .help = "one changed tool; absent: the command and every changed tool"),
    FIELD_STRING(struct tool_body, hash, "hash", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "of the definition that was shown; refused when it has changed since"),
    FIELD_END,
};
static const struct field call_fields[] = {
    FIELD_STRING(struct call_body, tool, "tool", FIELD_REQUIRED, .min = 1, .max = LIMIT_MCP_NAME_BYTES),
    FIELD_OBJECT(struct call_body, arguments, "arguments"),
    FIELD_END,
};

static const struct field name_value_shape[] = { SHAPE_STRING("name"), SHAPE_STRING("value", .help = MASK), FIELD_END };
static const struct field sandbox_shape[] = {
    SHAPE_STRING("words", .help = "what the command may see and do"),
    SHAPE_STRING("profile", .flags = FIELD_NULLABLE, .help = "null: the setting sandbox.default"),
    FIELD_END,
};
static const struct field server_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("display_name"),
    SHAPE_STRING("description"),
    SHAPE_STRING("server_type"),
    SHAPE_BOOL("enabled"),
    SHAPE_STRING("provider"),
    SHAPE_STRINGS("tags"),
    SHAPE_STRING("status", .help = "stopped, starting, running or error"),
    SHAPE_STRING("error", .flags = FIELD_NULLABLE, .help = "why it does not run, or has no tools"),
    SHAPE_INT("tools", .help = "how many it has; 0 while it does not run"),
    SHAPE_INT("changed_tools", .help = "off until a person accepts their new definitions"),
    SHAPE_STRINGS("disabled_tools"),
    SHAPE_INT("pid", .flags = FIELD_NULLABLE),
    SHAPE_TIME("started_at", .flags = FIELD_NULLABLE),
    SHAPE_STRING("protocol", .flags = FIELD_NULLABLE, .help = "version in force"),
    SHAPE_STRING("instructions", .flags = FIELD_NULLABLE, .help = "the server's own, while it runs"),
    SHAPE_BOOL("accepted", .help = "false: a person has to accept the command before it runs"),
    SHAPE_STRING("runs", .help = "exactly what runs, and what it may see"),
    SHAPE_STRING("command", .flags = FIELD_NULLABLE),
    SHAPE_STRINGS("args"),
    SHAPE_STRING("working_dir", .flags = FIELD_NULLABLE),
    SHAPE_LIST("env", name_value_shape),
    SHAPE_STRING("url", .flags = FIELD_NULLABLE),
    SHAPE_LIST("headers", name_value_shape),
    SHAPE_STRINGS("folders"),
    SHAPE_STRINGS("read_folders"),
    SHAPE_OBJECT("sandbox", sandbox_shape),
    SHAPE_STRING("login", .help = "none, wanted (the server asked for one) or logged_in"),
    SHAPE_STRING("grant", .help = "of a login: person, machine or enterprise"),
    SHAPE_STRING("client_id", .flags = FIELD_NULLABLE),
    SHAPE_STRING("key_id", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("has_private_key", .help = "true: it signs instead of a secret; the key itself is never shown"),
    SHAPE_STRING("identity_provider", .flags = FIELD_NULLABLE),
    SHAPE_STRING("identity_client_id", .flags = FIELD_NULLABLE),
    SHAPE_DOUBLE("timeout_s"),
    SHAPE_BOOL("trusted", .help = "true: changed definitions of its tools need no person"),
    FIELD_END,
};
static const struct field tool_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("title", .flags = FIELD_NULLABLE),
    SHAPE_STRING("description"),
    SHAPE_OBJECT("input_schema", NULL),
    SHAPE_OBJECT("output_schema", NULL, .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("annotations", NULL, .flags = FIELD_NULLABLE),
    SHAPE_BOOL("usable"),
    SHAPE_STRING("why_not", .flags = FIELD_NULLABLE),
    FIELD_END,
};
static const struct field change_shape[] = {
    SHAPE_STRING("tool"),
    SHAPE_STRING("hash", .help = "of `after`, to accept exactly that"),
    SHAPE_OBJECT("before", NULL, .help = "the definition that was accepted"),
    SHAPE_OBJECT("after", NULL, .help = "the one that the server has now"),
    FIELD_END,
};

static const struct field servers_answer[] = { SHAPE_LIST("servers", server_shape), FIELD_END };
static const struct field server_answer[] = { SHAPE_OBJECT("server", server_shape), FIELD_END };
static const struct field tools_answer[] = { SHAPE_STRING("server"), SHAPE_LIST("tools", tool_shape), FIELD_END };
static const struct field changes_answer[] = {
    SHAPE_STRING("server"), SHAPE_BOOL("accepted"), SHAPE_STRING("runs"), SHAPE_LIST("tools", change_shape), FIELD_END,
};
static const struct field call_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_STRING("tool"),
    SHAPE_OBJECT("result", mcp_result_shape),
    FIELD_END,
};
static const struct field log_answer[] = { SHAPE_STRING("server"), SHAPE_STRING("log"), FIELD_END };

/* One change at a time, so that changes are stored and applied in the same order. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* ---- one server ---- */

static void write_masked(struct json_writer *w, const char *name, struct json_value map)
{
    struct json_iter it = json_iter(map);
    struct json_value value;
    struct slice member;

    json_begin_array_as(w, name);
    while (json_next(&it, &member, &value)) {
        json_begin_object(w);
        json_add_slice(w, "name", member);
        json_add_string(w, "value", MASK);
        json_end(w);
    }
    json_end(w);
}

static void write_state(struct json_writer *w, const struct mcp_server_info *info)
{
    json_add_string(w, "status", mcp_status_name(info->status));
    json_add_string(w, "error", info->error);
    json_add_int(w, "tools", (int64_t)info->n_tools);
    json_add_int(w, "changed_tools", (int64_t)info->n_changed_tools);
    json_add_strings(w, "disabled_tools", info->server->disabled_tools.items, info->server->disabled_tools.n);
    if (info->pid)
        json_add_int(w, "pid", info->pid);
    else
        json_add_null(w, "pid");
    json_add_string(w, "started_at", info->started_at);
    json_add_string(w, "protocol", info->protocol);
    json_add_string(w, "instructions", info->instructions);
    json_add_bool(w, "accepted", !info->needs_trust);
}

static const char *login_of(const struct request *req, const struct mcp_server *s)
{
    static const char *const words[] = {
        [MCP_OAUTH_NONE] = "none", [MCP_OAUTH_WANTED] = "wanted", [MCP_OAUTH_LOGGED_IN] = "logged_in"
    };
    struct mcp_oauth_status status = { MCP_OAUTH_NONE };

    if (req->api->mcp_oauth && !mcp_server_is_local(s) &&
        mcp_oauth_status(req->api->mcp_oauth, s->name, req->arena, &status, NULL) < 0)
        status.state = MCP_OAUTH_NONE;
    return words[status.state];
}

static void write_login(const struct request *req, struct json_writer *w, const struct mcp_server *s)
{
    json_add_string(w, "login", login_of(req, s));
    json_add_string(w, "grant", s->grant);
    json_add_string(w, "client_id", s->client_id);
    json_add_string(w, "key_id", s->key_id);
    json_add_bool(w, "has_private_key", s->private_key);
    json_add_string(w, "identity_provider", s->identity_provider);
    json_add_string(w, "identity_client_id", s->identity_client_id);
}

static void write_runs(const struct request *req, struct json_writer *w, const struct mcp_server *s)
{
    const struct sandbox_definition sandbox = mcp_server_sandbox(req->arena, s);

    json_add_string(w, "runs", mcp_server_shown(req->arena, req->api->sandbox, s));
    json_add_string(w, "command", s->command);
    json_add_strings(w, "args", s->args.items, s->args.n);
    json_add_string(w, "working_dir", s->working_dir);
    write_masked(w, "env", s->env);
    json_add_string(w, "url", s->url);
    write_masked(w, "headers", s->headers);
    json_add_strings(w, "folders", s->folders.items, s->folders.n);
    json_add_strings(w, "read_folders", s->read_folders.items, s->read_folders.n);
    json_begin_object_as(w, "sandbox");
    json_add_string(w, "words", sandbox_words(req->arena, req->api->sandbox, &sandbox));
    json_add_string(w, "profile", s->sandbox.profile);
    json_end(w);
    write_login(req, w, s);
    json_add_double(w, "timeout_s", s->timeout_s);
    json_add_bool(w, "trusted", s->is_trusted);
}

static void write_server(const struct request *req, struct json_writer *w, const char *name,
                         const struct mcp_server_info *info)
{
    const struct mcp_server *s = info->server;

    json_begin_object_as(w, name);
    mcp_write_server(w, s);
    write_state(w, info);
    write_runs(req, w, s);
    json_end(w);
}

static int answer_server(struct request *req, struct response *res, const char *name, struct err *e)
{
    struct mcp_server_info info;
    int r = mcp_host_server(req->api->mcp_host, name, req->arena, &info, e);

    if (r == 0)
        write_server(req, &res->json, "server", &info);
    return r;
}

static int list_servers(struct request *req, struct response *res, struct err *e)
{
    struct mcp_server_infos infos;
    int r = mcp_host_servers(req->api->mcp_host, req->arena, &infos, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "servers");
    for (size_t i = 0; i < infos.n; i++)
        write_server(req, &res->json, NULL, &infos.items[i]);
    json_end(&res->json);
    return 0;
}

static int show_server(struct request *req, struct response *res, struct err *e)
{
    return answer_server(req, res, req->params[0], e);
}

/* ---- changes ---- */

static int check_server(const struct request *req, const void *body, struct err *e)
{
    struct mcp_server server = *(const struct mcp_server *)body;

    if (!server.name) /* reported by the table of fields */
        return 0;
    mcp_server_complete(&server);
    return mcp_server_check(&server, req->api->data_dir, e);
}

static int put_server(struct request *req, struct response *res, struct err *e)
{
    const struct put_query *query = req->query;
    struct mcp_server server = *(const struct mcp_server *)req->body;
    int r;

    mcp_server_complete(&server);
    pthread_mutex_lock(&changing);
    r = mcp_audit(req, "mcp.add", &server, e);
    if (r == 0)
        r = mcp_host_put(req->api->mcp_host, &server, query->is_accepted, e);
    pthread_mutex_unlock(&changing);
    return r < 0 ? r : answer_server(req, res, server.name, e);
}

static int remove_server(struct request *req, struct response *res, struct err *e)
{
    const char *name = req->params[0], *part = arena_printf(req->arena, "mcp.tools/%s", name);
    int r;

    pthread_mutex_lock(&changing);
    r = audit_append(req->api->identity, req->caller->actor, "mcp.remove", name, NULL, e);
    if (r == 0) /* first, so that nothing that fails leaves them to a later server of this name */
        r = consent_revoke_part(req->api->identity, part, req->caller->actor, e);
    if (r == 0)
        r = mcp_host_remove(req->api->mcp_host, name, e);
    if (r == 0 && req->api->approvals)
        approvals_forget_allowed(req->api->approvals, NULL, name);
    pthread_mutex_unlock(&changing);
    return r;
}

static int enable(struct request *req, struct response *res, bool is_enabled, struct err *e)
{
    const struct tool_body *body = req->body;
    const char *name = req->params[0],
               *subject = body->tool ? arena_printf(req->arena, "%s/%s", name, body->tool) : name;
    int r;

    pthread_mutex_lock(&changing);
    r = audit_append(req->api->identity, req->caller->actor, is_enabled ? "mcp.enable" : "mcp.disable", subject, NULL,
                     e);
    if (r == 0)
        r = mcp_host_enable(req->api->mcp_host, name, body->tool, is_enabled, e);
    pthread_mutex_unlock(&changing);
    return r < 0 ? r : answer_server(req, res, name, e);
}

static int enable_server(struct request *req, struct response *res, struct err *e)
{
    return enable(req, res, true, e);
}

static int disable_server(struct request *req, struct response *res, struct err *e)
{
    return enable(req, res, false, e);
}

static int accept_server(struct request *req, struct response *res, struct err *e)
{
    const struct tool_body *body = req->body;
    const char *name = req->params[0];
    int r;

    pthread_mutex_lock(&changing);
    r = audit_append_values(req->api->identity, req->caller->actor, "mcp.accept", name, req->body_json, e);
    if (r == 0)
        r = mcp_host_accept(req->api->mcp_host, name, body->tool, body->hash, e);
    pthread_mutex_unlock(&changing);
    return r < 0 ? r : answer_server(req, res, name, e);
}

static int restart_server(struct request *req, struct response *res, struct err *e)
{
    int r = mcp_host_restart(req->api->mcp_host, req->params[0], e);

    return r < 0 ? r : answer_server(req, res, req->params[0], e);
}

/* ---- what it is made of ---- */

static void write_object_or_null(struct json_writer *w, const char *name, struct json_value v)
{
    if (json_type(v) == JSON_OBJECT)
        json_add_value(w, name, v);
    else
        json_add_null(w, name);
}

static void write_tool(struct json_writer *w, const struct mcp_host_tool *t)
{
    json_begin_object(w);
    json_add_string(w, "name", t->tool.name);
    json_add_string(w, "title", t->tool.title);
    json_add_string(w, "description", t->tool.description ? t->tool.description : "");
    json_add_value(w, "input_schema", t->tool.input_schema);
    write_object_or_null(w, "output_schema", t->tool.output_schema);
    write_object_or_null(w, "annotations", t->tool.annotations);
    json_add_bool(w, "usable", !t->why_not);
    json_add_string(w, "why_not", t->why_not);
    json_end(w);
}

static int list_tools(struct request *req, struct response *res, struct err *e)
{
    struct mcp_host_tools tools;
    int r = mcp_host_tools(req->api->mcp_host, req->params[0], mcp_call_of(req), &tools, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_begin_array_as(&res->json, "tools");
    for (size_t i = 0; i < tools.n; i++)
        write_tool(&res->json, &tools.items[i]);
    json_end(&res->json);
    return 0;
}

static int list_changes(struct request *req, struct response *res, struct err *e)
{
    struct mcp_server_info info;
    struct mcp_pin_row *pins = NULL;
    size_t n = 0;
    int r = mcp_host_server(req->api->mcp_host, req->params[0], req->arena, &info, e);

    if (r == 0)
        r = mcp_pins_changed(req->api->store, req->params[0], req->arena, &pins, &n, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_bool(&res->json, "accepted", !info.needs_trust);
    json_add_string(&res->json, "runs", mcp_server_shown(req->arena, req->api->sandbox, info.server));
    json_begin_array_as(&res->json, "tools");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(&res->json);
        json_add_string(&res->json, "tool", pins[i].tool);
        json_add_string(&res->json, "hash", pins[i].offered_hash);
        json_add_raw(&res->json, "before", pins[i].definition);
        json_add_raw(&res->json, "after", pins[i].offered_definition);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static int call_tool(struct request *req, struct response *res, struct err *e)
{
    const struct call_body *body = req->body;
    struct mcp_result result;
    int r =
        mcp_host_call(req->api->mcp_host, req->params[0], body->tool, body->arguments, mcp_call_of(req), &result, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "tool", body->tool);
    mcp_write_result(&res->json, &result);
    return 0;
}

static int show_log(struct request *req, struct response *res, struct err *e)
{
    const char *log = NULL;
    int r = mcp_host_log(req->api->mcp_host, req->params[0], req->arena, &log, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "log", log);
    return 0;
}

#define MCP_ROUTE(verb, where, fn, ...)                                                                                \
    {                                                                                                                  \
        .method = (verb), .path = "/api/mcp/servers" where, .permission = PERM_ADMIN, .handler = (fn), .tag = "MCP",   \
        __VA_ARGS__                                                                                                    \
    }
#define TOOL_BODY(table) ROUTE_BODY(table, struct tool_body), .is_body_optional = true

const struct route mcp_server_routes[] = {
    MCP_ROUTE(HTTP_GET, "", list_servers, .answer = servers_answer, .summary = "Every MCP server with its state"),
    MCP_ROUTE(HTTP_POST, "", put_server, ROUTE_BODY(mcp_server_fields, struct mcp_server),
              ROUTE_QUERY(put_fields, struct put_query), .check_body = check_server, .status = 201, .defines = true,
              .answer = server_answer, .summary = "Add an MCP server, or replace the one of that name"),
    MCP_ROUTE(HTTP_GET, "/:server", show_server, .answer = server_answer, .summary = "One MCP server"),
    MCP_ROUTE(HTTP_DELETE, "/:server", remove_server, .answer = api_nothing, .defines = true,
              .summary = "Forget an MCP server, its secrets and what was accepted of it"),
    MCP_ROUTE(HTTP_POST, "/:server/enable", enable_server, TOOL_BODY(tool_fields), .defines = true,
              .answer = server_answer, .summary = "Enable an MCP server or one of its tools"),
    MCP_ROUTE(HTTP_POST, "/:server/disable", disable_server, TOOL_BODY(tool_fields), .answer = server_answer,
              .summary = "Disable an MCP server or one of its tools"),
    MCP_ROUTE(HTTP_POST, "/:server/accept", accept_server, TOOL_BODY(accept_fields), .defines = true,
              .answer = server_answer,
              .summary = "Accept the command of an MCP server, or changed definitions of tools"),
    MCP_ROUTE(HTTP_POST, "/:server/restart", restart_server, .answer = server_answer,
              .summary = "End an MCP server; its next use starts it again"),
    MCP_ROUTE(HTTP_GET, "/:server/tools", list_tools, .kind = ROUTE_LONG, .answer = tools_answer,
              .summary = "The tools of an MCP server, also those that cannot be called"),
    MCP_ROUTE(HTTP_GET, "/:server/changes", list_changes, .answer = changes_answer,
              .summary = "What a person has to accept: the command, and changed definitions of tools"),
    MCP_ROUTE(HTTP_POST, "/:server/call", call_tool, ROUTE_BODY(call_fields, struct call_body), .kind = ROUTE_LONG,
              .max_body = LIMIT_BODY_TOOL, .answer = call_answer, .summary = "Call a tool of an MCP server"),
    MCP_ROUTE(HTTP_GET, "/:server/log", show_log, .answer = log_answer,
              .summary = "The last lines of an MCP server's standard error and messages"),
    ROUTE_END,
};
