/* What /mcp offers. The program of the conformance tests is linked with a file of its own in this one's place
 * (tests/unit/api/mcp_fixtures.c). */
#include "api/compat/mcp_api_turn.h"

static const struct mcp_api_source *const tools[] = { &mcp_api_own_tools, &mcp_api_server_tools, NULL };
static const struct mcp_api_kind *const resources[] = { &mcp_api_task_kind, &mcp_api_thread_kind, NULL };
static const struct mcp_api_prompts *const prompts[] = { &mcp_api_own_prompts, NULL };

const struct mcp_api_profile mcp_api_profile = { tools, resources, prompts };
