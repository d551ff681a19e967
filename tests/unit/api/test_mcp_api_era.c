#include "api/compat/mcp_api_era.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define VERSION "io.modelcontextprotocol/protocolVersion"
#define CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META "\"_meta\":{\"" VERSION "\":\"2026-07-28\",\"" CAPABILITIES "\":{}}"

/* A frame and three headers; code: of the refusal. */
struct era_case {
    const char *frame, *version, *method, *name;
    enum mcp_api_era era;
    int code;
};

static const struct era_case cases[] = {
    { "\"id\":1,\"method\":\"initialize\",\"params\":{}", NULL, NULL, NULL, MCP_API_HANDSHAKE, 0 },
    { "\"id\":1,\"method\":\"initialize\",\"params\":{}", "2025-11-25", NULL, NULL, MCP_API_HANDSHAKE, 0 },
    { "\"id\":1,\"method\":\"initialize\",\"params\":{}", "2026-07-28", NULL, NULL, MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"ping\"", NULL, NULL, NULL, MCP_API_HANDSHAKE, 0 },
    { "\"id\":1,\"method\":\"ping\"", "2099-01-01", NULL, NULL, MCP_API_HANDSHAKE, 0 },
    { "\"id\":1,\"method\":\"ping\"", "2026-07-28", "ping", NULL, MCP_API_MISFIT, -32602 },
    { "\"method\":\"notifications/x\"", "2026-07-28", NULL, NULL, MCP_API_STATELESS, 0 },
    { "\"id\":1,\"result\":{}", "2026-07-28", NULL, NULL, MCP_API_STATELESS, 0 },
    { "\"id\":1,\"result\":{}", NULL, NULL, NULL, MCP_API_HANDSHAKE, 0 },
    { "\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}", "2026-07-28", "tools/list", NULL, MCP_API_STATELESS,
      0 },
    { "\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}", NULL, "tools/list", NULL, MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}", "2026-07-28", NULL, NULL, MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}", "2026-07-28", "ping", NULL, MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}", "2025-11-25", "tools/list", NULL, MCP_API_MISFIT,
      -32020 },
    { "\"id\":1,\"method\":\"initialize\",\"params\":{" META "}", "2026-07-28", "initialize", NULL, MCP_API_STATELESS,
      0 },
    { "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"" VERSION "\":7,\"" CAPABILITIES "\":{}}}", NULL, NULL, NULL,
      MCP_API_MISFIT, -32602 },
    { "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"" VERSION "\":\"2026-07-28\"}}", "2026-07-28", "x", NULL,
      MCP_API_MISFIT, -32602 },
    { "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"" VERSION "\":\"2099-01-01\",\"" CAPABILITIES "\":{}}}",
      "2099-01-01", "x", NULL, MCP_API_MISFIT, -32022 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"," META "}", "2026-07-28", "tools/call", "a",
      MCP_API_STATELESS, 0 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xc3\xb6\"," META "}", "2026-07-28", "tools/call",
      "=?base64?w7Y=?=", MCP_API_STATELESS, 0 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"," META "}", "2026-07-28", "tools/call",
      "=?base64?!?=", MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"," META "}", "2026-07-28", "tools/call", "b",
      MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"," META "}", "2026-07-28", "tools/call", NULL,
      MCP_API_MISFIT, -32020 },
    { "\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"a:b\"," META "}", "2026-07-28", "resources/read",
      "a:b", MCP_API_STATELESS, 0 },
    { "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":1," META "}", "2026-07-28", "tools/call", NULL,
      MCP_API_STATELESS, 0 },
};

static enum mcp_api_era judge(struct arena *a, const struct era_case *c, struct mcp_api_misfit *why)
{
    const struct http_header all[] = { { "mcp-protocol-version", c->version },
                                       { "mcp-method", c->method },
                                       { "mcp-name", c->name } };
    struct http_header given[ARRAY_SIZE(all)];
    struct http_request in = { .headers = given };
    struct json_rpc_frame frame;

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (all[i].value)
            given[in.n_headers++] = all[i];
    assert_int_equal(
        json_rpc_read(a, slice_of(arena_printf(a, "{\"jsonrpc\":\"2.0\",%s}", c->frame)), KIB(64), &frame, NULL), 0);
    return mcp_api_era_of(&in, &frame, a, why);
}

static void frames_are_judged_by_body_and_headers(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_api_misfit why = { 0 };

        assert_int_equal(judge(a, &cases[i], &why), cases[i].era);
        assert_int_equal(why.code, cases[i].code);
        assert_int_equal(*why.text != '\0', cases[i].code != 0);
    }
}

static void an_unknown_version_names_those_that_are_served(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_api_misfit why = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (cases[i].code == MCP_API_UNSUPPORTED_VERSION)
            assert_int_equal(judge(a, &cases[i], &why), MCP_API_MISFIT);
    assert_string_equal(why.data, "{\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"}");
}

static void versions_are_known_by_their_names(void **state)
{
    for (int i = 0; i < N_MCP_API_VERSIONS; i++)
        assert_int_equal(mcp_api_version_of(mcp_api_versions[i]), i);
    assert_int_equal(mcp_api_version_of("2025-11-2"), N_MCP_API_VERSIONS);
    assert_int_equal(mcp_api_version_of(NULL), N_MCP_API_VERSIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_judged_by_body_and_headers),
        cmocka_unit_test(an_unknown_version_names_those_that_are_served),
        cmocka_unit_test(versions_are_known_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
