/* hearth mcp login, and the options of `hearth mcp add` for it */
#include "base/limits.h"
#include "cli/key_input.h"
#include "cli/mcp_login.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <unistd.h>

enum { LOGIN_LOOK_US = 500000 };

/* ---- add ---- */

void mcp_add_given(struct cli *cli, struct json_writer *w, const char *option, const char *name)
{
    if (cli_has(cli, option))
        json_add_string(w, name, cli_value(cli, option));
}

/* Adds the text of the file that the option names, without surrounding spaces. */
static int add_file(struct cli *cli, struct json_writer *w, const char *option, const char *name, size_t max,
                    struct err *e)
{
    struct slice text = { 0 };
    int r = cli_has(cli, option) ? cli_read_file(cli, cli_value(cli, option), max, &text, e) : 0;

    if (r == 0 && text.p)
        json_add_string(w, name, cli_trimmed(cli->arena, text));
    return r;
}

int mcp_add_login(struct cli *cli, struct json_writer *w, struct err *e)
{
    mcp_add_given(cli, w, "--client-id", "client_id");
    mcp_add_given(cli, w, "--client-secret", "client_secret");
    mcp_add_given(cli, w, "--scope", "scope");
    mcp_add_given(cli, w, "--key-id", "key_id");
    mcp_add_given(cli, w, "--identity-provider", "identity_provider");
    mcp_add_given(cli, w, "--identity-client-id", "identity_client_id");
    mcp_add_given(cli, w, "--identity-client-secret", "identity_client_secret");
    if (cli_has(cli, "--machine") && cli_has(cli, "--identity-provider"))
        return err_set(e, -EINVAL, "BAD_USE", "Either --machine, or --identity-provider where a person logs in");
    if (cli_has(cli, "--machine"))
        json_add_string(w, "grant", "machine");
    if (cli_has(cli, "--identity-provider"))
        json_add_string(w, "grant", "enterprise");
    return add_file(cli, w, "--private-key", "private_key", LIMIT_MCP_KEY_BYTES, e);
}

/* ---- login ---- */

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

static int write_login(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_MCP_DEFINITION);
    json_write_init(&w, &body);
    json_begin_object(&w);
    r = add_file(cli, &w, "--id-token", "id_token", LIMIT_MCP_TOKEN_BYTES + 2, e);
    json_end(&w);
    *ret = slice_of(buf_to_arena(&body, cli->arena));
    return r;
}

/* A person goes on at this address. */
static int send_to_browser(struct cli *cli, const char *host, const char *url, struct err *e)
{
    out_print("Log in at %s:\n%s\n", host, url);
    fflush(stdout);
    if (cli_has(cli, "--no-wait"))
        return 0;
    open_in_browser(url);
    return await_login(cli, e);
}

int run_mcp_login(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = cli_fill_path(cli, "/api/mcp/servers/{0}/login") };
    struct client_reply reply = { 0 };
    const char *url;
    int r = write_login(cli, &request.body, e);

    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    url = json_cstr(json_get(reply.json, "url"));
    if (url)
        r = send_to_browser(cli, json_cstr(json_get(reply.json, "host")), url, e);
    if (r == 0 && !(url && cli_has(cli, "--no-wait")))
        out_print("Hearth can use %s now.\n", cli->args[0]);
    return r;
}

/* clang-format off */
const struct cli_option mcp_login_options[] = {
    { "--no-wait", .help = "print the address and end" },
    { "--id-token", .value = "FILE", .help = "that the identity provider gave you, instead of a browser; - reads standard input" },
    { .name = NULL },
};
/* clang-format on */
