/* The protocol's revisions. */
#include "api/compat/mcp_api.h"

const char *const mcp_api_versions[] = {
    [MCP_API_2024_11_05] = "2024-11-05", [MCP_API_2025_03_26] = "2025-03-26", [MCP_API_2025_06_18] = "2025-06-18",
    [MCP_API_2025_11_25] = "2025-11-25", [MCP_API_2026_07_28] = "2026-07-28", [N_MCP_API_VERSIONS] = NULL,
};

enum mcp_api_version mcp_api_version_of(const char *text)
{
    int version = 0;

    while (text && mcp_api_versions[version] && strcmp(mcp_api_versions[version], text) != 0)
        version++;
    return text ? (enum mcp_api_version)version : N_MCP_API_VERSIONS;
}
