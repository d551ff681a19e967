/* sampling/createMessage of an MCP server (revision 2025-11-25, "Sampling"): a person is asked, then a model answers,
 * for the caller of the tool call and with its grants, limits and usage. The server never chooses more than the caller
 * may use: its hints are names to look for among the caller's models, includeContext is not read.
 *
 *     r = agent_sample(&(struct sampling){ &models, approvals }, "files", request, &result, e);
 */
#pragma once

#include "mcp/client.h"
#include "models/models.h"

struct approvals;

struct sampling { /* borrowed */
    const struct models *models;
    struct approvals *approvals;
};

/* Blocks: setting approvals.wait_s for the person, LIMIT_MCP_REQUEST_MS for the model, both until request->wait is
 * cancelled. Writes {role, content, model, stopReason}. -EINVAL VALIDATION_ERROR; -EPERM PERMISSION_DENIED: the person
 * did not allow it, or nobody answered; -ENOTSUP CLIENT_CANNOT: no caller is known; those of approvals_request() and
 * chat_run(). */
int agent_sample(const struct sampling *s, const char *server, const struct mcp_server_request *request,
                 struct buf *ret_result, struct err *e) MUST_CHECK;
