/* May a caller use a tool of an MCP server? A grant of mcp.tools holds for every server; one of "mcp.tools/SERVER" for
 * the tools of that server; one of "mcp.tools/SERVER/TOOL" for that tool alone. The most particular decision counts, so
 * a denial of one tool holds within a grant of all.
 *
 * The one function for api, agents and /mcp. Any worker.
 *
 *     r = mcp_permit(identity, caller, "files", "read_file", a, &use, e);       right before the call: the use is noted
 *     call.meanwhile = audit_meanwhile, call.meanwhile_arg = use;               and stored while the server works
 *     if (r == 0)
 *         r = mcp_permit_end(use, mcp_host_call(...), e);
 *     r = mcp_permit_find(identity, caller, "files", NULL, &is_permitted, e);
 */
#pragma once

#include "identity/identity.h"

struct audit_use;

/* Takes the grant as identity_begin_use() does. tool NULL: the list of the server's tools, for which a grant of one of
 * them suffices. -EPERM PERMISSION_REQUIRED names mcp.tools, or, for an app that was granted a part of it, the part
 * that is missing; -EPERM PERMISSION_DENIED. */
int mcp_permit(struct identity *id, const struct caller *c, const char *server, const char *tool, struct arena *a,
               struct audit_use **ret, struct err *e) MUST_CHECK;
/* After the call, before its answer: waits until the entry of the audit log is on disk. r and e: of the call; its
 * failure counts before that of the entry. */
int mcp_permit_end(struct audit_use *use, int r, struct err *e) MUST_CHECK;
/* The same without asking and noting: what a caller may be shown. */
int mcp_permit_find(struct identity *id, const struct caller *c, const char *server, const char *tool, bool *ret,
                    struct err *e) MUST_CHECK;
/* Has the caller any grant of mcp.tools, whole or of a part? */
int mcp_permit_any(struct identity *id, const struct caller *c, bool *ret, struct err *e) MUST_CHECK;
