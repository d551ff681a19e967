/* A link to an MCP server over streamable HTTP (revisions 2025-03-26 to 2025-11-25 with sessions, and 2026-07-28
 * without), and over the HTTP with SSE of 2024-11-05 (mcp_sse_open()).
 *
 * Each frame is a POST; its response, one JSON body or a stream of events, is read on the thread that is in send().
 * What the server sends unasked comes on a stream of its own, which a thread of the link reads after listen(). A stream
 * that breaks before its response is resumed by the id of its last event, as far as the server gives ids. The server's
 * session id is kept here; at close() the session is ended. A redirect (307, 308) is followed within the server's
 * origin only.
 *
 *     r = mcp_http_open(&(struct mcp_http_config){ .url = "https://mcp.example.org/mcp" }, &link, e);
 */
#pragma once

#include "mcp/authorizer.h"
#include "mcp/link.h"
#include "net/http_client.h"

struct mcp_http_config {
    const char *url;
    const struct http_call_header *headers;  /* that the person configured, sent with every request */
    size_t n_headers;                        /* at most LIMIT_MCP_HEADERS */
    const struct mcp_authorizer *authorizer; /* copied and released by the link, at failure too; NULL, or a configured
                                              * Authorization: 401 is an error */
    const struct guard *guard;               /* borrowed; NULL: a person named the address (net/http_client.h) */
};

/* Sends nothing. -EINVAL BAD_URL, or BAD_HEADER: no header, or one that the transport writes itself. */
int mcp_http_open(const struct mcp_http_config *c, struct mcp_link **ret, struct err *e) MUST_CHECK;
int mcp_sse_open(const struct mcp_http_config *c, struct mcp_link **ret, struct err *e) MUST_CHECK;
/* The rule of these headers alone, for configurations. */
int mcp_http_check_header(const char *name, const char *value, struct err *e) MUST_CHECK;
