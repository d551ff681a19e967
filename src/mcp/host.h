/* The configured MCP servers: their definitions, their life, their tools.
 *
 * One per process, opened by service/; any thread but the loop's, except where noted. A server starts on its first use,
 * one start for all callers that wait for it; an idle one ends after the setting mcp.idle_stop_s. A call in flight
 * fails when its server ends and is never repeated. Results live in the arena of the call. Grants are the caller's
 * business (identity/mcp_permit.h).
 *
 *     struct mcp_call call = { .arena = a, .wait = &wait };
 *     r = mcp_host_call(host, "files", "read_file", arguments, &call, &result, e);
 */
#pragma once

#include "base/json_schema.h"
#include "identity/identity.h"
#include "mcp/client.h"
#include "mcp/oauth.h"
#include "mcp/server.h"
#include "os/child.h"

struct mcp_host;

enum mcp_status { MCP_STOPPED, MCP_STARTING, MCP_RUNNING, MCP_FAILED };
const char *mcp_status_name(enum mcp_status s); /* "stopped", "starting", "running", "error" (decision D12) */

/* What a person is asked before a command runs for the first time, and again after it changed. */
struct mcp_trust_question {
    const char *server;
    const char *shown; /* exactly what runs: command, arguments, names of variables, folders, profile */
};

/* Filled by service/wiring. Each of the asking functions blocks; NULL: nobody can be asked. */
struct mcp_host_hooks {
    /* 1: a person allows the command; 0: a person denies it; -EAGAIN: nobody answered. */
    int (*trust)(void *arg, const struct mcp_trust_question *q, const struct net_wait *wait, struct err *e);
    /* As in struct mcp_handlers. */
    int (*sample)(void *arg, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                  struct err *e);
    int (*elicit)(void *arg, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                  struct err *e);
    void (*changed)(void *arg, const char *server); /* state, tools or definition; any thread */
    void *arg;
};

struct mcp_host_config { /* all borrowed */
    struct store *store;
    struct settings *settings;
    struct identity *identity;
    struct supervisor *supervisor; /* NULL: no server can be started (command line without a service) */
    struct sandbox *sandbox;
    struct mcp_oauth *oauth; /* NULL: no logins */
    const char *data_dir;
    struct mcp_host_hooks hooks;
};

int mcp_host_open(const struct mcp_host_config *c, struct mcp_host **ret, struct err *e) MUST_CHECK;
/* Refuses further calls and ends every server; before the supervisor closes, while the loop runs. */
void mcp_host_stop(struct mcp_host *h);
struct mcp_host *mcp_host_close(struct mcp_host *h);
/* Stored servers that could not be read at the start. */
size_t mcp_host_n_unusable(const struct mcp_host *h);

/* ---- for api and agents ---- */

struct mcp_server_info {
    const struct mcp_server *server; /* definition; secrets included: never show env and headers */
    enum mcp_status status;
    const char *error; /* why it does not run; NULL */
    int64_t pid;       /* 0: none */
    size_t n_tools;    /* of a running server */
    const char *started_at;
    const char *protocol;     /* version in force; NULL: not running */
    const char *instructions; /* of the running server; NULL: none */
    bool needs_trust;         /* a person has not accepted its command yet */
    size_t n_changed_tools;   /* disabled until a person accepts their new definitions */
};
struct mcp_server_infos {
    struct mcp_server_info *items;
    size_t n;
};

struct mcp_host_tool {
    struct mcp_tool tool;
    const struct json_schema *schema; /* of the arguments; compiled */
    const char *why_not; /* disabled, changed, or of an unusable schema: not to be called or shown to models; NULL */
};
struct mcp_host_tools {
    const struct mcp_host_tool *items;
    size_t n;
};

/* Every server, in the order of configuration. Starts none. */
int mcp_host_servers(struct mcp_host *h, struct arena *a, struct mcp_server_infos *ret, struct err *e) MUST_CHECK;
/* -ENOENT SERVER_NOT_FOUND */
int mcp_host_server(struct mcp_host *h, const char *server, struct arena *a, struct mcp_server_info *ret,
                    struct err *e) MUST_CHECK;
/* Starts the server when needed. -ENOENT SERVER_NOT_FOUND, -EPERM SERVER_DISABLED, SERVER_NOT_TRUSTED, -EIO
 * MCP_SERVER_ERROR with the end of standard error, -ETIMEDOUT MCP_TIMEOUT, -ECANCELED. */
int mcp_host_tools(struct mcp_host *h, const char *server, const struct mcp_call *call, struct mcp_host_tools *ret,
                   struct err *e) MUST_CHECK;
/* The same, and -ENOENT TOOL_NOT_FOUND, -EPERM TOOL_DISABLED, TOOL_CHANGED, -EINVAL VALIDATION_ERROR for arguments that
 * the tool's schema refuses, -EAGAIN TOO_MANY_CALLS. A tool's own failure is a result with is_error. */
int mcp_host_call(struct mcp_host *h, const char *server, const char *tool, struct json_value arguments,
                  const struct mcp_call *call, struct mcp_result *ret, struct err *e) MUST_CHECK;
/* The running client for resources, prompts and the like, held until the arena of the call ends. Errors as
 * mcp_host_tools(). */
int mcp_host_client(struct mcp_host *h, const char *server, const struct mcp_call *call, struct mcp_client **ret,
                    struct err *e) MUST_CHECK;
/* What the server is to the authorization (mcp/oauth.h); in the arena. -ENOENT; -EINVAL VALIDATION_ERROR: a server of
 * this machine knows no login. */
int mcp_host_target(struct mcp_host *h, const char *server, struct arena *a, struct mcp_oauth_target *ret,
                    struct err *e) MUST_CHECK;
/* An error of an operation on mcp_host_client() as mcp_host_call() returns it. */
int mcp_host_err(struct mcp_host *h, const char *server, int r, struct err *e);
/* The last lines of standard error, in the arena; "" when there are none. -ENOENT */
int mcp_host_log(struct mcp_host *h, const char *server, struct arena *a, const char **ret, struct err *e) MUST_CHECK;

/* ---- for management; the caller makes one change at a time ---- */

/* Adds or replaces; a running server of that name ends. `is_by_person`: the command counts as accepted. -EINVAL
 * VALIDATION_ERROR, -EDQUOT TOO_MANY_SERVERS. */
int mcp_host_put(struct mcp_host *h, const struct mcp_server *server, bool is_by_person, struct err *e) MUST_CHECK;
int mcp_host_remove(struct mcp_host *h, const char *server, struct err *e) MUST_CHECK;
int mcp_host_enable(struct mcp_host *h, const char *server, const char *tool /* NULL: the server */, bool is_enabled,
                    struct err *e) MUST_CHECK;
/* Accepts the changed definition of a tool; tool NULL: the command and the definitions of all tools. hash: as
 * mcp_pins_accept(). */
int mcp_host_accept(struct mcp_host *h, const char *server, const char *tool, const char *hash,
                    struct err *e) MUST_CHECK;
/* Ends the server now; its next use starts it again. */
int mcp_host_restart(struct mcp_host *h, const char *server, struct err *e) MUST_CHECK;
