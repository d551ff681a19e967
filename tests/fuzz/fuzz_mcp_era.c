/* The first three lines are headers of an MCP client, the rest is its frame: whether they agree is decided without a
 * read beyond either, and a refusal has its reason. */
#include "api/compat/mcp_api_era.h"

#include <assert.h>

static const char *next_line(struct arena *a, struct slice *rest)
{
    const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    char *line = arena_strndup(a, rest->n > 0 ? rest->p : "", strnlen(rest->n > 0 ? rest->p : "", n));

    *rest = (struct slice){ rest->p + n + (end != NULL), rest->n - n - (end != NULL) };
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "mcp-protocol-version", "mcp-method", "mcp-name" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice rest = { (const char *)data, size };
    struct http_header headers[ARRAY_SIZE(names)];
    struct http_request in = { .headers = headers };
    struct mcp_api_misfit why = { 0 };
    struct json_rpc_frame frame;
    enum mcp_api_era era;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = next_line(a, &rest);

        if (*value)
            headers[in.n_headers++] = (struct http_header){ names[i], value };
    }
    if (json_rpc_read(a, rest, KIB(64), &frame, NULL) < 0)
        return 0;
    era = mcp_api_era_of(&in, &frame, a, &why);
    assert((era == MCP_API_MISFIT) == (why.code != 0) && (why.code != 0) == (*why.text != '\0'));
    return 0;
}
