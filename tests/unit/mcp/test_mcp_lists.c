/* Lists of a server: pages, limits, items; and the operations on what is listed. */
#include "fake_op.h"

#include "net/http_client.h"

static void (*serve_page)(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor);

static void serve_list(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        serve_page(f, frame, json_string(json_get(frame->params, "cursor")));
}

#define TOOL(name) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"

static void three_pages(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    if (cursor.n == 0)
        fake_answer(f, frame, "\"result\":{\"tools\":[" TOOL("a") "," TOOL("b") "],\"nextCursor\":\"2\"}");
    else if (slice_eq_str(cursor, "2"))
        fake_answer(f, frame, "\"result\":{\"tools\":[" TOOL("c") "],\"nextCursor\":\"3\"}");
    else
        fake_answer(f, frame, "\"result\":{\"tools\":[" TOOL("d") "],\"nextCursor\":null}");
}

static void expect_tools(struct fake *f, const char *names, const char *why_cut)
{
    struct mcp_tools tools;
    struct buf out;
    struct op op;

    op_init(&op);
    buf_init(&out, KIB(64));
    if (mcp_client_tools(f->client, &op.call, &tools, &op.e) < 0)
        fail_msg("%s", op.e.text);
    for (size_t i = 0; i < tools.n; i++)
        buf_add_str(&out, tools.items[i].name);
    assert_string_equal(buf_str(&out), names);
    if (why_cut)
        assert_non_null(strstr(tools.why_cut, why_cut));
    else
        assert_null(tools.why_cut);
    buf_clear(&out);
    op_clear(&op);
}

static void open_list(struct fake *f, void (*page)(struct fake *, const struct json_rpc_frame *, struct slice))
{
    serve_page = page;
    f->serve = serve_list;
    fake_open(f, MCP_ERA_HANDSHAKE);
}

static void all_pages_are_one_list(void **state)
{
    open_list(*state, three_pages);
    expect_tools(*state, "abcd", NULL);
}

static void a_circle(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    fake_answer(f, frame,
                slice_eq_str(cursor, "x") ? "\"result\":{\"tools\":[" TOOL("b") "],\"nextCursor\":\"y\"}"
                                          : "\"result\":{\"tools\":[" TOOL("a") "],\"nextCursor\":\"x\"}");
}

static void pages_in_a_circle_end(void **state)
{
    open_list(*state, a_circle);
    expect_tools(*state, "ab", "earlier one");
    assert_int_equal(fake_count(*state, "tools/list"), 3);
}

/* f->n pages. */
static void many_pages(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    long at = cursor.n ? strtol(cursor.p, NULL, 10) : 1;

    if (at < f->n)
        fake_answer(f, frame, arena_printf(f->arena, "\"result\":{\"tools\":[],\"nextCursor\":\"%ld\"}", at + 1));
    else
        fake_answer(f, frame, "\"result\":{\"tools\":[" TOOL("z") "]}");
}

static void so_many_pages_and_no_more(void **state)
{
    struct fake *f = *state;

    open_list(f, many_pages);
    f->n = LIMIT_MCP_PAGES;
    expect_tools(f, "z", NULL);
    f->n = LIMIT_MCP_PAGES + 1;
    expect_tools(f, "", "more than 100 pages");
}

/* f->n tools on two pages. */
static void many_tools(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    int half = f->n / 2, from = cursor.n ? half : 0, to = cursor.n ? f->n : half;
    struct buf out;

    buf_init(&out, MIB(1));
    buf_add_str(&out, "\"result\":{\"tools\":[");
    for (int i = from; i < to; i++)
        buf_printf(&out, "%s{\"name\":\"t%d\",\"inputSchema\":{}}", i > from ? "," : "", i);
    buf_add_str(&out, cursor.n ? "]}" : "],\"nextCursor\":\"n\"}");
    fake_answer(f, frame, buf_str(&out));
    buf_clear(&out);
}

static void so_many_tools_and_no_more(void **state)
{
    struct fake *f = *state;
    struct mcp_tools tools;
    struct op op;

    open_list(f, many_tools);
    for (int more = 0; more < 2; more++) {
        op_init(&op);
        f->n = LIMIT_MCP_ITEMS + more;
        assert_int_equal(mcp_client_tools(f->client, &op.call, &tools, &op.e), 0);
        assert_int_equal(tools.n, LIMIT_MCP_ITEMS);
        assert_true(more == (tools.why_cut != NULL));
        op_clear(&op);
    }
}

/* Pages of 3 MiB. */
static void large_pages(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    struct buf out;

    buf_init(&out, MIB(4));
    buf_printf(&out, "\"result\":{\"tools\":[{\"name\":\"%.*sx\",\"inputSchema\":{},\"description\":\"", (int)cursor.n,
               cursor.n ? cursor.p : "");
    memset(buf_reserve(&out, MIB(3)), 'x', MIB(3));
    out.n += MIB(3);
    buf_printf(&out, "\"}],\"nextCursor\":\"%.*sx\"}", (int)cursor.n, cursor.n ? cursor.p : "");
    fake_answer(f, frame, buf_str(&out));
    buf_clear(&out);
}

static void a_list_of_too_many_bytes_is_cut(void **state)
{
    open_list(*state, large_pages);
    expect_tools(*state, "xxx", "bytes");
}

static size_t list_bytes; /* of the frames of both pages */

/* Two pages, which have list_bytes in all; the second is named by a cursor of f->n bytes. */
static void two_pages(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    size_t n_before = list_bytes / 2, n_page = cursor.n == 0 ? n_before : list_bytes - n_before;
    struct buf out;

    buf_init(&out, LIMIT_MCP_LIST_BYTES);
    buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"tools\":[{\"name\":\"%s\",\"inputSchema\":{}}]",
               (long long)frame->id.number, cursor.n == 0 ? "a" : "b");
    if (cursor.n == 0)
        buf_printf(&out, ",\"nextCursor\":\"%0*d\"", f->n, 7);
    buf_add_str(&out, "}}");
    assert_true(out.n <= n_page);
    memset(buf_reserve(&out, n_page - out.n), ' ', n_page - out.n);
    out.n = n_page;
    f->on.on_frame(f->on.arg, buf_slice(&out), NULL);
    buf_clear(&out);
}

static void a_list_of_the_most_bytes_is_whole(void **state)
{
    struct fake *f = *state;

    f->n = 1;
    open_list(f, two_pages);
    list_bytes = LIMIT_MCP_LIST_BYTES;
    expect_tools(f, "ab", NULL);
    list_bytes = LIMIT_MCP_LIST_BYTES + 1;
    expect_tools(f, "a", "more than 8388608 bytes");
}

static void the_name_of_a_page_has_at_most_the_limit(void **state)
{
    struct fake *f = *state;

    list_bytes = KIB(64);
    f->n = LIMIT_MCP_CURSOR_BYTES;
    open_list(f, two_pages);
    expect_tools(f, "ab", NULL);
    f->n = LIMIT_MCP_CURSOR_BYTES + 1;
    expect_tools(f, "a", "at most 4096 bytes");
}

static void bad_cursor(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    fake_answer(f, frame, "\"result\":{\"tools\":[" TOOL("a") "],\"nextCursor\":7}");
}

static void a_page_without_a_name_is_not_read(void **state)
{
    open_list(*state, bad_cursor);
    expect_tools(*state, "a", "no name");
}

static void odd_tools(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    fake_answer(
        f, frame,
        "\"result\":{\"tools\":[7,{},{\"name\":\"\",\"inputSchema\":{}},{\"name\":\"n\\u0000\",\"inputSchema\":{}},"
        "{\"name\":\"noschema\"},{\"name\":5,\"inputSchema\":{}}," TOOL("a") "," TOOL("b") "," TOOL("a") "]}");
}

static void what_is_no_tool_is_left_out(void **state)
{
    open_list(*state, odd_tools);
    expect_tools(*state, "ab", NULL);
}

static void no_list(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    fake_answer(f, frame, "\"result\":{\"tools\":{}}");
}

static void an_answer_without_the_list_fails(void **state)
{
    struct fake *f = *state;
    struct mcp_tools tools;
    struct op op;

    op_init(&op);
    open_list(f, no_list);
    assert_int_equal(mcp_client_tools(f->client, &op.call, &tools, &op.e), -EPROTO);
    assert_string_equal(op.e.code, "MCP_BAD_ANSWER");
    op_clear(&op);
}

static void one_described_tool(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    fake_answer(
        f, frame,
        "\"result\":{\"tools\":[{\"name\":\"a\",\"description\":\"d\",\"inputSchema\":{},\"outputSchema\":{},"
        "\"annotations\":{\"title\":\"T\",\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":1}}"
        "," TOOL("b") "]}");
}

static void hints_have_the_defaults_of_the_protocol(void **state)
{
    struct fake *f = *state;
    struct mcp_tools tools;
    struct op op;

    op_init(&op);
    open_list(f, one_described_tool);
    assert_int_equal(mcp_client_tools(f->client, &op.call, &tools, &op.e), 0);
    assert_string_equal(tools.items[0].title, "T");
    assert_string_equal(tools.items[0].description, "d");
    assert_true(tools.items[0].is_read_only && !tools.items[0].is_destructive && !tools.items[0].is_idempotent);
    assert_int_equal(json_type(tools.items[0].output_schema), JSON_OBJECT);
    assert_true(tools.items[1].is_destructive && tools.items[1].is_open_world && !tools.items[1].is_read_only);
    assert_null(tools.items[1].title);
    op_clear(&op);
}

static void resources_and_prompts(struct fake *f, const struct json_rpc_frame *frame, struct slice cursor)
{
    if (strcmp(frame->method, "resources/list") == 0)
        fake_answer(f, frame,
                    "\"result\":{\"resources\":[{\"uri\":\"a:1\",\"name\":\"one\",\"size\":5},{\"uri\":\"a:2\"},"
                    "{\"uri\":\"a:1\",\"name\":\"again\"}]}");
    else if (strcmp(frame->method, "resources/templates/list") == 0)
        fake_answer(f, frame, "\"result\":{\"resourceTemplates\":[{\"uriTemplate\":\"a:{x}\",\"name\":\"t\"}]}");
    else if (strcmp(frame->method, "prompts/list") == 0)
        fake_answer(f, frame, "\"result\":{\"prompts\":[{\"name\":\"p\",\"arguments\":[]},{\"name\":\"p\"}]}");
    else if (strcmp(frame->method, "resources/read") == 0)
        fake_answer(f, frame, "\"result\":{\"contents\":[{\"uri\":\"a:1\",\"text\":\"x\"}]}");
    else if (strcmp(frame->method, "prompts/get") == 0)
        fake_answer(f, frame, "\"result\":{\"description\":\"d\",\"messages\":[]}");
    else if (strcmp(frame->method, "completion/complete") == 0)
        fake_answer(f, frame, "\"result\":{\"completion\":{\"values\":[\"v\"]}}");
    else
        fake_answer(f, frame, "\"result\":{}");
}

static void resources_prompts_and_completion(void **state)
{
    const struct mcp_completion what = { "ref/prompt", "p", "x", "y", absent };
    struct fake *f = *state;
    struct mcp_resources resources;
    struct mcp_prompts prompts;
    struct json_value v;
    const char *description;
    struct op op;

    op_init(&op);
    open_list(f, resources_and_prompts);
    assert_int_equal(mcp_client_resources(f->client, &op.call, &resources, &op.e), 0);
    assert_int_equal(resources.n, 1);
    assert_int_equal(resources.items[0].size, 5);
    assert_int_equal(mcp_client_templates(f->client, &op.call, &resources, &op.e), 0);
    assert_string_equal(resources.items[0].uri, "a:{x}");
    assert_int_equal(mcp_client_prompts(f->client, &op.call, &prompts, &op.e), 0);
    assert_int_equal(prompts.n, 1);
    assert_int_equal(mcp_client_read(f->client, &op.call, "a:1", &v, &op.e), 0);
    assert_int_equal(json_length(v), 1);
    assert_int_equal(mcp_client_prompt(f->client, &op.call, "p", absent, &description, &v, &op.e), 0);
    assert_string_equal(description, "d");
    assert_int_equal(mcp_client_complete(f->client, &op.call, &what, &v, &op.e), 0);
    assert_int_equal(fake_count(f, "\"params\":{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},"
                                   "\"argument\":{\"name\":\"x\",\"value\":\"y\"}}"),
                     1);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(mcp_client_unsubscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(mcp_client_log_level(f->client, &op.call, "error", &op.e), 0);
    assert_int_equal(fake_count(f, "\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"a:1\"}"), 1);
    assert_int_equal(fake_count(f, "\"method\":\"logging/setLevel\",\"params\":{\"level\":\"error\"}"), 1);
    op_clear(&op);
}

static void addresses_have_a_limit(void **state)
{
    struct fake *f = *state;
    struct json_value v;
    struct op op;
    char *uri;

    op_init(&op);
    uri = arena_alloc(op.arena, LIMIT_MCP_TARGET_URI_BYTES + 2);
    memset(uri, 'a', LIMIT_MCP_TARGET_URI_BYTES);
    open_list(f, resources_and_prompts);
    assert_int_equal(mcp_client_read(f->client, &op.call, uri, &v, &op.e), 0);
    uri[LIMIT_MCP_TARGET_URI_BYTES] = 'a';
    assert_int_equal(mcp_client_read(f->client, &op.call, uri, &v, &op.e), -EINVAL);
    assert_int_equal(mcp_client_read(f->client, &op.call, "", &v, &op.e), -EINVAL);
    op_clear(&op);
}

/* ---- arguments that are headers too ---- */

static void serve_headers(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    if (strcmp(frame->method, "tools/list") == 0) {
        fake_answer(
            f, frame,
            "\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
            "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}},{\"name\":\"bad\",\"inputSchema\":{"
            "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"object\",\"x-mcp-header\":\"X\"}}}}]}");
        return;
    }
    f->n = (int)s->n_params;
    if (s->n_params > 0) {
        assert_string_equal(s->params[0].name, "Mcp-Param-Region");
        assert_string_equal(s->params[0].value, "eu");
    }
    fake_answer(f, frame, "\"result\":{\"content\":[]}");
}

static int list_and_call(struct fake *f, const char *link_name, size_t *ret_n_tools)
{
    const struct mcp_link_ops ops = { .name = link_name, .start = fake_start, .send = fake_send, .close = fake_close };
    struct json_value arguments;
    struct mcp_result result;
    struct mcp_tools tools;
    struct op op;

    op_init(&op);
    f->link.ops = &ops;
    f->serve = serve_headers;
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(mcp_client_tools(f->client, &op.call, &tools, &op.e), 0);
    *ret_n_tools = tools.n;
    assert_int_equal(json_parse(op.arena, SLICE_LIT("{\"region\":\"eu\"}"), &arguments, NULL), 0);
    assert_int_equal(mcp_client_call(f->client, &op.call, "t", arguments, &result, &op.e), 0);
    f->client = mcp_client_unref(f->client);
    op_clear(&op);
    return f->n;
}

static void over_http_arguments_go_along_as_headers(void **state)
{
    size_t n_tools;

    assert_int_equal(list_and_call(*state, "http", &n_tools), 1);
    assert_int_equal(n_tools, 1); /* without the tool that breaks the rules */
    assert_int_equal(list_and_call(*state, "stdio", &n_tools), 0);
    assert_int_equal(n_tools, 2);
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(all_pages_are_one_list),
        WITH_FAKE(pages_in_a_circle_end),
        WITH_FAKE(so_many_pages_and_no_more),
        WITH_FAKE(so_many_tools_and_no_more),
        WITH_FAKE(a_list_of_too_many_bytes_is_cut),
        WITH_FAKE(a_list_of_the_most_bytes_is_whole),
        WITH_FAKE(the_name_of_a_page_has_at_most_the_limit),
        WITH_FAKE(a_page_without_a_name_is_not_read),
        WITH_FAKE(what_is_no_tool_is_left_out),
        WITH_FAKE(an_answer_without_the_list_fails),
        WITH_FAKE(hints_have_the_defaults_of_the_protocol),
        WITH_FAKE(resources_prompts_and_completion),
        WITH_FAKE(addresses_have_a_limit),
        WITH_FAKE(over_http_arguments_go_along_as_headers),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
