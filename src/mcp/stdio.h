/* A link to an MCP server that is a child process: one frame a line on its standard input and output.
 *
 * One thread a connection reads the lines and writes what senders could not write at once. Lines that are no JSON
 * object or array are not frames: they go to the child's log, as its standard error does. The end: standard input
 * closes; a server that is still there after LIMIT_MCP_EOF_MS gets SIGTERM, and after spec.stop_grace_ms SIGKILL, with
 * all processes it has made (os/child). Opened and closed on any thread but the loop's.
 *
 *     struct child_spec spec = { .label = "mcp files", .command = "node", .args = args, .env = env, .log = log };
 *     r = mcp_stdio_open(&(struct mcp_stdio_config){ supervisor, &spec }, &link, e);
 */
#pragma once

#include "mcp/link.h"
#include "os/child.h"

struct mcp_stdio_config {
    struct supervisor *supervisor; /* borrowed; lives longer than the link */
    const struct child_spec *spec; /* used during the call; `ends`, `on_exit`, `arg`, `max_stdout` are set here */
};

/* Fails as child_start() does. */
int mcp_stdio_open(const struct mcp_stdio_config *c, struct mcp_link **ret, struct err *e) MUST_CHECK;
/* Of the program, for show. */
pid_t mcp_stdio_pid(const struct mcp_link *l);
