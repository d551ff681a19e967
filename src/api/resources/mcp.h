/* Shared by the routes about MCP servers. For handlers, on their worker. */
#pragma once

#include "api/route.h"
#include "mcp/host.h"

/* "local" or "remote" (specification, "MCP server and tool"). */
const char *mcp_provider_of(const struct mcp_server *server);
/* The members of the contract's Server resource, but its status. */
void mcp_write_server(struct json_writer *w, const struct mcp_server *server);
/* A call for this request: until its client leaves, at most mcp.call_s. In the request's arena. */
struct mcp_call *mcp_call_of(struct request *req) MUST_CHECK;
/* Audits the whole definition, with the values of variables and headers masked whatever their names are. */
int mcp_audit(const struct request *req, const char *action, const struct mcp_server *server, struct err *e) MUST_CHECK;
/* The member `result`. */
extern const struct field mcp_result_shape[];
void mcp_write_result(struct json_writer *w, const struct mcp_result *result);
