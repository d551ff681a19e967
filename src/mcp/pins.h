/* Pinned definitions: what a tool is called, how it is described and which arguments it takes is kept at first sight. A
 * tool whose definition differs later is disabled until a person accepts the new definition, because its text reaches
 * models.
 *
 * Any worker thread. The order of members within a definition does not count.
 *
 *     r = mcp_pins_check(store, "files", false, tools.items, tools.n, arena, why_not, e);
 */
#pragma once

#include "mcp/client.h"
#include "store/tables/mcp_servers.h"

/* Pins new tools. why_not has n elements: NULL where the tool may be used, otherwise why not, a literal.
 * accepts_changes: a changed definition replaces its pin. -ENOENT SERVER_NOT_FOUND: it was removed meanwhile. */
int mcp_pins_check(struct store *store, const char *server, bool accepts_changes, const struct mcp_tool *tools,
                   size_t n, struct arena *a, const char **why_not, struct err *e) MUST_CHECK;

/* The tools whose definitions changed; of each row all members are set. */
int mcp_pins_changed(struct store *store, const char *server, struct arena *a, struct mcp_pin_row **ret, size_t *ret_n,
                     struct err *e) MUST_CHECK;
/* Accepts the changed definition of a tool, of every tool when NULL. hash: of the definition that the person saw; NULL:
 * whatever is there. -ENOENT TOOL_NOT_FOUND when nothing of this name has changed, -EAGAIN TOOL_CHANGED when it has
 * changed once more since. */
int mcp_pins_accept(struct store *store, const char *server, const char *tool, const char *hash,
                    struct err *e) MUST_CHECK;
