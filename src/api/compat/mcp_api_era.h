/* Which era of the protocol a frame belongs to, and whether its headers agree with its body (revision 2026-07-28,
 * "Transports"; docs/mcp-server.md). Pure; any thread. */
#pragma once

#include "api/compat/mcp_api.h"

enum mcp_api_era { MCP_API_HANDSHAKE, MCP_API_STATELESS, MCP_API_MISFIT };

/* Why a frame is refused: 400 with this JSON-RPC error. */
struct mcp_api_misfit {
    int code;
    char text[256];
    const char *data; /* JSON, in the arena; NULL: none */
};

enum mcp_api_era mcp_api_era_of(const struct http_request *in, const struct json_rpc_frame *frame, struct arena *a,
                                struct mcp_api_misfit *ret_why);
