/* What stands in the way of MCP servers: commands that nobody accepted, programs that are missing, changed tools,
 * failed starts, logins. */
#include "api/api.h"
#include "api/resources/doctor.h"
#include "mcp/host.h"
#include "os/program.h"

#include <stdlib.h>

static void check_command(struct checkup *c, const struct mcp_server *s)
{
    struct err why = { 0 };
    char *path = NULL;

    if (program_find(c->arena, s->command, s->working_dir, getenv("PATH"), &path, &why) < 0)
        doctor_add(c, arena_printf(c->arena, "MCP server %s", s->name), false, why.text,
                   arena_printf(c->arena, "install it, or `hearth mcp remove %s`", s->name));
}

static bool needs_login(struct checkup *c, const struct mcp_server *s)
{
    struct mcp_oauth_status status;

    return c->api->mcp_oauth && !mcp_server_is_local(s) &&
           mcp_oauth_status(c->api->mcp_oauth, s->name, c->arena, &status, NULL) == 0 &&
           status.state == MCP_OAUTH_WANTED;
}

static void check_server(struct checkup *c, const struct mcp_server_info *info)
{
    const char *name = info->server->name, *check = arena_printf(c->arena, "MCP server %s", name);

    if (info->needs_trust)
        doctor_add(c, check, false, "nobody has accepted its command, so it does not run",
                   arena_printf(c->arena, "`hearth mcp accept %s` shows what runs", name));
    if (info->n_changed_tools)
        doctor_add(c, check, false,
                   arena_printf(c->arena, "tools that are off because they changed: %zu", info->n_changed_tools),
                   arena_printf(c->arena, "`hearth mcp accept %s` shows the differences", name));
    if (needs_login(c, info->server))
        doctor_add(c, check, false, "it wants a login", arena_printf(c->arena, "`hearth mcp login %s`", name));
    else if (info->status == MCP_FAILED)
        doctor_add(c, check, false, info->error ? info->error : "it does not run",
                   arena_printf(c->arena, "`hearth mcp logs %s` has its messages", name));
    if (mcp_server_is_local(info->server))
        check_command(c, info->server);
}

void doctor_check_mcp(struct checkup *c)
{
    struct mcp_server_infos infos = { .n = 0 };
    size_t n_enabled = 0;
    int r = mcp_host_servers(c->api->mcp_host, c->arena, &infos, NULL);

    for (size_t i = 0; r == 0 && i < infos.n; i++) {
        if (!infos.items[i].server->is_enabled)
            continue;
        n_enabled++;
        check_server(c, &infos.items[i]);
    }
    if (infos.n)
        doctor_add(c, "MCP servers", true, arena_printf(c->arena, "%zu set up, %zu enabled", infos.n, n_enabled), NULL);
    if (mcp_host_n_unusable(c->api->mcp_host))
        doctor_add(c, "MCP servers", false,
                   arena_printf(c->arena, "stored and not readable: %zu", mcp_host_n_unusable(c->api->mcp_host)),
                   "set them up again with `hearth mcp add`");
}
