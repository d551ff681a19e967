/* The built-in tools of model agents: one table, one row a tool, one file a family of tools.
 *
 * A tool blocks its thread (of the pool `agents`, never the loop) within the turn's deadline and cancel, which
 * `wait` carries. It acts as the turn's caller and with that caller's grants: a tool that does what a route does
 * runs that route. What it answers lies in the call's arena.
 *
 *     const struct builtin_tool *tool = builtin_find("read_file");
 *     r = tool->run(&(struct builtin_call){ .call = call, .wait = &wait, .arguments = arguments, ... }, &result, e);
 */
#pragma once

#include "agents/agents.h"
#include "models/models.h"
#include "net/wait.h"

#include <stdatomic.h>

struct approvals;
struct mcp_result;

struct builtin_call;
struct json_schema;

/* What the tools need of other modules; filled by service/ (wire_builtin_services()). */
struct builtin_services {
    struct supervisor *supervisor; /* of run_command; NULL: no program can be started */
    /* Runs the route that does what the tool does, with these arguments, as c's caller and with the same checks; its
     * answer as JSON text in the call's arena. NULL: these tools do not work here. */
    int (*run_route)(void *arg, const struct builtin_call *c, const char *tool, struct slice *ret, struct err *e);
    void *arg;
};

struct builtin_call {
    struct models_call *call; /* caller, arena, is_gone */
    const struct agent_definition *agent;
    struct approvals *approvals;
    const char *session_id, *thread_dir, *task_uuid, *app_id; /* NULL: none; thread_dir: the thread's own folder */
    const struct net_wait *wait;                              /* deadline and cancel of the turn */
    struct json_value arguments;                              /* an object, already valid for the tool's schema */
    const struct builtin_services *services;
    atomic_int *n_triggers; /* of the turn; NULL: not counted */
};

struct builtin_tool {
    const char *name, *title, *description;
    const char *input_schema; /* JSON text */
    /* is_read_only: changes nothing and sends nothing that a model chose to others. needs_approval: a person is asked
     * before every call, whatever the agent's policy is. */
    bool is_read_only, is_destructive, needs_approval;
    bool waits_for_person;  /* run() itself puts a question to a person */
    const char *permission; /* of identity/permissions.h; NULL: agent.chat is enough */
    /* NULL: always; false: the tool is not offered to models (run_command, while its setting is off). */
    bool (*is_on)(const struct models_call *call);
    /* Negative: becomes the tool's error for the model; -ECANCELED ends the turn. */
    int (*run)(const struct builtin_call *c, struct mcp_result *ret, struct err *e);
};

extern const struct builtin_tool builtin_tools[];
extern const size_t n_builtin_tools;

const struct builtin_tool *builtin_find(const char *name);     /* NULL: there is none */
int builtin_check(const char *name, struct err *e) MUST_CHECK; /* -ENOENT TOOL_NOT_FOUND names the nearest */
/* The schema of the row's arguments, read once for the whole process; any thread. */
const struct json_schema *builtin_schema(const struct builtin_tool *tool, struct json_value *ret_value);
