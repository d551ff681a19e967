/* hearth mcp show, logs, enable, disable */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

/* ---- show ---- */

int run_mcp_show(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        cli_print_object(json_get(reply.json, "server"));
    return 0;
}

/* ---- logs ---- */

int run_mcp_logs(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}/log"), &reply, e);

    if (r < 0)
        return r;
    if (json_string(json_get(reply.json, "log")).n == 0)
        out_print("%s has written nothing since the service started.\n", cli->args[0]);
    out_lines(stdout, json_string(json_get(reply.json, "log")));
    return 0;
}

/* ---- enable, disable ---- */

void body_mcp_tool(struct cli *cli, struct json_writer *w)
{
    if (cli->n_args > 1)
        json_add_string(w, "tool", cli->args[1]);
}

static int switch_server(struct cli *cli, const char *what, const char *opposite, struct err *e)
{
    const char *tool = cli->n_args > 1 ? cli->args[1] : "", *between = *tool ? " " : "";
    struct client_request request = { .method = HTTP_POST,
                                      .path =
                                          cli_fill_path(cli, arena_printf(cli->arena, "/api/mcp/servers/{0}/%s", what)),
                                      .body = cli_write_body(cli) };
    struct client_reply reply;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    out_print("%s%s%s is %sd", tool, *tool ? " of the MCP server " : "The MCP server ", cli->args[0], what);
    out_print(*opposite ? "; `hearth mcp %s %s%s%s` takes that back.\n" : ".\n", opposite, cli->args[0], between, tool);
    return 0;
}

int run_mcp_enable(struct cli *cli, struct err *e)
{
    return switch_server(cli, "enable", "", e);
}

int run_mcp_disable(struct cli *cli, struct err *e)
{
    return switch_server(cli, "disable", "enable", e);
}
