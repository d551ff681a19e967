/* hearth mcp add, import, list, tools, call, accept */
#include "base/limits.h"
#include "base/percent.h"
#include "cli/key_input.h"
#include "cli/mcp_login.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- a person's yes ---- */

static bool is_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* true: the person at the terminal said yes, or the command line did. */
static bool is_confirmed(struct cli *cli, const char *question)
{
    char line[16] = "";

    if (cli_has(cli, "--yes"))
        return true;
    if (!is_terminal())
        return false;
    out_print("%s [y/N] ", question);
    fflush(stdout);
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static void print_block(const char *text)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, "\n");

        out_print("    %s\n", arena_strndup(a, at, n));
        at += n + (at[n] == '\n');
    }
}

/* ---- add ---- */

static void add_pairs(struct cli *cli, struct json_writer *w, const char *option, const char *name, char between)
{
    size_t n;
    const char *const *given = cli_values(cli, option, &n);
    const char separator[2] = { between, '\0' };

    if (n == 0)
        return;
    json_begin_object_as(w, name);
    for (size_t i = 0; i < n; i++) {
        size_t n_name = strcspn(given[i], separator);

        json_add_string(w, cli_trimmed(cli->arena, (struct slice){ given[i], n_name }),
                        cli_trimmed(cli->arena, slice_of(given[i] + n_name + (given[i][n_name] != '\0'))));
    }
    json_end(w);
}

static int check_pairs(struct cli *cli, const char *option, char between, const char *form, struct err *e)
{
    size_t n;
    const char *const *given = cli_values(cli, option, &n);

    for (size_t i = 0; i < n; i++)
        if (!strchr(given[i], between))
            return err_set(e, -EINVAL, "BAD_USE", "%s must be written as %s", option, form);
    return 0;
}

static void add_many(struct cli *cli, struct json_writer *w, const char *option, const char *name)
{
    size_t n;
    const char *const *given = cli_values(cli, option, &n);

    if (n)
        json_add_strings(w, name, given, n);
}

static void add_members(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "name", cli->args[0]);
    if (cli->n_args > 1) {
        json_add_string(w, "command", cli->args[1]);
        json_add_strings(w, "args", cli->args + 2, cli->n_args - 2);
    }
    mcp_add_given(cli, w, "--url", "url");
    if (cli_has(cli, "--sse"))
        json_add_string(w, "server_type", "sse");
    mcp_add_given(cli, w, "--description", "description");
    mcp_add_given(cli, w, "--working-dir", "working_dir");
    add_many(cli, w, "--tag", "tags");
    add_many(cli, w, "--folder", "folders");
    add_many(cli, w, "--read-folder", "read_folders");
    add_pairs(cli, w, "--env", "env", '=');
    add_pairs(cli, w, "--header", "headers", ':');
    if (cli_has(cli, "--trusted"))
        json_add_bool(w, "trusted", true);
    if (cli_has(cli, "--profile")) {
        json_begin_object_as(w, "sandbox");
        json_add_string(w, "profile", cli_value(cli, "--profile"));
        json_end(w);
    }
}

static int write_add(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, MIB(4));
    json_write_init(&w, &body);
    json_begin_object(&w);
    add_members(cli, &w);
    r = mcp_add_login(cli, &w, e);
    json_end(&w);
    *ret = slice_of(buf_to_arena(&body, cli->arena));
    return r;
}

static int send_accept(struct cli *cli, const char *name, const char *tool, const char *hash, struct err *e)
{
    struct client_request request = { .method = HTTP_POST };
    struct client_reply reply;
    struct json_writer w;
    struct buf body, path;
    int r;

    buf_init(&body, KIB(16));
    buf_init(&path, KIB(4));
    json_write_init(&w, &body);
    json_begin_object(&w);
    if (tool)
        json_add_string(&w, "tool", tool);
    if (hash)
        json_add_string(&w, "hash", hash);
    json_end(&w);
    buf_add_str(&path, "/api/mcp/servers/");
    percent_encode(&path, slice_of(name));
    buf_add_str(&path, "/accept");
    request.path = buf_to_arena(&path, cli->arena);
    request.body = slice_of(buf_to_arena(&body, cli->arena));
    r = cli_send(cli, &request, &reply, e);
    return r < 0 ? r : 0;
}

static void print_runs(const char *name, struct json_value of)
{
    out_print("%s:\n", name);
    print_block(json_cstr(json_get(of, "runs")));
}

/* Shows what runs and asks for a yes, which the service then keeps. */
static int offer(struct cli *cli, struct json_value server, bool *ret_is_accepted, struct err *e)
{
    const char *name = json_cstr(json_get(server, "name"));
    int r = 0;

    *ret_is_accepted = json_bool(json_get(server, "accepted"));
    if (!cli->is_json)
        print_runs(name, server);
    if (*ret_is_accepted || (cli->is_json && !cli_has(cli, "--yes")))
        return 0;
    *ret_is_accepted = is_confirmed(cli, "May this run on this machine?");
    if (*ret_is_accepted)
        r = send_accept(cli, name, NULL, NULL, e);
    return r;
}

static void print_added(const char *name, bool is_accepted)
{
    if (is_accepted)
        out_print("The MCP server %s is set up; `hearth mcp tools %s` starts it and lists its tools.\n", name, name);
    else
        out_print("The MCP server %s is set up. It does not run before a person accepts it: `hearth mcp accept %s`\n",
                  name, name);
}

int run_mcp_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/mcp/servers" };
    struct client_reply reply = { 0 };
    bool is_accepted = false;
    int r = check_pairs(cli, "--env", '=', "NAME=VALUE", e);

    if (r == 0)
        r = check_pairs(cli, "--header", ':', "'Name: value'", e);
    if (r == 0 && (cli->n_args > 1) == cli_has(cli, "--url"))
        r = err_set(e, -EINVAL, "BAD_USE",
                    "Either a command after --, or --url: `hearth mcp add NAME -- COMMAND ARG...`");
    if (r == 0)
        r = write_add(cli, &request.body, e);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r == 0)
        r = offer(cli, json_get(reply.json, "server"), &is_accepted, e);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_added(cli->args[0], is_accepted);
    return 0;
}

/* ---- import ---- */

struct answers {
    struct json_value inputs;
    struct cli *cli;
};

static const char *given_input(struct cli *cli, const char *id)
{
    size_t n, n_id = strlen(id);
    const char *const *given = cli_values(cli, "--input", &n);

    for (size_t i = 0; i < n; i++) {
        const char *bare = strncmp(id, "input:", 6) == 0 ? id + 6 : id;
        size_t n_bare = strlen(bare);

        if (strncmp(given[i], id, n_id) == 0 && given[i][n_id] == '=')
            return given[i] + n_id + 1;
        if (strncmp(given[i], bare, n_bare) == 0 && given[i][n_bare] == '=')
            return given[i] + n_bare + 1;
    }
    return strncmp(id, "env:", 4) == 0 ? getenv(id + 4) : NULL;
}

static int request_input(struct cli *cli, struct json_value input, const char *id, const char **ret, struct err *e)
{
    const char *description = json_cstr(json_get(input, "description"));
    char line[LIMIT_PROVIDER_SECRET + 2] = "";

    if (!is_terminal())
        return err_set(e, -EINVAL, "BAD_USE", "The file asks for %.100s: --input %.100s=VALUE", id, id);
    out_print("%s%s%s%s: ", id, description ? " (" : "", description ? description : "", description ? ")" : "");
    fflush(stdout);
    if (json_bool(json_get(input, "secret")))
        return cli_read_key(cli, "Nothing was given.", ret, e);
    if (!fgets(line, sizeof(line), stdin))
        return err_set(e, -EINVAL, "BAD_USE", "Nothing was given.");
    *ret = cli_trimmed(cli->arena, slice_of(line));
    return 0;
}

/* Each input is answered by an option, by the environment, by its own value, or by the person. */
static int add_answers(struct cli *cli, struct json_value inputs, struct json_writer *w, struct err *e)
{
    struct json_value input;
    int r = 0;

    json_begin_object_as(w, "inputs");
    for (struct json_iter it = json_iter(inputs); r == 0 && json_next(&it, NULL, &input);) {
        const char *id = json_cstr(json_get(input, "id")), *answer = given_input(cli, id);

        if (!answer && !json_bool(json_get(input, "optional")))
            r = request_input(cli, input, id, &answer, e);
        if (answer)
            json_add_string(w, id, answer);
    }
    json_end(w);
    return r;
}

static int send_import(struct cli *cli, struct json_value config, struct json_value inputs, bool is_dry_run,
                       struct client_reply *ret, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/mcp/import" };
    struct json_writer w;
    struct buf body;
    size_t n;
    const char *const *names = cli_values(cli, "--only", &n);
    int r = 0;

    buf_init(&body, 2 * LIMIT_MCP_IMPORT_BYTES);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_value(&w, "config", config);
    json_add_bool(&w, "dry_run", is_dry_run);
    if (n)
        json_add_strings(&w, "names", names, n);
    if (!is_dry_run)
        r = add_answers(cli, inputs, &w, e);
    json_end(&w);
    request.body = slice_of(buf_to_arena(&body, cli->arena));
    return r < 0 ? r : cli_send(cli, &request, ret, e);
}

static int offer_all(struct cli *cli, struct json_value servers, struct err *e)
{
    struct client_reply reply;
    struct json_value server;
    struct buf path;
    bool is_accepted;
    int r = 0;

    if (!cli->is_json && json_length(servers) == 0)
        out_print("The file names no MCP server.\n");
    for (struct json_iter it = json_iter(servers); r == 0 && json_next(&it, NULL, &server);) {
        buf_init(&path, KIB(4));
        buf_add_str(&path, "/api/mcp/servers/");
        percent_encode(&path, json_string(json_get(server, "name")));
        r = cli_get(cli, buf_to_arena(&path, cli->arena), &reply, e);
        if (r == 0)
            r = offer(cli, json_get(reply.json, "server"), &is_accepted, e);
        if (r == 0 && !cli->is_json)
            print_added(json_cstr(json_get(server, "name")), is_accepted);
    }
    return r;
}

int run_mcp_import(struct cli *cli, struct err *e)
{
    struct client_reply preview, reply;
    struct json_value config;
    struct slice text = { 0 };
    int r = cli_read_file(cli, cli->args[0], LIMIT_MCP_IMPORT_BYTES, &text, e);

    if (r == 0)
        r = json_parse(cli->arena, text, &config, e);
    if (r == 0)
        r = send_import(cli, config, (struct json_value){ NULL, 0 }, true, &preview, e);
    if (r == 0)
        r = send_import(cli, config, json_get(preview.json, "inputs"), false, &reply, e);
    if (r == 0)
        r = offer_all(cli, json_get(reply.json, "servers"), e);
    if (r == 0 && cli->is_json)
        cli_show(cli, reply.json);
    return r;
}

/* ---- accept ---- */

static void print_member(struct cli *cli, const char *name, struct json_value before, struct json_value after)
{
    const char *was = json_to_str(cli->arena, json_get(before, name)),
               *is = json_to_str(cli->arena, json_get(after, name));

    if (strcmp(was, is) == 0)
        return;
    out_print("    %s\n      - %s\n      + %s\n", name, was, is);
}

static int accept_tool(struct cli *cli, struct json_value change, struct err *e)
{
    static const char *const members[] = { "title", "description", "inputSchema", "annotations" };
    const char *tool = json_cstr(json_get(change, "tool"));

    out_print("The definition of %s has changed:\n", tool);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        print_member(cli, members[i], json_get(change, "before"), json_get(change, "after"));
    if (is_confirmed(cli, "Accept the new definition?"))
        return send_accept(cli, cli->args[0], tool, json_cstr(json_get(change, "hash")), e);
    out_complain("hearth: %s stays off%s\n", tool, is_terminal() ? "" : "; without a terminal --yes accepts it");
    return CLI_FAILED;
}

static int accept_command(struct cli *cli, struct json_value answer, struct err *e)
{
    if (json_bool(json_get(answer, "accepted")))
        return 0;
    print_runs(cli->args[0], answer);
    if (is_confirmed(cli, "May this run on this machine?"))
        return send_accept(cli, cli->args[0], NULL, NULL, e);
    out_complain("hearth: %s is not accepted and does not run%s\n", cli->args[0],
                 is_terminal() ? "" : "; without a terminal --yes accepts it");
    return CLI_FAILED;
}

int mcp_check_accepted(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    struct json_value server;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}"), &reply, e);

    if (r < 0)
        return r;
    server = json_get(reply.json, "server");
    if (json_bool(json_get(server, "accepted")) || !json_bool(json_get(server, "enabled")))
        return r;
    if (cli->is_json || !is_terminal())
        return err_set(
            e, -EPERM, "SERVER_NOT_TRUSTED",
            "Nobody has accepted the command of the MCP server %.64s yet: `hearth mcp accept %.64s` shows it.",
            cli->args[0], cli->args[0]);
    r = accept_command(cli, server, e);
    return r <= 0 ? r : err_set(e, -EPERM, "SERVER_NOT_TRUSTED", "Nothing was started.");
}

int run_mcp_accept(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    struct json_value change;
    bool is_one = cli->n_args > 1, has_found = false;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}/changes"), &reply, e), r_one;

    if (r < 0)
        return r;
    r = is_one ? 0 : accept_command(cli, reply.json, e);
    for (struct json_iter it = json_iter(json_get(reply.json, "tools")); r >= 0 && json_next(&it, NULL, &change);) {
        if (is_one && !slice_eq_str(json_string(json_get(change, "tool")), cli->args[1]))
            continue;
        has_found = true;
        r_one = accept_tool(cli, change, e);
        r = r_one < 0 ? r_one : MAX(r, r_one);
    }
    if (is_one && !has_found && r == 0)
        return err_set(e, -ENOENT, "TOOL_NOT_FOUND", "%.64s has no tool %.100s whose definition changed", cli->args[0],
                       cli->args[1]);
    if (r == 0)
        out_print("Everything about %s is accepted.\n", cli->args[0]);
    return r;
}

/* ---- call ---- */

/* --arg NAME=VALUE: a value that is JSON counts as JSON, everything else as a text. */
static void add_argument(struct cli *cli, struct json_writer *w, const char *given)
{
    size_t n_name = strcspn(given, "=");
    const char *name = arena_strndup(cli->arena, given, n_name), *text = given + n_name + 1;
    struct json_value value;

    if (json_parse(cli->arena, slice_of(text), &value, NULL) == 0)
        json_add_value(w, name, value);
    else
        json_add_string(w, name, text);
}

static int write_arguments(struct cli *cli, struct json_writer *w, struct err *e)
{
    size_t n;
    const char *const *given = cli_values(cli, "--arg", &n);
    struct json_value arguments;
    struct slice text;
    int r = check_pairs(cli, "--arg", '=', "NAME=VALUE", e);

    if (r == 0 && cli->n_args > 2) {
        text = slice_of(cli->args[2]);
        if (strcmp(cli->args[2], "-") == 0)
            r = cli_read_file(cli, "-", LIMIT_BODY_TOOL, &text, e);
        if (r == 0)
            r = json_parse(cli->arena, text, &arguments, e);
        if (r == 0)
            json_add_value(w, "arguments", arguments);
        return r;
    }
    json_begin_object_as(w, "arguments");
    for (size_t i = 0; r == 0 && i < n; i++)
        add_argument(cli, w, given[i]);
    json_end(w);
    return r;
}

/* Texts as they are, everything else by its kind and size. */
static void print_content(struct json_value content)
{
    struct json_value block;

    for (struct json_iter it = json_iter(content); json_next(&it, NULL, &block);) {
        struct slice type = json_string(json_get(block, "type"));

        if (slice_eq_str(type, "text")) {
            out_lines(stdout, json_string(json_get(block, "text")));
            out_print("\n");
        } else {
            out_print("(%.*s, %s, %zu characters)\n", (int)type.n, type.p,
                      json_cstr(json_get(block, "mimeType")) ? json_cstr(json_get(block, "mimeType"))
                                                             : "of no stated type",
                      json_string(json_get(block, "data")).n);
        }
    }
}

int run_mcp_tools(struct cli *cli, struct err *e)
{
    int r = mcp_check_accepted(cli, e);

    return r < 0 ? r : cli_run_request(cli, e);
}

int run_mcp_call(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = cli_fill_path(cli, "/api/mcp/servers/{0}/call") };
    struct client_reply reply = { 0 };
    struct json_value result;
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, 2 * LIMIT_BODY_TOOL);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "tool", cli->args[1]);
    r = write_arguments(cli, &w, e);
    json_end(&w);
    request.body = slice_of(buf_to_arena(&body, cli->arena));
    if (r == 0)
        r = mcp_check_accepted(cli, e);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    result = json_get(reply.json, "result");
    if (cli->is_json)
        cli_print_json(result);
    else
        print_content(json_get(result, "content"));
    return json_bool(json_get(result, "isError")) ? CLI_FAILED : 0;
}

/* ---- tables of the commands ---- */

/* clang-format off */
const struct cli_option mcp_add_options[] = {
    { "--url", .value = "URL", .help = "of a server that is reached over HTTP" },
    { "--sse", .help = "it speaks the older HTTP with SSE", .field = "server_type" },
    { "--header", .value = "HEADER", .is_many = true, .help = "to send with every request, written as 'Name: value'", .field = "headers" },
    { "--env", .value = "NAME=VALUE", .is_many = true, .help = "a variable for the command; sealed in the data folder" },
    { "--folder", .value = "DIR", .is_many = true, .help = "a folder that it is told of and may change", .field = "folders" },
    { "--read-folder", .value = "DIR", .is_many = true, .help = "a folder that it is told of and may read", .field = "read_folders" },
    { "--working-dir", .value = "DIR", .help = "where it runs; default: a folder of its own" },
    { "--profile", .value = "PROFILE", .help = "of the sandbox: standard, strict (no network) or none", .field = "sandbox" },
    { "--description", .value = "TEXT", .help = "what it is for" },
    { "--tag", .value = "TAG", .is_many = true, .help = "a word to find it by", .field = "tags" },
    { "--client-id", .value = "ID", .help = "of a login: registered at the authorization server" },
    { "--client-secret", .value = "TEXT", .help = "of a login; sealed in the data folder" },
    { "--scope", .value = "SCOPES", .help = "of a login, instead of what the server names" },
    { "--machine", .help = "a login without a person (client credentials)", .field = "grant" },
    { "--private-key", .value = "FILE", .help = "of a login, instead of a secret: PEM; - reads standard input; sealed in the data folder" },
    { "--key-id", .value = "ID", .help = "of that key, as the authorization server knows it" },
    { "--identity-provider", .value = "URL", .help = "where people log in, which vouches for them at the authorization server" },
    { "--identity-client-id", .value = "ID", .help = "of Hearth at that identity provider" },
    { "--identity-client-secret", .value = "TEXT", .help = "of Hearth at that identity provider; sealed in the data folder" },
    { "--trusted", .help = "changed definitions of its tools need no person" },
    { "--yes", .help = "you have seen what runs and accept it", .field = "accept" },
    { .name = NULL },
};
const struct cli_option mcp_import_options[] = {
    { "--only", .value = "NAME", .is_many = true, .help = "only this server", .field = "names" },
    { "--input", .value = "NAME=VALUE", .is_many = true, .help = "the answer to something that the file asks for", .field = "inputs" },
    { "--yes", .help = "you have seen what runs and accept it", .field = "accept" },
    { .name = NULL },
};
const struct cli_option mcp_call_options[] = {
    { "--arg", .value = "NAME=VALUE", .is_many = true, .help = "one argument; a VALUE that is JSON counts as such", .field = "arguments" },
    { .name = NULL },
};
const struct cli_option mcp_accept_options[] = { { "--yes", .help = "accept without being asked", .field = "accept" }, { .name = NULL } };

const struct cli_column mcp_columns[] = {
    { "NAME", "name" }, { "TYPE", "server_type", .drop = 4 }, { "STATUS", "status" }, { "ENABLED", "enabled", CLI_YES_NO, 3 }, { "ACCEPTED", "accepted", CLI_YES_NO, 2 },
    { "TOOLS", "tools", .drop = 5 }, { "CHANGED", "changed_tools", .drop = 6 }, { "ERROR", "error", .drop = 1 }, { .title = NULL },
};
const struct cli_column mcp_tool_columns[] = {
    { "NAME", "name" }, { "USABLE", "usable", CLI_YES_NO }, { "WHY NOT", "why_not", .drop = 1 }, { "DESCRIPTION", "description", .drop = 2 }, { .title = NULL },
};
/* clang-format on */
