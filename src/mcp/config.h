/* Definitions of MCP servers as other programs keep them: an object `mcpServers` (most programs), or `servers` with
 * `inputs` (VS Code, also below `mcp`).
 *
 * Any thread; everything lies in the arena. Texts may hold references: ${input:ID}, ${env:NAME}, ${NAME},
 * ${NAME:-default}, ${workspaceFolder}. Each is one input, which is asked for once; ${userHome} is the home folder. A
 * name that Hearth does not take is made fit ("My Files" becomes My-Files) and kept as display_name.
 *
 *     r = mcp_config_read(arena, root, &config, e);
 *     for (i = 0; i < config.n; i++)
 *         r = mcp_config_server(&config, i, answers, arena, &server, e);
 */
#pragma once

#include "mcp/server.h"

struct mcp_input {
    const char *id;          /* "input:token", "env:HOME", "workspaceFolder" */
    const char *description; /* NULL: none */
    const char *value;       /* when nobody answers; NULL: none */
    bool is_secret;
    struct json_value choices; /* an array of texts, or absent */
};

struct mcp_config_entry {
    const char *name, *display_name;
    struct json_value object;
};

struct mcp_config {
    struct mcp_config_entry *items;
    size_t n;
    struct mcp_input *inputs;
    size_t n_inputs;
};

/* -EINVAL VALIDATION_ERROR: neither of the forms, two servers of one name, more than LIMIT_MCP_SERVERS or
 * LIMIT_MCP_INPUTS. */
int mcp_config_read(struct arena *a, struct json_value root, struct mcp_config *ret, struct err *e) MUST_CHECK;
/* One server with the answers (an object of texts by the inputs' ids) put in; completed and not yet checked
 * (mcp_server_check()). -EINVAL VALIDATION_ERROR names the server, and the input that has no answer. */
int mcp_config_server(const struct mcp_config *c, size_t at, struct json_value answers, struct arena *a,
                      struct mcp_server *ret, struct err *e) MUST_CHECK;
