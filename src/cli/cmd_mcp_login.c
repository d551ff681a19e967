/* hearth mcp login */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <unistd.h>

const struct cli_option mcp_login_options[] = {
    { "--no-wait", .help = "print the address and end" },
    { .name = NULL },
};

enum { LOGIN_LOOK_US = 500000 };

/* The browser's redirect ends the login in the service; this looks until it has. */
static int await_login(struct cli *cli, struct err *e)
{
    struct client_reply reply;

    for (int64_t left_us = (int64_t)LIMIT_MCP_LOGIN_MS * 1000; left_us > 0; left_us -= LOGIN_LOOK_US) {
        int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}"), &reply, e);

        if (r < 0)
            return r;
        if (slice_eq_str(json_string(json_get(json_get(reply.json, "server"), "login")), "logged_in"))
            return 0;
        usleep(LOGIN_LOOK_US);
    }
    return err_set(e, -ETIMEDOUT, "MCP_LOGIN_UNKNOWN", "Nobody finished the login in time");
}

int run_mcp_login(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = cli_fill_path(cli, "/api/mcp/servers/{0}/login") };
    struct client_reply reply;
    const char *url;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    url = json_cstr(json_get(reply.json, "url"));
    out_print("Log in at %s:\n%s\n", json_cstr(json_get(reply.json, "host")), url);
    fflush(stdout);
    if (cli_has(cli, "--no-wait"))
        return 0;
    open_in_browser(url);
    r = await_login(cli, e);
    if (r == 0)
        out_print("Hearth can use %s now.\n", cli->args[0]);
    return r;
}
