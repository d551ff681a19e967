/* Arguments of a tool that are mirrored into headers (2026-07-28, "Custom Headers from Tool Parameters"): the
 * annotation `x-mcp-header` in a tool's inputSchema names them. Pure functions; any thread.
 *
 *     if (mcp_params_check(tool->input_schema, e) < 0)        leave the tool out of the list, over HTTP
 *     r = mcp_params_of(tool->input_schema, arguments, arena, &headers, &n, e);
 */
#pragma once

#include "base/json.h"
#include "net/http_client.h"

/* -EINVAL MCP_BAD_TOOL names the property: an annotation that is no header name, that occurs twice, that stands at no
 * integer, string or boolean, or outside of `properties` below the root; more than LIMIT_MCP_PARAMS. */
int mcp_params_check(struct json_value input_schema, struct err *e) MUST_CHECK;
/* The headers Mcp-Param-NAME for the arguments that are present, encoded, in the arena. -EINVAL as above; -E2BIG
 * MCP_TOO_LARGE for a value above half of LIMIT_MCP_HEADER_BYTES. */
int mcp_params_of(struct json_value input_schema, struct json_value arguments, struct arena *a,
                  struct http_call_header **ret, size_t *ret_n, struct err *e) MUST_CHECK;
