/* Tools of MCP servers in a turn: shown as `server__tool`, called through the host. */
#include "agents/loop_private.h"
#include "agents/toolbox_private.h"

#include "identity/audit.h"
#include "identity/mcp_permit.h"
#include "mcp/host.h"

#include <string.h>

/* ---- the list ---- */

/* Has the agent any pattern that could name a tool of this server? Without one the server is not started. */
static bool is_wanted(const struct toolbox_filling *f, const char *server)
{
    const struct field_strings *patterns = &f->config->agent->tools;
    size_t n = strlen(server);

    for (size_t i = 0; i < patterns->n; i++)
        if (strncmp(patterns->items[i], "*/", 2) == 0 ||
            (strncmp(patterns->items[i], server, n) == 0 && patterns->items[i][n] == '/'))
            return true;
    return false;
}

static bool is_permitted(const struct toolbox_filling *f, const char *server, const char *tool)
{
    const struct models_call *call = f->config->call;
    bool is_permitted = false;

    return mcp_permit_find(call->models->identity, call->caller, server, tool, &is_permitted, NULL) == 0 &&
           is_permitted;
}

static int add_tool(struct toolbox_filling *f, const char *server, const struct mcp_host_tool *item, struct err *e)
{
    const struct mcp_tool *from = &item->tool;
    const struct agent_tool tool = { .server = server,
                                     .tool = from->name,
                                     .title = from->title,
                                     .description = from->description,
                                     .schema = from->input_schema,
                                     .compiled = item->schema,
                                     .is_read_only = from->is_read_only,
                                     .is_destructive = from->is_destructive && !from->is_read_only };

    return toolbox_add(f, &tool, arena_printf(f->arena, "%s__%s", server, from->name), e);
}

static int add_tools(struct toolbox_filling *f, const char *server, const struct mcp_host_tools *tools, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tools->n; i++) {
        const struct mcp_host_tool *t = &tools->items[i];

        if (!t->why_not && agent_tools_hold(f->config->agent, server, t->tool.name) &&
            is_permitted(f, server, t->tool.name))
            r = add_tool(f, server, t, e);
    }
    return r;
}

static void note_missing(struct toolbox_filling *f, const char *server, const struct err *why, size_t n_most)
{
    struct agent_toolbox *box = f->box;
    const char **missing = arena_array(f->arena, n_most, sizeof(*missing));

    for (size_t i = 0; i < box->n_missing; i++)
        missing[i] = box->missing[i];
    missing[box->n_missing++] = arena_printf(f->arena, "The tools of the server %s are missing: %s", server, why->text);
    box->missing = missing;
}

static int add_server(struct toolbox_filling *f, const char *server, size_t n_servers, struct err *e)
{
    const struct mcp_call call = { .arena = f->arena, .wait = f->config->wait };
    struct mcp_host_tools tools = { .n = 0 };
    struct err why;
    int r;

    err_init(&why);
    r = mcp_host_tools(f->config->host, server, &call, &tools, &why);
    if (r == 0)
        return add_tools(f, server, &tools, e);
    if (r == -ECANCELED)
        return err_set(e, r, why.code, "%s", why.text);
    note_missing(f, server, &why, n_servers);
    return 0;
}

int toolbox_add_servers(struct toolbox_filling *f, struct err *e)
{
    struct mcp_server_infos servers = { .n = 0 };
    int r = mcp_host_servers(f->config->host, f->arena, &servers, e);

    for (size_t i = 0; r == 0 && i < servers.n; i++) {
        const char *name = servers.items[i].server->name;

        if (servers.items[i].server->is_enabled && is_wanted(f, name) && is_permitted(f, name, NULL))
            r = add_server(f, name, servers.n, e);
    }
    return r;
}

/* ---- a call ---- */

int loop_server_call(const struct agent_loop *l, const struct agent_tool *tool, struct json_value arguments,
                     const struct net_wait *wait, struct arena *a, struct mcp_result *ret, struct err *e)
{
    const struct caller *who = l->call->caller;
    const struct mcp_caller caller = { .name = l->session_id  ? l->session_id
                                               : l->task_uuid ? l->task_uuid
                                                              : who->scope,
                                       .who = who,
                                       .agent = l->agent->name,
                                       .session_id = l->session_id,
                                       .task_uuid = l->task_uuid };
    struct mcp_call call = { .arena = a, .wait = wait, .caller = &caller, .meanwhile = audit_meanwhile };
    struct audit_use *use = NULL;
    int r = mcp_permit(l->call->models->identity, who, tool->server, tool->tool, a, &use, e);

    call.meanwhile_arg = use;
    if (r == 0)
        r = mcp_permit_end(use, mcp_host_call(l->host, tool->server, tool->tool, arguments, &call, ret, e), e);
    return r;
}
