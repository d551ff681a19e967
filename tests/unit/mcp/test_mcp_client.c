/* Results of tools, questions before a result, tasks, subscriptions. */
#include "fake_op.h"

#include <limits.h>

/* ---- results of tools ---- */

static const char *to_call[40]; /* one answer after the other */

static void serve_calls(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    assert_true(f->n < (int)ARRAY_SIZE(to_call));
    if (to_call[f->n])
        fake_answer(f, frame, to_call[f->n++]);
}

static int call_tool(struct fake *f, struct op *op, struct mcp_result *ret)
{
    return mcp_client_call(f->client, &op->call, "t", absent, ret, &op->e);
}

static void open_calls(struct fake *f, enum mcp_era era, const char *first, const char *second)
{
    memset(to_call, 0, sizeof(to_call));
    to_call[0] = first;
    to_call[1] = second;
    f->serve = serve_calls;
    fake_open(f, era);
}

static void a_json_rpc_error_is_a_result_with_is_error(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_HANDSHAKE, "\"error\":{\"code\":-32602,\"message\":\"no \\\"such\\\" tool\"}", NULL);
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_true(result.is_error);
    assert_string_equal(json_to_str(op.arena, result.content),
                        "[{\"type\":\"text\",\"text\":\"MCP error -32602: no \\\"such\\\" tool\"}]");
    op_clear(&op);
}

static void results_keep_what_they_hold(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_HANDSHAKE,
               "\"result\":{\"content\":[{\"type\":\"new\",\"x\":1}],\"structuredContent\":{\"y\":2},\"isError\":true}",
               "\"result\":{\"structuredContent\":{}}");
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_true(result.is_error);
    assert_string_equal(json_to_str(op.arena, result.content), "[{\"type\":\"new\",\"x\":1}]");
    assert_string_equal(json_to_str(op.arena, result.structured), "{\"y\":2}");
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_int_equal(json_type(result.content), JSON_ARRAY);
    assert_int_equal(json_length(result.content), 0);
    assert_int_equal(fake_count(f, "\"params\":{\"name\":\"t\",\"arguments\":{}}"), 2);
    op_clear(&op);
}

static void results_that_are_none_fail(void **state)
{
    static const char *const bad[] = { "\"result\":7", "\"result\":null", "\"result\":{\"content\":\"x\"}" };
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_HANDSHAKE, NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        to_call[i] = bad[i];
        assert_int_equal(call_tool(f, &op, &result), -EPROTO);
        assert_string_equal(op.e.code, "MCP_BAD_ANSWER");
    }
    op_clear(&op);
}

static int elicit(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    struct fake *f = arg;

    assert_string_equal(request->caller->name, "app x");
    f->era = MCP_ERA_UNKNOWN; /* it was called */
    buf_add_str(ret, "{\"action\":\"accept\",\"content\":{\"city\":\"Oslo\"}}");
    return 0;
}

#define NEEDS_CITY                                                                                                      \
    "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"the city\":{\"method\":\"elicitation/create\"," \
    "\"params\":{\"message\":\"Which?\",\"mode\":\"form\",\"requestedSchema\":{}}}},\"requestState\":\"st\\\"1\"}"
#define COMPLETE "\"result\":{\"resultType\":\"complete\",\"content\":[]}"

static void input_is_given_with_the_state_that_came(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    f->handlers = (struct mcp_handlers){ .elicit = elicit, .arg = f };
    open_calls(f, MCP_ERA_STATELESS, NEEDS_CITY, COMPLETE);
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_int_equal(f->era, MCP_ERA_UNKNOWN);
    assert_int_equal(
        fake_count(f, "\"name\":\"t\",\"arguments\":{},\"inputResponses\":{\"the city\":{\"action\":\"accept\","
                      "\"content\":{\"city\":\"Oslo\"}}},\"requestState\":\"st\\\"1\"}"),
        1);
    assert_int_equal(fake_count(f, "tools/call"), 2);
    op_clear(&op);
}

static void without_a_person_input_is_declined(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_STATELESS, NEEDS_CITY, COMPLETE);
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_int_equal(fake_count(f, "\"inputResponses\":{\"the city\":{\"action\":\"decline\"}}"), 1);
    op_clear(&op);
}

#define NINE_INPUTS                                                                                                    \
    "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"1\":{},\"2\":{},\"3\":{},\"4\":{},"            \
    "\"5\":{},\"6\":{},\"7\":{},\"8\":{},\"9\":{}}}"

static void input_that_cannot_be_given_fails_the_call(void **state)
{
    static const char *const bad[] = {
        "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"r\":{\"method\":\"roots/list\"}}}",
        "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"r\":{}}}",
        "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{}}",
        "\"result\":{\"resultType\":\"input_required\"}",
        "\"result\":{\"resultType\":\"something\"}",
        NINE_INPUTS,
    };
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_STATELESS, NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        to_call[i] = bad[i];
        assert_true(call_tool(f, &op, &result) < 0);
        assert_int_equal(fake_count(f, "tools/call"), i + 1);
    }
    op_clear(&op);
}

static void serve_questions(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        fake_answer(f, frame,
                    f->n-- > 0 ? "\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}" : COMPLETE);
}

static void so_many_rounds_and_no_more(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    f->serve = serve_questions;
    fake_open(f, MCP_ERA_STATELESS);
    f->n = LIMIT_MCP_ROUNDS - 1;
    assert_int_equal(call_tool(f, &op, &result), 0);
    f->n = LIMIT_MCP_ROUNDS;
    assert_int_equal(call_tool(f, &op, &result), -EPROTO);
    op_clear(&op);
}

/* So many questions in one round, each a form. */
static const char *round_of(struct arena *a, int n)
{
    const char *inputs = "";

    for (int i = 0; i < n; i++)
        inputs = arena_printf(a,
                              "%s%s\"q%d\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
                              "\"requestedSchema\":{}}}",
                              inputs, i ? "," : "", i);
    return arena_printf(a, "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{%s}}", inputs);
}

static void so_many_questions_in_one_round_and_no_more(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    open_calls(f, MCP_ERA_STATELESS, round_of(op.call.arena, LIMIT_MCP_ROUND_INPUTS), COMPLETE);
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_int_equal(fake_count(f, "\"q7\":{\"action\":\"decline\"}}"), 1);
    to_call[2] = round_of(op.call.arena, LIMIT_MCP_ROUND_INPUTS + 1);
    assert_int_equal(call_tool(f, &op, &result), -E2BIG);
    assert_string_equal(op.e.code, "MCP_TOO_LARGE");
    assert_int_equal(fake_count(f, "tools/call"), 3); /* no answer was sent */
    op_clear(&op);
}

static int open_address(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    struct fake *f = arg;

    assert_string_equal(json_cstr(json_get(request->params, "url")), "https://a.example/");
    f->era = MCP_ERA_UNKNOWN;
    buf_add_str(ret, "{\"action\":\"accept\"}");
    return 0;
}

static void an_address_to_open_is_shown_and_the_call_is_not_repeated(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    op_init(&op);
    f->handlers = (struct mcp_handlers){ .elicit = open_address, .arg = f };
    open_calls(f, MCP_ERA_HANDSHAKE,
               "\"error\":{\"code\":-32042,\"message\":\"Log in.\",\"data\":{\"elicitations\":[{\"mode\":\"url\","
               "\"message\":\"m\",\"url\":\"https://a.example/\",\"elicitationId\":\"1\"}]}}",
               NULL);
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_true(result.is_error);
    assert_int_equal(f->era, MCP_ERA_UNKNOWN);
    assert_int_equal(fake_count(f, "tools/call"), 1);
    op_clear(&op);
}

/* ---- tasks ---- */

#define TASK(status) "\"taskId\":\"k1\",\"status\":\"" status "\",\"pollInterval\":50"

/* The task works for f->n questions, then it ends. */
static const char *task_end, *task_result;

static void serve_task(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    if (strcmp(frame->method, "tools/list") == 0)
        fake_answer(
            f, frame,
            "\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{},\"execution\":{\"taskSupport\":\"required\"}},"
            "{\"name\":\"u\",\"inputSchema\":{},\"execution\":{\"taskSupport\":\"optional\"}}]}");
    else if (strcmp(frame->method, "tools/call") == 0)
        fake_answer(f, frame, "\"result\":{\"task\":{" TASK("working") "}}");
    else if (strcmp(frame->method, "tasks/get") == 0)
        fake_answer(f, frame, f->n-- > 0 ? "\"result\":{" TASK("working") "}" : task_end);
    else if (strcmp(frame->method, "tasks/result") == 0)
        fake_answer(f, frame, task_result);
    else
        fake_answer(f, frame, "\"result\":{}");
}

static void open_task(struct fake *f, struct op *op, const char *end, const char *result)
{
    struct mcp_tools tools;

    op_init(op);
    task_end = end;
    task_result = result;
    f->serve = serve_task;
    f->n = 2;
    fake_open(f, MCP_ERA_HANDSHAKE);
    assert_int_equal(mcp_client_tools(f->client, &op->call, &tools, &op->e), 0);
}

static void a_task_is_asked_for_until_its_end(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    open_task(f, &op, "\"result\":{" TASK("completed") "}",
              "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}");
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_int_equal(json_length(result.content), 1);
    assert_int_equal(fake_count(f, "\"arguments\":{},\"task\":{\"ttl\":"), 1);
    assert_int_equal(fake_count(f, "\"method\":\"tasks/get\",\"params\":{\"taskId\":\"k1\"}"), 3);
    assert_int_equal(fake_count(f, "tasks/result"), 1);
    assert_int_equal(fake_count(f, "tools/call"), 1);
    op_clear(&op);
}

static void a_task_that_fails_is_a_result_with_is_error(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    open_task(f, &op, "\"result\":{" TASK("failed") "}", "\"error\":{\"code\":-32603,\"message\":\"broken\"}");
    assert_int_equal(call_tool(f, &op, &result), 0);
    assert_true(result.is_error);
    op_clear(&op);
}

static void a_task_past_the_deadline_is_cancelled(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    open_task(f, &op, "", "");
    f->n = INT_MAX;
    op.wait = net_wait_of(100, NULL, NULL);
    assert_int_equal(call_tool(f, &op, &result), -ETIMEDOUT);
    assert_string_equal(op.e.code, "MCP_TIMEOUT");
    assert_int_equal(fake_count(f, "\"method\":\"tasks/cancel\",\"params\":{\"taskId\":\"k1\"}"), 1);
    op_clear(&op);
}

static void a_tool_that_need_not_run_as_a_task_does_not(void **state)
{
    struct fake *f = *state;
    struct mcp_result result;
    struct op op;

    open_task(f, &op, "", "");
    task_end = "\"result\":{" TASK("completed") "}";
    task_result = "\"result\":{\"content\":[]}";
    assert_int_equal(mcp_client_call(f->client, &op.call, "u", absent, &result, &op.e), 0);
    assert_int_equal(fake_count(f, "\"task\":{\"ttl\""), 0);
    op_clear(&op);
}

/* ---- the stream of changes ---- */

static void serve_listen(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame) || strcmp(frame->method, "subscriptions/listen") != 0)
        return;
    if (json_length(json_get(json_get(frame->params, "notifications"), "resourceSubscriptions")) > 1)
        fake_answer(f, frame, "\"error\":{\"code\":-32603,\"message\":\"too many\"}");
    else
        fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}");
}

static void note_updated(void *arg, const char *uri)
{
    struct fake *f = arg;

    f->n++;
}

static void resources_are_followed_by_the_stream(void **state)
{
    struct fake *f = *state;
    struct op op;

    op_init(&op);
    f->handlers = (struct mcp_handlers){ .updated = note_updated, .arg = f };
    f->serve = serve_listen;
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(fake_count(f, "subscriptions/listen"), 0); /* nothing changes that it could be told of */
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(fake_count(f, "\"notifications\":{\"resourceSubscriptions\":[\"a:1\"]}"), 1);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a:1\"}}");
    assert_int_equal(f->n, 1);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:2", &op.e), -EIO);
    assert_non_null(strstr(op.e.text, "too many"));
    assert_int_equal(mcp_client_unsubscribe(f->client, &op.call, "a:2", &op.e), 0);
    op_clear(&op);
}

static void so_many_resources_are_followed_and_no_more(void **state)
{
    struct fake *f = *state;
    char uri[16];
    struct op op;

    op_init(&op);
    f->serve = serve_listen;
    fake_open(f, MCP_ERA_STATELESS);
    for (int i = 0; i < LIMIT_MCP_SUBSCRIPTIONS; i++) {
        snprintf(uri, sizeof(uri), "a:%d", i);
        assert_int_equal(mcp_client_subscribe(f->client, &op.call, uri, &op.e), i == 0 ? 0 : -EIO);
    }
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:x", &op.e), -E2BIG);
    assert_string_equal(op.e.code, "TOO_MANY_SUBSCRIPTIONS");
    op_clear(&op);
}

static void a_server_that_lacks_something_is_not_asked(void **state)
{
    const struct mcp_completion what = { "ref/prompt", "p", "x", "y", absent };
    struct fake *f = *state;
    struct json_value v;
    struct op op;

    op_init(&op);
    f->serve = serve_calls;
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(mcp_client_complete(f->client, &op.call, &what, &v, &op.e), -EOPNOTSUPP);
    assert_string_equal(op.e.code, "MCP_NOT_SUPPORTED");
    assert_int_equal(fake_count(f, "completion"), 0);
    op_clear(&op);
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(a_json_rpc_error_is_a_result_with_is_error),
        WITH_FAKE(results_keep_what_they_hold),
        WITH_FAKE(results_that_are_none_fail),
        WITH_FAKE(input_is_given_with_the_state_that_came),
        WITH_FAKE(without_a_person_input_is_declined),
        WITH_FAKE(input_that_cannot_be_given_fails_the_call),
        WITH_FAKE(so_many_rounds_and_no_more),
        WITH_FAKE(so_many_questions_in_one_round_and_no_more),
        WITH_FAKE(an_address_to_open_is_shown_and_the_call_is_not_repeated),
        WITH_FAKE(a_task_is_asked_for_until_its_end),
        WITH_FAKE(a_task_that_fails_is_a_result_with_is_error),
        WITH_FAKE(a_task_past_the_deadline_is_cancelled),
        WITH_FAKE(a_tool_that_need_not_run_as_a_task_does_not),
        WITH_FAKE(resources_are_followed_by_the_stream),
        WITH_FAKE(so_many_resources_are_followed_and_no_more),
        WITH_FAKE(a_server_that_lacks_something_is_not_asked),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
