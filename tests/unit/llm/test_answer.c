#include "protocol.h"

static void parts_are_bounded(void **state)
{
    char *piece = xcalloc(1, LIMIT_LLM_ANSWER);
    struct llm_answer answer;
    struct llm_sink sink;

    memset(piece, 'x', LIMIT_LLM_ANSWER);
    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    assert_int_equal(sink.on_text(sink.arg, (struct slice){ piece, LIMIT_LLM_ANSWER }), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("x")), -EMSGSIZE);
    assert_string_equal(answer.e->code, "UPSTREAM_TOO_LARGE");
    assert_int_equal(sink.on_reasoning(sink.arg, (struct slice){ piece, LIMIT_LLM_ANSWER }), 0);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("x")), -EMSGSIZE);
    assert_int_equal(sink.on_tool(sink.arg, LIMIT_TOOL_CALLS - 1, "i", "n", (struct slice){ piece, LIMIT_LLM_ANSWER }),
                     0);
    assert_int_equal(sink.on_tool(sink.arg, LIMIT_TOOL_CALLS - 1, NULL, NULL, SLICE_LIT("x")), -EMSGSIZE);
    assert_int_equal(sink.on_tool(sink.arg, LIMIT_TOOL_CALLS, "i", "n", SLICE_LIT("x")), -EMSGSIZE);
    assert_int_equal(sink.on_signature(sink.arg, false, (struct slice){ piece, LIMIT_LLM_ANSWER }), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("x")), -EMSGSIZE);
    llm_answer_clear(&answer);
    free(piece);
}

static void changes_between_text_and_thoughts_are_bounded(void **state)
{
    struct llm_answer answer;
    struct llm_sink sink;

    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    for (int i = 0; i < LIMIT_ANSWER_PIECES / 2; i++) {
        assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("x")), 0);
        assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("y")), 0);
    }
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("y")), 0);
    assert_int_equal(sink.on_signature(sink.arg, false, SLICE_LIT("s")), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("s")), -EMSGSIZE);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("x")), -EMSGSIZE);
    assert_int_equal(sink.on_tool(sink.arg, 0, "i", "n", SLICE_LIT("{}")), -EMSGSIZE);
    assert_string_equal(answer.e->code, "UPSTREAM_TOO_LARGE");
    llm_answer_clear(&answer);
}

static void what_was_reported_is_kept_in_its_order(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_answer answer;
    struct llm_sink sink;

    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("a")), 0);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("b")), 0);
    assert_int_equal(sink.on_signature(sink.arg, false, SLICE_LIT("s1")), 0);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("c")), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("one")), 0);
    assert_int_equal(sink.on_tool(sink.arg, 0, "i", "n", SLICE_LIT("{")), 0);
    assert_int_equal(sink.on_tool(sink.arg, 0, NULL, NULL, SLICE_LIT("}")), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("d")), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("two")), 0);
    assert_string_equal(pieces_received(a, &answer),
                        "thought ab (s1), thought c, text one, call 0, hidden (d), text two");
    answer.text.n = 4; /* as after a format check */
    assert_string_equal(pieces_received(a, &answer),
                        "thought ab (s1), thought c, text one, call 0, hidden (d), text t");
    llm_answer_clear(&answer);
}

static void usage_is_counted_when_it_is_not_reported(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_request request = full_request(a);
    const struct llm_usage usage_received = { .prompt_tokens = 1, .completion_tokens = 2 };
    struct llm_answer answer;

    llm_answer_init(&answer);
    llm_answer_end(&answer, LLM_FINISH_STOP, NULL, "m");
    llm_answer_estimate(&answer, llm_prompt_tokens(&request), 9);
    assert_true(answer.usage.is_estimated);
    assert_int_equal(answer.usage.completion_tokens, 3);
    assert_true(answer.usage.prompt_tokens > 5 * 4);
    llm_answer_end(&answer, LLM_FINISH_STOP, &usage_received, NULL);
    llm_answer_estimate(&answer, llm_prompt_tokens(&request), 9);
    assert_false(answer.usage.is_estimated);
    assert_int_equal(answer.usage.completion_tokens, 2);
    assert_string_equal(answer.model, "m");
    llm_answer_end(&answer, LLM_FINISH_STOP, &(struct llm_usage){ .prompt_tokens = -1, .completion_tokens = 7 },
                   NULL); /* one of the two */
    llm_answer_estimate(&answer, 40, 9);
    assert_true(answer.usage.is_estimated && answer.usage.prompt_tokens == 40 && answer.usage.completion_tokens == 7);
    llm_answer_clear(&answer);
}

static void tool_calls_are_written_in_openais_form(void **state)
{
    struct llm_answer answer;
    struct json_writer w;
    struct buf out;

    buf_init(&out, 1000);
    json_write_init(&w, &out);
    json_begin_object(&w);
    llm_answer_init(&answer);
    assert_int_equal(llm_answer_add_tool(&answer, 1, "c2", "g", SLICE_LIT("{}")), 0);
    assert_int_equal(llm_answer_add_tool(&answer, 0, "c1", "f", SLICE_LIT("{\"a\":")), 0);
    assert_int_equal(llm_answer_add_tool(&answer, 0, "other", "other", SLICE_LIT("1}")), 0);
    llm_answer_write_tools(&answer, &w, "tool_calls", true);
    json_end(&w);
    assert_string_equal(
        buf_str(&out),
        "{\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
        "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}");
    llm_answer_clear(&answer);
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_bounded),
        cmocka_unit_test(changes_between_text_and_thoughts_are_bounded),
        cmocka_unit_test(what_was_reported_is_kept_in_its_order),
        cmocka_unit_test(usage_is_counted_when_it_is_not_reported),
        cmocka_unit_test(tool_calls_are_written_in_openais_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
