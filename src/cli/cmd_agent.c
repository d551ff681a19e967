/* hearth agent show */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

int run_agent_show(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, cli_fill_path(cli, "/api/agents/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    cli_print_object(json_get(reply.json, "agent"));
    out_print("\nDefinition:\n");
    cli_print_json(json_get(reply.json, "definition"));
    return 0;
}
