/* The commands of `hearth mcp`. */
#include "cli/command.h"
#include "cli/special.h"

/* clang-format off */

static const char *const mcp_made[] = { "server", NULL };

const struct command commands_mcp[] = {
    { .words = "mcp add", .makes_folder = true, .args = "NAME [COMMAND] [ARG]...", .n_args_min = 1, .n_args_max = CLI_MAX_ARGS, .options = mcp_add_options,
      .is_json = true, .run = run_mcp_add, .made = mcp_made, .summary = "Set up an MCP server, or replace the one of that name",
      .details = "hearth mcp add NAME -- COMMAND ARG...: a program of this machine; hearth mcp add NAME --url URL: one behind an address.\n"
                 "What runs is shown and asked about in the terminal; without a terminal or --yes it waits for `hearth mcp accept NAME`.\n"
                 "It runs in a sandbox that shows it the folders among its arguments and those of --folder." },
    { .words = "mcp import", .makes_folder = true, .args = "FILE", .n_args_min = 1, .n_args_max = 1, .options = mcp_import_options, .is_json = true,
      .run = run_mcp_import, .summary = "Set up the MCP servers that another program has",
      .details = "FILE has an object mcpServers (most programs), or servers and inputs (VS Code); - reads standard input.\n"
                 "What it asks for with ${input:NAME} or ${NAME} is asked once; variables of the environment are taken from there." },
    { .words = "mcp list", .is_json = true, .method = HTTP_GET, .path = "/api/mcp/servers", .list = "servers", .columns = mcp_columns,
      .empty = "No MCP server is set up; `hearth mcp add NAME -- COMMAND` does that.", .summary = "List the MCP servers" },
    { .words = "mcp show", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_mcp_show, .made = mcp_made, .summary = "Show an MCP server: what runs, its state, why it does not run" },
    { .words = "mcp tools", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .is_json = true, .needs_service = true, .run = run_mcp_tools, .method = HTTP_GET,
      .path = "/api/mcp/servers/{0}/tools", .list = "tools", .columns = mcp_tool_columns, .empty = "It has no tools.",
      .summary = "List the tools of an MCP server, which is started when needed" },
    { .words = "mcp call", .args = "SERVER TOOL [JSON]", .n_args_min = 2, .n_args_max = 3, .options = mcp_call_options, .is_json = true, .needs_service = true,
      .run = run_mcp_call, .summary = "Call a tool of an MCP server",
      .details = "JSON is the object of arguments; - reads it from standard input. Exit code 1 when the tool failed." },
    { .words = "mcp resources", .args = "SERVER [URI]", .n_args_min = 1, .n_args_max = 2, .options = mcp_resources_options, .is_json = true, .has_table = true,
      .needs_service = true, .run = run_mcp_resources, .summary = "List the resources of an MCP server and their templates, or read one",
      .details = "A text is printed; of anything else its type and size are told, and --output FILE writes it." },
    { .words = "mcp prompts", .args = "SERVER [PROMPT] [ARG=VALUE]...", .n_args_min = 1, .n_args_max = CLI_MAX_ARGS, .is_json = true, .has_table = true,
      .needs_service = true, .run = run_mcp_prompts, .summary = "List the prompts of an MCP server, or print one with its arguments put in",
      .details = "In the list, arguments in [brackets] may be left out." },
    { .words = "mcp logs", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .needs_service = true, .run = run_mcp_logs,
      .summary = "Print the last lines of an MCP server's standard error and messages" },
    { .words = "mcp accept", .args = "SERVER [TOOL]", .n_args_min = 1, .n_args_max = 2, .options = mcp_accept_options, .run = run_mcp_accept,
      .summary = "Look at what runs, or at changed definitions of tools, and accept them",
      .details = "A tool whose definition changed is off until a person has accepted the new one, because models read it." },
    { .words = "mcp enable", .args = "SERVER [TOOL]", .n_args_min = 1, .n_args_max = 2, .run = run_mcp_enable, .body = body_mcp_tool,
      .summary = "Enable an MCP server or one of its tools" },
    { .words = "mcp disable", .args = "SERVER [TOOL]", .n_args_min = 1, .n_args_max = 2, .run = run_mcp_disable, .body = body_mcp_tool,
      .summary = "Disable an MCP server or one of its tools" },
    { .words = "mcp restart", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .method = HTTP_POST, .path = "/api/mcp/servers/{0}/restart",
      .done = "{0} starts again with its next use.", .summary = "End an MCP server; its next use starts it again" },
    { .words = "mcp login", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .options = mcp_login_options, .needs_service = true, .run = run_mcp_login,
      .summary = "Log in at a remote MCP server, in a browser",
      .details = "A server with --machine needs no person: the command takes a token, and so shows what is missing." },
    { .words = "mcp logout", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .needs_service = true, .method = HTTP_POST,
      .path = "/api/mcp/servers/{0}/logout", .done = "The login at {0} is forgotten.", .summary = "Forget the login at a remote MCP server" },
    { .words = "mcp remove", .args = "SERVER", .n_args_min = 1, .n_args_max = 1, .method = HTTP_DELETE, .path = "/api/mcp/servers/{0}",
      .done = "The MCP server {0} is removed.", .summary = "Forget an MCP server and its secrets" },
    { .words = "mcp serve", .options = mcp_serve_options, .needs_service = true, .run = run_mcp_serve,
      .summary = "Serve MCP over standard input and output, for programs that start their servers",
      .details = "Each line is a request to /mcp of the running service. `hearth mcp config` prints how programs start it." },
    { .words = "mcp config", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .options = mcp_config_options, .run = run_mcp_config,
      .summary = "Print what the settings of an MCP client need to use Hearth",
      .details = "NAME is claude-code, claude-desktop, codex, cursor, vscode, zed or http (any client that takes an address)." },
    { .words = NULL, .more = commands_backend },
};
