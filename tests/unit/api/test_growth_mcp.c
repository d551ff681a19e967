/* The time to read what an MCP server sends grows linearly with its length (growth.h). */
#include "growth.h"

#include "../mcp/fake_link.h"

static struct slice result; /* of every request after the opening */

static void serve_result(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%.*s}", (long long)frame->id.number, (int)result.n,
                  result.p);
}

static struct fake *fake;

static void read_tools(struct arena *a, struct slice text, const struct growing *g)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait };
    struct mcp_tools tools;

    result = text;
    if (mcp_client_tools(fake->client, &call, &tools, NULL) < 0)
        fail();
}

static void read_result(struct arena *a, struct slice text, const struct growing *g)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait };
    struct mcp_result got;

    result = text;
    if (mcp_client_call(fake->client, &call, "t", (struct json_value){ 0 }, &got, NULL) < 0)
        fail();
}

static void read_frame(struct arena *a, struct slice text, const struct growing *g)
{
    fake->on.on_frame(fake->on.arg, text, NULL);
}

static void what_a_server_sends_grows_with_its_length(void **state)
{
    static const struct growing cases[] = {
        { "tools", 250, "{\"tools\":[",
          "{\"name\":\"t%\",\"description\":\"d%\",\"inputSchema\":{\"type\":\"object\"}}", NULL, "]}", read_tools },
        { "tools of one name", 250, "{\"tools\":[", "{\"name\":\"t\",\"inputSchema\":{}}", NULL, "]}", read_tools },
        { "tools beyond the limit", 4000, "{\"tools\":[", "{\"name\":\"t%\",\"inputSchema\":{}}", NULL, "]}",
          read_tools },
        { "members of a tool", 4000, "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{", "\"m%\":1", NULL, "}}]}",
          read_tools },
        { "members of a list", 4000, "{\"tools\":[],\"x\":{", "\"m%\":1", NULL, "}}", read_tools },
        { "blocks of a result", 4000, "{\"content\":[", "{\"type\":\"text\",\"text\":\"x%\"}", NULL, "]}",
          read_result },
        { "frames of a batch", 4000, "[", "{\"jsonrpc\":\"2.0\",\"id\":%,\"result\":{}}", NULL, "]", read_frame },
        { "members of a frame", 4000, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{", "\"m%\":1", NULL, "}}",
          read_frame },
    };

    fake = *state;
    fake->serve = serve_result;
    fake_open(fake, MCP_ERA_HANDSHAKE);
    assert_all_linear(cases, ARRAY_SIZE(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_server_sends_grows_with_its_length, fake_set_up, fake_tear_down),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
