#include "api/compat/mcp_api_era.h"

#include "base/base64.h"

#include <stdarg.h>

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define STATELESS_VERSION "2026-07-28"
#define BASE64_HEAD "=?base64?"
#define BASE64_END "?="

static enum mcp_api_era PRINTF_LIKE(3, 4) misfit(struct mcp_api_misfit *why, int code, const char *fmt, ...)
{
    va_list ap;

    why->code = code;
    va_start(ap, fmt);
    vsnprintf(why->text, sizeof(why->text), fmt, ap);
    va_end(ap);
    return MCP_API_MISFIT;
}

/* The member that the header Mcp-Name repeats; NULL: the method has none. */
static const char *named_member(const char *method)
{
    static const struct {
        const char *method, *member;
    } rows[] = { { "tools/call", "name" }, { "prompts/get", "name" }, { "resources/read", "uri" } };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].member;
    return NULL;
}

/* A value that is no plain ASCII is sent as =?base64?...?=. False when that is malformed. */
static bool decode_name(struct arena *a, const char *header, struct slice *ret)
{
    size_t n_head = strlen(BASE64_HEAD), n_end = strlen(BASE64_END), n = strlen(header);
    struct buf out;
    bool is_valid;

    *ret = slice_of(header);
    if (n < n_head + n_end || strncmp(header, BASE64_HEAD, n_head) != 0 || strcmp(header + n - n_end, BASE64_END) != 0)
        return true;
    buf_init(&out, LIMIT_HEADER_BYTES);
    is_valid = base64_decode(&out, (struct slice){ header + n_head, n - n_head - n_end }) == 0;
    ret->n = out.n;
    ret->p = buf_to_arena(&out, a);
    return is_valid;
}

static enum mcp_api_era check_name(const struct http_request *in, const struct json_rpc_frame *frame, struct arena *a,
                                   struct mcp_api_misfit *why)
{
    const char *member = named_member(frame->method), *header = http_header(in, "mcp-name");
    struct json_value value = member ? json_get(frame->params, member) : (struct json_value){ 0 };
    struct slice name;

    if (json_type(value) != JSON_STRING)
        return MCP_API_STATELESS;
    if (!header)
        return misfit(why, MCP_API_HEADER_MISMATCH, "The header Mcp-Name is missing: it must repeat params.%s", member);
    if (!decode_name(a, header, &name) || !slice_eq(name, json_string(value)))
        return misfit(why, MCP_API_HEADER_MISMATCH, "The header Mcp-Name must be the same as params.%s", member);
    return MCP_API_STATELESS;
}

static enum mcp_api_era refuse_version(const char *claimed, struct arena *a, struct mcp_api_misfit *why)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, KIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_strings(&w, "supported", &mcp_api_versions[MCP_API_2026_07_28], 1);
    json_add_slice(&w, "requested", (struct slice){ claimed, strnlen(claimed, 64) });
    json_end(&w);
    why->data = buf_to_arena(&out, a);
    return misfit(why, MCP_API_UNSUPPORTED_VERSION, "Unsupported protocol version");
}

/* Header against body; then the headers that must be there. */
static enum mcp_api_era check_headers(const struct http_request *in, const struct json_rpc_frame *frame,
                                      const char *claimed, struct arena *a, struct mcp_api_misfit *why)
{
    const char *version = http_header(in, "mcp-protocol-version"), *method = http_header(in, "mcp-method");

    if (version && strcmp(version, claimed) != 0)
        return misfit(why, MCP_API_HEADER_MISMATCH,
                      "The header MCP-Protocol-Version must be the same as the version in _meta");
    if (method && strcmp(method, frame->method) != 0)
        return misfit(why, MCP_API_HEADER_MISMATCH, "The header Mcp-Method must be the same as the method");
    if (strcmp(claimed, STATELESS_VERSION) != 0)
        return refuse_version(claimed, a, why);
    if (frame->kind != JSON_RPC_REQUEST)
        return MCP_API_STATELESS;
    if (!version)
        return misfit(why, MCP_API_HEADER_MISMATCH, "The header MCP-Protocol-Version is missing");
    if (!method)
        return misfit(why, MCP_API_HEADER_MISMATCH, "The header Mcp-Method is missing");
    return check_name(in, frame, a, why);
}

static enum mcp_api_era judge_claim(const struct http_request *in, const struct json_rpc_frame *frame,
                                    struct json_value meta, struct arena *a, struct mcp_api_misfit *why)
{
    const char *claimed = json_cstr(json_get(meta, META_VERSION));

    if (!claimed)
        return misfit(why, JSON_RPC_INVALID_PARAMS, "`_meta` must have the string " META_VERSION);
    if (frame->kind == JSON_RPC_REQUEST && json_type(json_get(meta, META_CAPABILITIES)) != JSON_OBJECT)
        return misfit(why, JSON_RPC_INVALID_PARAMS, "`_meta` must have the object " META_CAPABILITIES);
    return check_headers(in, frame, claimed, a, why);
}

enum mcp_api_era mcp_api_era_of(const struct http_request *in, const struct json_rpc_frame *frame, struct arena *a,
                                struct mcp_api_misfit *ret_why)
{
    const char *version = http_header(in, "mcp-protocol-version");
    struct json_value meta = json_get(frame->params, "_meta"), claim = json_get(meta, META_VERSION);
    bool is_named = version && strcmp(version, STATELESS_VERSION) == 0;

    if (!frame->method)
        return is_named ? MCP_API_STATELESS : MCP_API_HANDSHAKE;
    if (strcmp(frame->method, "initialize") == 0 && !slice_eq_str(json_string(claim), STATELESS_VERSION))
        return is_named ? misfit(ret_why, MCP_API_HEADER_MISMATCH,
                                 "`initialize` belongs to the revisions before " STATELESS_VERSION)
                        : MCP_API_HANDSHAKE;
    if (json_type(claim) != JSON_ABSENT)
        return judge_claim(in, frame, meta, a, ret_why);
    if (is_named && frame->kind == JSON_RPC_REQUEST)
        return misfit(ret_why, JSON_RPC_INVALID_PARAMS,
                      "`_meta` is missing: " META_VERSION " and " META_CAPABILITIES " are required");
    return is_named ? MCP_API_STATELESS : MCP_API_HANDSHAKE;
}
