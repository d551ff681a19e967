/* The tools that one turn may use: built-in tools and tools of MCP servers that the agent's patterns name and the
 * caller's grants allow.
 *
 * Names as the model sees them are [A-Za-z0-9_-]{1,64}: a built-in tool's own name, `server__tool` for a server's tool;
 * what does not fit is mended and made unique. Everything is allocated in the arena. Any worker: filling may start a
 * server, so it may block.
 *
 *     r = agent_toolbox_fill(&config, arena, &toolbox, e);
 *     tool = agent_toolbox_find(&toolbox, "files__read_file");
 */
#pragma once

#include "base/fields.h"

struct agent_definition;
struct builtin_tool;
struct json_schema;
struct mcp_host;
struct models_call;
struct net_wait;

enum { AGENT_TOOL_NAME_MAX = 64 };

struct agent_tool {
    const char *name;          /* as the model sees it */
    const char *server, *tool; /* server NULL: a built-in tool */
    const char *title, *description;
    struct json_value schema;           /* of the arguments, an object */
    const struct json_schema *compiled; /* the same; NULL: not yet */
    bool is_read_only, is_destructive;
    bool needs_approval; /* whatever the policy of the agent is */
    const struct builtin_tool *builtin;
};
struct agent_toolbox {
    struct agent_tool *items;
    size_t n;
    const char *const *missing; /* sentences about servers whose tools could not be had; for thoughts and the log */
    size_t n_missing;
};

struct agent_toolbox_config {
    const struct models_call *call;       /* the caller, whose grants limit the tools */
    const struct agent_definition *agent; /* its patterns choose (agent_tools_hold()) */
    struct mcp_host *host;                /* NULL: built-in tools only */
    const struct net_wait *wait;          /* for servers that must be started */
};

/* A server that does not answer adds a sentence to `missing`, and the other tools are still there. At most
 * LIMIT_AGENT_TOOLS tools: more are -E2BIG TOO_MANY_TOOLS. -ECANCELED SHUTTING_DOWN. */
int agent_toolbox_fill(const struct agent_toolbox_config *c, struct arena *a, struct agent_toolbox *ret,
                       struct err *e) MUST_CHECK;
/* NULL: there is none. */
const struct agent_tool *agent_toolbox_find(const struct agent_toolbox *toolbox, const char *name);
/* The nearest name, for a model that mistyped it; NULL: none is near. */
const char *agent_toolbox_suggest(const struct agent_toolbox *toolbox, const char *name, struct arena *a);
