/* Turns over a scripted provider: what the model is sent, what its calls become, how turns end. */
#include "loop_tools.h"

static bool is(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* ---- answers and calls ---- */

static void an_answer_ends_the_turn(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    script(&x, SAY("Hello."));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(x.end.text, "Hello.");
    assert_int_equal(x.end.n_steps, 1);
    assert_int_equal(x.end.usage.prompt_tokens, 10);
    assert_int_equal(x.end.usage.completion_tokens, 5);
    assert_string_equal(x.end.provider, "one");
    assert_string_equal(x.end.model, "m-1");
    assert_true(json_is_absent(json_get(request_of(&x, 0), "tools")));
}

static void a_result_is_in_the_next_request_once(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct json_value tool;

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script(&x, CALLS(CALL("c1", "echo", "{\\\"text\\\":\\\"hi\\\"}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(
        json_cstr(json_get(json_get(item_of(json_get(request_of(&x, 0), "tools"), 0), "function"), "name")), "echo");
    assert_int_equal(json_length(messages_of(&x, 1)), 4);
    tool = item_of(messages_of(&x, 1), 3);
    assert_string_equal(json_cstr(json_get(tool, "role")), "tool");
    assert_string_equal(json_cstr(json_get(tool, "tool_call_id")), "c1");
    assert_string_equal(json_cstr(json_get(tool, "content")), "echo hi");
    assert_int_equal(x.n_steps, 3);
    assert_int_equal(x.steps[1].role, LLM_TOOL);
    assert_string_equal(x.steps[1].name, "echo");
    assert_non_null(strstr(x.thoughts, "echo is called.|"));
    assert_non_null(strstr(
        x.blocks,
        "toolUse {\"toolName\":\"echo\",\"input\":{\"text\":\"hi\"},\"content\":\"echo hi\",\"status\":\"completed\"}"));
}

static void parallel_calls_return_in_order(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &late_tool);
    x.on.on_step = see_step_of_other;
    script(&x, CALLS(CALL("c1", "late", "{\\\"first\\\":true}") "," CALL("c2", "late", "{}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(content_of(&x, 1, 3), "the first");
    assert_string_equal(content_of(&x, 1, 4), "the second");
    assert_int_equal(x.steps[1].call, 1); /* stored while the first ran */
    assert_int_equal(x.steps[2].call, 0);
}

static atomic_int n_begun, n_done, n_done_at_the_last;

static bool enough_have_begun(void *arg)
{
    return atomic_load(&n_begun) >= LIMIT_PARALLEL_CALLS;
}

/* Ends when as many have begun as may run at the same time. */
static int run_beside_others(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    atomic_fetch_add(&n_begun, 1);
    assert_true(wait_until(enough_have_begun, NULL));
    atomic_fetch_add(&n_done, 1);
    return give_text(c, ret, "done");
}

/* Comes before each call begins. */
static void count_ended_at_the_last(void *arg, const char *thought)
{
    static atomic_int n_called;

    if (strstr(thought, "is called.") && atomic_fetch_add(&n_called, 1) == LIMIT_PARALLEL_CALLS)
        atomic_store(&n_done_at_the_last, atomic_load(&n_done));
}

static void so_many_calls_run_at_the_same_time_and_the_next_waits(void **state)
{
    static const struct builtin_tool tool = {
        .name = "beside", .input_schema = "{\"type\":\"object\"}", .is_read_only = true, .run = run_beside_others
    };
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    const char *calls;

    loop_rig_open(&x);
    add_tool(&x, &tool);
    x.on.on_thought = count_ended_at_the_last;
    calls = CALL("c0", "beside", "{\\\"n\\\":0}");
    for (int i = 1; i <= LIMIT_PARALLEL_CALLS; i++)
        calls = arena_printf(x.m.f.a, "%s," CALL("c%d", "beside", "{\\\"n\\\":%d}"), calls, i, i);
    script(&x, arena_printf(x.m.f.a, CALLS("%s"), calls));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_int_equal(atomic_load(&n_done), LIMIT_PARALLEL_CALLS + 1);
    assert_true(atomic_load(&n_done_at_the_last) > 0);
}

static void bad_arguments_go_back_with_the_rule(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    atomic_store(&n_echoed, 0);
    script(&x, CALLS(CALL("c1", "echo", "{\\\"text\\\":7}") "," CALL("c2", "echo", "{\\\"text\\\":") "," CALL(
                   "c3", "ecko", "{}") "," CALL("c4", "echo", "[]") "," CALL("c5", "echo", "")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_non_null(strstr(content_of(&x, 1, 3), "`arguments.text` must be a string"));
    assert_non_null(strstr(content_of(&x, 1, 4), "no JSON"));
    assert_non_null(strstr(content_of(&x, 1, 5), "There is no tool named \"ecko\"; the nearest is echo."));
    assert_non_null(strstr(content_of(&x, 1, 6), "must be a JSON object"));
    assert_string_equal(content_of(&x, 1, 7), "echo -"); /* no arguments at all: an empty object */
    assert_int_equal(atomic_load(&n_echoed), 1);
}

static void a_failing_tool_is_an_error_for_the_model(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &fail_tool);
    script(&x, CALLS(CALL("c1", "fail", "{}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(content_of(&x, 1, 3), "Error: BROKEN: It broke.");
    assert_true(x.steps[1].is_error);
}

static void ids_that_models_repeat_are_renamed(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    const char *one, *other;

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script(&x, CALLS(CALL("c0", "echo", "{}")));
    script(&x, CALLS(CALL("c0", "echo", "{\\\"text\\\":\\\"b\\\"}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    one = json_cstr(json_get(item_of(messages_of(&x, 2), 3), "tool_call_id"));
    other = json_cstr(json_get(item_of(messages_of(&x, 2), 5), "tool_call_id"));
    assert_string_equal(one, "c0");
    assert_string_not_equal(other, "c0");
    assert_string_equal(json_cstr(json_get(item_of(json_get(item_of(messages_of(&x, 2), 4), "tool_calls"), 0), "id")),
                        other);
}

static void a_call_cut_by_the_limit_of_tokens_is_not_run(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    atomic_store(&n_echoed, 0);
    script(&x, CALLS_BY(CALL("c1", "echo", "{}") "," CALL("c2", "echo", ""), "length"));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(content_of(&x, 1, 3), "echo -");
    assert_non_null(strstr(content_of(&x, 1, 4), "reached its limit of tokens"));
    assert_int_equal(atomic_load(&n_echoed), 1);
}

static void images_follow_as_a_message_of_the_user(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct json_value content;

    loop_rig_open(&x);
    add_tool(&x, &picture_tool);
    script(&x, CALLS(CALL("c1", "picture", "{}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(content_of(&x, 1, 3), "a red dot\n[image 1]\n[an image that cannot be shown to the model]\n"
                                              "[resource a.txt file:///a.txt]");
    content = json_get(item_of(messages_of(&x, 1), 4), "content");
    assert_string_equal(json_cstr(json_get(item_of(messages_of(&x, 1), 4), "role")), "user");
    assert_string_equal(json_cstr(json_get(json_get(item_of(content, 1), "image_url"), "url")),
                        "data:image/png;base64,iVBORw0K");
    assert_non_null(strstr(x.blocks, "image {\"toolName\":\"picture\",\"mimeType\":\"image/png\""));
    assert_non_null(strstr(x.blocks, "files {\"toolName\":\"picture\",\"files\":[{\"uri\":\"file:///a.txt\""));
}

static void results_are_cut_at_their_limit(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    char fits[40], exceeds[40];

    loop_rig_open(&x);
    add_tool(&x, &large_tool);
    snprintf(fits, sizeof(fits), "{\\\"n\\\":%d}", LIMIT_TOOL_RESULT_BYTES);
    snprintf(exceeds, sizeof(exceeds), "{\\\"n\\\":%d}", LIMIT_TOOL_RESULT_BYTES + 1);
    script(&x, arena_printf(x.m.f.a, CALLS(CALL("c1", "large", "%s") "," CALL("c2", "large", "%s")), fits, exceeds));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_int_equal(strlen(content_of(&x, 1, 3)), LIMIT_TOOL_RESULT_BYTES);
    assert_non_null(strstr(content_of(&x, 1, 4), "[The result was cut here: 65536 of its 65537 bytes are shown.]"));
}

/* ---- ends ---- */

static void the_last_step_is_followed_by_an_answer_without_tools(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    x.agent.max_steps = 2;
    script(&x, CALLS(CALL("c1", "echo", "{\\\"text\\\":\\\"a\\\"}")));
    script(&x, CALLS(CALL("c2", "echo", "{\\\"text\\\":\\\"b\\\"}")));
    script(&x, SAY("What I know."));
    run(&x);
    assert_string_equal(ended(&x), "max_steps");
    assert_string_equal(x.end.text, "What I know.");
    assert_int_equal(x.n_requests, 3);
    assert_string_equal(json_cstr(json_get(request_of(&x, 2), "tool_choice")), "none");
    assert_string_equal(content_of(&x, 2, 5), "echo b");
    assert_int_equal(x.end.n_calls, 2);
}

static void the_same_call_is_not_made_a_third_time(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    atomic_store(&n_echoed, 0);
    script(&x, CALLS(CALL("c1", "echo", "{\\\"text\\\":\\\"a\\\"}")));
    script(&x, CALLS(CALL("c2", "echo", "{ \\\"text\\\" : \\\"a\\\" }")));
    script(&x, CALLS(CALL("c3", "echo", "{\\\"text\\\":\\\"a\\\"}")));
    script(&x, SAY("Enough."));
    run(&x);
    assert_string_equal(ended(&x), "repeated_call");
    assert_int_equal(atomic_load(&n_echoed), 2);
    assert_string_equal(x.end.text, "Enough.");
    assert_non_null(strstr(content_of(&x, 3, 7), "was made before"));
}

static void a_change_between_makes_a_call_new(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    add_tool(&x, &write_tool);
    script(&x, CALLS(CALL("c1", "echo", "{}")));
    script(&x, CALLS(CALL("c2", "echo", "{}")));
    script(&x, CALLS(CALL("c3", "write_it", "{\\\"text\\\":\\\"a\\\"}")));
    script(&x, CALLS(CALL("c4", "echo", "{}")));
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
}

static void the_token_budget_ends_a_turn_before_its_calls(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    atomic_store(&n_echoed, 0);
    x.agent.max_tokens_per_turn = 15;
    script(&x, CALLS(CALL("c1", "echo", "{}")));
    run(&x);
    assert_string_equal(ended(&x), "token_budget");
    assert_int_equal(atomic_load(&n_echoed), 0);
    assert_non_null(strstr(x.steps[1].text, "used its tokens"));
    assert_in_range(json_int(json_get(request_of(&x, 0), "max_tokens")), 1, 15);
}

static void an_answer_that_uses_up_the_budget_is_an_answer(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    x.agent.max_tokens_per_turn = 15;
    script(&x, SAY("just so"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
}

static void a_budget_below_the_prompt_sends_nothing(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    x.agent.max_tokens_per_turn = 2;
    run(&x);
    assert_string_equal(ended(&x), "token_budget");
    assert_int_equal(x.n_requests, 0);
}

static void a_tool_that_takes_too_long_ends_the_turn(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &waiting_tool);
    x.agent.timeout_s = 3; /* the chat before the call counts too, on a busy machine */
    script(&x, CALLS(CALL("c1", "waiting", "{}")));
    run(&x);
    assert_string_equal(ended(&x), "timeout");
    assert_string_equal(x.end.error.code, "AGENT_TIMEOUT");
    assert_int_equal(x.n_steps, 2); /* the call has its result */
}

static void a_silent_provider_ends_the_turn_at_its_time(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct raw_peer silent;

    loop_rig_open(&x);
    add_silent(&x.m, &silent, "");
    x.agent.provider = "silent";
    x.agent.timeout_s = 0.3;
    run(&x);
    assert_string_equal(ended(&x), "timeout");
    raw_close(&silent);
}

static void a_cancelled_turn_ends_with_all_its_results(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &cancel_tool);
    add_tool(&x, &waiting_tool);
    script(&x, CALLS(CALL("c1", "waiting", "{}") "," CALL("c2", "cancel", "{}")));
    run(&x);
    assert_string_equal(ended(&x), "cancelled");
    assert_int_equal(x.n_steps, 3);
}

static bool is_heard(void *arg)
{
    return has_heard(arg);
}

struct cancelling {
    struct loop_rig *x;
    struct raw_peer *peer;
};

static void *cancel_when_heard(void *arg)
{
    struct cancelling *c = arg;

    assert_true(wait_until(is_heard, c->peer));
    atomic_store(&c->x->is_gone, true);
    return NULL;
}

static void a_chat_is_cancelled_with_its_turn(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct raw_peer silent;
    struct cancelling c = { &x, &silent };
    pthread_t thread;

    loop_rig_open(&x);
    add_silent(&x.m, &silent, "");
    x.agent.provider = "silent";
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_heard, &c), 0);
    run(&x);
    pthread_join(thread, NULL);
    assert_string_equal(ended(&x), "cancelled");
    assert_true(wait_until(has_left, &silent));
    raw_close(&silent);
}

static void a_refused_chat_fails_the_turn_with_its_reason(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script(&x, CALLS(CALL("c1", "echo", "{}")));
    script_status(&x, 400, "{\"error\":{\"message\":\"not like this\"}}");
    run(&x);
    assert_string_equal(ended(&x), "LLM_ERROR");
    assert_non_null(strstr(x.end.error.text, "not like this"));
    assert_int_equal(x.n_steps, 2); /* what was done is kept */
}

static void a_step_that_cannot_be_stored_ends_the_turn(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    x.step_fails_at = 1;
    script(&x, CALLS(CALL("c1", "echo", "{}")));
    run(&x);
    assert_string_equal(ended(&x), "STORE_FAILED");
    assert_int_equal(x.n_requests, 1);
}

/* ---- the owner's part ---- */

static int halve(void *arg, struct agent_fit *fit, struct err *e)
{
    if (!fit->refusal)
        return 0;
    assert_non_null(strstr(fit->refusal->text, "context"));
    fit->messages += fit->n - 1;
    fit->n = 1;
    fit->has_changed = true;
    return 0;
}

static void a_history_that_is_too_long_is_fitted(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    x.on.on_fit = halve;
    script_status(&x, 400, "{\"error\":{\"message\":\"maximum context length is 10 tokens\"}}");
    script(&x, SAY("short"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_int_equal(json_length(messages_of(&x, 1)), 1);
}

/* ---- the promise: each call's result is in the next request exactly once, in order ---- */

static void check_history(struct loop_rig *x, size_t request)
{
    struct json_value messages = messages_of(x, request), call;
    size_t n = json_length(messages);

    for (size_t i = 0; i < n; i++) {
        struct json_value calls = json_get(item_of(messages, i), "tool_calls");
        size_t k = 0;

        for (struct json_iter it = json_iter(calls); json_next(&it, NULL, &call); k++) {
            struct json_value result = item_of(messages, i + 1 + k);

            assert_true(is(json_cstr(json_get(result, "role")), "tool"));
            assert_true(is(json_cstr(json_get(result, "tool_call_id")), json_cstr(json_get(call, "id"))));
        }
        if (k > 0 && i + 1 + k < n)
            assert_false(is(json_cstr(json_get(item_of(messages, i + 1 + k), "role")), "tool"));
        i += k;
        assert_false(k == 0 && is(json_cstr(json_get(item_of(messages, i), "role")), "tool"));
    }
}

static const char *random_call(struct arena *a, unsigned *seed, int number)
{
    static const char *const names[] = { "echo", "fail", "ecko", "late", "picture" };
    static const char *const arguments[] = {
        "{}", "", "{\\\"text\\\":%d}", "{\\\"text\\\":\\\"%d\\\"}", "{\\\"text\\\":", "7"
    };
    const char *chosen = arguments[rand_r(seed) % ARRAY_SIZE(arguments)],
               *name = names[rand_r(seed) % ARRAY_SIZE(names)];

    return arena_printf(a, CALL("c%d", "%s", "%s"), number % 7, name,
                        strchr(chosen, '%') ? arena_printf(a, "{\\\"text\\\":\\\"%d\\\"}", number) : chosen);
}

static const char *random_answer(struct arena *a, unsigned *seed, int *number)
{
    const char *list = NULL;

    for (int i = 1 + (int)(rand_r(seed) % 12); i > 0; i--) {
        const char *call = random_call(a, seed, (*number)++);

        list = list ? arena_printf(a, "%s,%s", list, call) : call;
    }
    return arena_printf(a, CALLS_BY("%s", "%s"), list, rand_r(seed) % 4 ? "tool_calls" : "length");
}

static void random_turn(unsigned seed)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    int number = 0, n_answers = 1 + (int)(rand_r(&seed) % 10);

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    add_tool(&x, &fail_tool);
    add_tool(&x, &late_tool);
    add_tool(&x, &picture_tool);
    x.agent.max_steps = 1 + (int)(rand_r(&seed) % 12);
    for (int i = 0; i < n_answers; i++)
        script(&x, random_answer(x.m.f.a, &seed, &number));
    script(&x, SAY("done"));
    script(&x, SAY("done"));
    run(&x);
    assert_true(x.end.why == AGENT_ANSWERED || x.end.why == AGENT_MAX_STEPS || x.end.why == AGENT_REPEATED_CALL);
    for (size_t i = 0; i < x.n_requests; i++)
        check_history(&x, i);
}

static void each_result_follows_its_call_once_and_in_order(void **state)
{
    for (unsigned seed = 1; seed <= 12; seed++)
        random_turn(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_ends_the_turn),
        cmocka_unit_test(a_result_is_in_the_next_request_once),
        cmocka_unit_test(parallel_calls_return_in_order),
        cmocka_unit_test(so_many_calls_run_at_the_same_time_and_the_next_waits),
        cmocka_unit_test(bad_arguments_go_back_with_the_rule),
        cmocka_unit_test(a_failing_tool_is_an_error_for_the_model),
        cmocka_unit_test(ids_that_models_repeat_are_renamed),
        cmocka_unit_test(a_call_cut_by_the_limit_of_tokens_is_not_run),
        cmocka_unit_test(images_follow_as_a_message_of_the_user),
        cmocka_unit_test(results_are_cut_at_their_limit),
        cmocka_unit_test(the_last_step_is_followed_by_an_answer_without_tools),
        cmocka_unit_test(the_same_call_is_not_made_a_third_time),
        cmocka_unit_test(a_change_between_makes_a_call_new),
        cmocka_unit_test(the_token_budget_ends_a_turn_before_its_calls),
        cmocka_unit_test(an_answer_that_uses_up_the_budget_is_an_answer),
        cmocka_unit_test(a_budget_below_the_prompt_sends_nothing),
        cmocka_unit_test(a_tool_that_takes_too_long_ends_the_turn),
        cmocka_unit_test(a_silent_provider_ends_the_turn_at_its_time),
        cmocka_unit_test(a_cancelled_turn_ends_with_all_its_results),
        cmocka_unit_test(a_chat_is_cancelled_with_its_turn),
        cmocka_unit_test(a_refused_chat_fails_the_turn_with_its_reason),
        cmocka_unit_test(a_step_that_cannot_be_stored_ends_the_turn),
        cmocka_unit_test(a_history_that_is_too_long_is_fitted),
        cmocka_unit_test(each_result_follows_its_call_once_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
