#include "base/base64.h"
#include "mcp/http_private.h"

#include <string.h>
#include <strings.h>

enum { MOST_OWN_HEADERS = 8 };

/* Written by the transport, or by libcurl for the request's delimitation. */
static const char *const own_headers[] = { "Accept",     "Content-Type", "Content-Length", "Transfer-Encoding",
                                           "Host",       "Connection",   "Mcp-Session-Id", "MCP-Protocol-Version",
                                           "Mcp-Method", "Mcp-Name",     "Last-Event-ID",  "Expect",
                                           "Upgrade",    "TE",           "Trailer" };

static bool is_own(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(own_headers); i++)
        if (strcasecmp(own_headers[i], name) == 0)
            return true;
    return strncasecmp(name, "Mcp-Param-", 10) == 0;
}

bool mcp_http_is_token(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
              strchr("!#$%&'*+-.^_`|~", *c)))
            return false;
    return *name != '\0';
}

static bool has_controls(const char *value)
{
    for (const char *c = value; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
            return true;
    return false;
}

int mcp_http_check_header(const char *name, const char *value, struct err *e)
{
    if (!mcp_http_is_token(name) || strlen(name) > LIMIT_NAME_CHARS)
        return err_set(e, -EINVAL, "BAD_HEADER", "A header's name must be a word of letters, digits and -.");
    if (is_own(name))
        return err_set(e, -EINVAL, "BAD_HEADER", "The header %s is written by Hearth and cannot be set.", name);
    if (strlen(value) > LIMIT_MCP_HEADER_BYTES || has_controls(value))
        return err_set(e, -EINVAL, "BAD_HEADER",
                       "The value of the header %s must be one line of at most %d bytes without control characters.",
                       name, LIMIT_MCP_HEADER_BYTES);
    return 0;
}

bool mcp_version_is_stateless(const char *version)
{
    return version && strcmp(version, "2026-07-28") >= 0; /* versions are dates */
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Whether the text can be a header's value that its reader does not take for an encoded one. */
static bool is_plain_value(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if ((text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
            return false;
    if (n > 0 && (is_blank(text[0]) || is_blank(text[n - 1])))
        return false;
    return n < 11 || strncmp(text, "=?base64?", 9) != 0 || strcmp(text + n - 2, "?=") != 0;
}

const char *mcp_http_value(struct arena *a, const char *text)
{
    struct buf out;

    if (is_plain_value(text))
        return text;
    buf_init(&out, 2 * (strlen(text) + 16));
    buf_add_str(&out, "=?base64?");
    base64_encode(&out, slice_of(text));
    buf_add_str(&out, "?=");
    return buf_to_arena(&out, a);
}

static void add(struct http_call_header *headers, size_t *n, const char *name, const char *value)
{
    if (value && *value)
        headers[(*n)++] = (struct http_call_header){ name, value };
}

struct http_call_header *mcp_http_headers(struct arena *a, const struct mcp_http *h, const struct mcp_http_request *q,
                                          const char *session, const char *authorization, size_t *ret_n)
{
    struct http_call_header *headers = arena_array(a, h->n_headers + q->n_params + MOST_OWN_HEADERS, sizeof(*headers));
    bool is_stateless = mcp_version_is_stateless(q->version);
    size_t n = h->n_headers;

    if (n > 0)
        memcpy(headers, h->headers, n * sizeof(*headers));
    add(headers, &n, "Accept", q->accept);
    add(headers, &n, "Content-Type", q->body.n > 0 ? "application/json" : NULL);
    add(headers, &n, "MCP-Protocol-Version", q->version);
    add(headers, &n, "Mcp-Session-Id", is_stateless ? NULL : session);
    add(headers, &n, "Mcp-Method", is_stateless ? q->rpc_method : NULL);
    add(headers, &n, "Mcp-Name", is_stateless && q->rpc_name ? mcp_http_value(a, q->rpc_name) : NULL);
    for (size_t i = 0; is_stateless && i < q->n_params; i++)
        headers[n++] = q->params[i]; /* also an empty one */
    add(headers, &n, "Last-Event-ID", q->last_event);
    add(headers, &n, "Authorization", authorization);
    *ret_n = n;
    return headers;
}
