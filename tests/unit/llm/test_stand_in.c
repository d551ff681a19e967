/* The answers of the stand-in, read by the reader of OpenAI's chats; the rules are in tests/unit/stand_in. */
#include "protocol.h"

static struct http_inside *answer_to(struct arena *a, struct llm_request *request, const char *text)
{
    struct llm_block *block = ARENA_NEW(a, struct llm_block);
    struct llm_message *message = ARENA_NEW(a, struct llm_message);
    struct http_call_request http = { 0 };

    *block = (struct llm_block){ LLM_BLOCK_TEXT, .text = text };
    *message = (struct llm_message){ .role = LLM_USER, .blocks = block, .n_blocks = 1 };
    request->messages = message;
    request->n_messages = 1;
    request->model = "m";
    assert_int_equal(llm_stand_in.request(NULL, request, a, &http, NULL), 0);
    return (struct http_inside *)http.inside;
}

static const char *body_in(struct arena *a, const struct http_inside *answer)
{
    struct buf all;
    const char *text;

    buf_init(&all, MIB(8));
    for (size_t i = 0; i < answer->n_pieces; i++)
        buf_add_slice(&all, answer->pieces[i]);
    text = buf_to_arena(&all, a);
    return text;
}

static void whole_and_streamed_answers_are_the_same(void **state)
{
    static const struct {
        const char *text, *wanted;
        int64_t max_tokens;
    } cases[] = {
        { "say one two", "one two|||stop|3+2|stand-in", 0 },
        { "think hm\nsay yes", "yes|hm||stop|4+2|stand-in", 0 },
        { "say one two three", "one two |||length|4+2|stand-in", 2 },
        { "call f {\"a\":1}", "||call_1_0 f {\"a\":1}|tool_calls|3+1|stand-in", 0 },
        { "call f\ncall g\nsay ok", "ok||call_1_0 f {},call_1_1 g {\"n\":0}|tool_calls|6+3|stand-in", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_tool tools[] = {
            { .name = "f" },
            { .name = "g",
              .parameters = json_of(a, "{\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}") }
        };
        struct llm_request request = { .tools = tools, .n_tools = 2, .max_tokens = cases[i].max_tokens };

        check_whole(&llm_stand_in, body_in(a, answer_to(a, &request, cases[i].text)), cases[i].wanted, 0, NULL);
        request.is_streamed = true;
        check_stream(&llm_stand_in, body_in(a, answer_to(a, &request, cases[i].text)), cases[i].wanted, 0, NULL);
    }
}

static void a_text_ends_at_the_limit_but_not_within_a_character(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { .is_streamed = false };
    struct llm_answer answer;
    struct llm_sink sink;
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "say ");
    while (text.n < LIMIT_STAND_IN_BYTES) /* the rules are read up to the limit, the example of a schema beyond it */
        buf_add_str(&text, "\xc3\xb6");
    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    assert_int_equal(llm_stand_in.on_whole(llm_stand_in.reader(a, &sink),
                                           answer_to(a, &request, buf_str(&text) + 4)->pieces[0], NULL),
                     0);
    assert_int_equal(answer.why, LLM_FINISH_LENGTH); /* the label is longer than what was left */
    assert_true(answer.text.n <= LIMIT_STAND_IN_BYTES && answer.text.n >= LIMIT_STAND_IN_BYTES - 1);
    assert_memory_equal(answer.text.p + answer.text.n - 2, "\xc3\xb6", 2);
    llm_answer_clear(&answer);
    buf_clear(&text);
}

static void a_stream_has_a_limited_number_of_pieces(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { .is_streamed = true };
    struct buf text;

    for (int n = LIMIT_STAND_IN_PIECES; n <= LIMIT_STAND_IN_PIECES + 1; n++) {
        buf_init(&text, MIB(1));
        buf_add_str(&text, "say");
        for (int i = 0; i < n; i++)
            buf_add_str(&text, " a");
        assert_int_equal(answer_to(a, &request, arena_strdup(a, buf_str(&text)))->n_pieces,
                         1 + (n > LIMIT_STAND_IN_PIECES ? (n + 1) / 2 : n));
        buf_clear(&text);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { .format = LLM_FORMAT_SCHEMA,
                                   .schema = json_of(a, "{\"type\":\"integer\",\"minimum\":2,\"maximum\":1}") };
    struct http_inside *answer = answer_to(a, &request, "a number");

    assert_int_equal(answer->status, 400);
    assert_has(body_in(a, answer), "finds no value that fits the schema");
    request.schema = json_of(a, "{\"type\":\"array\",\"minItems\":100000,\"items\":{\"type\":\"integer\"}}");
    assert_int_equal(answer_to(a, &request, "many numbers")->status, 400);
    request.schema = json_of(a, "{\"type\":\"integer\"}");
    assert_int_equal(answer_to(a, &request, "a number")->status, 200);
}

static void breaks_and_waits_are_those_of_the_rules(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { .is_streamed = true };
    struct http_inside *answer = answer_to(a, &request, "slow 7\ncut 2\nsay one two three");

    assert_int_equal(answer->piece_ms, 7);
    assert_int_equal(answer->n_pieces, 2);
    assert_true(answer->is_cut);
    answer = answer_to(a, &request, "cut 99\nsay one");
    assert_int_equal(answer->n_pieces, 1); /* never the end */
    request.is_streamed = false;
    answer = answer_to(a, &request, "cut 99\nsay one");
    assert_int_equal(answer->n_pieces, 0);
    assert_true(answer->is_cut);
}

static void a_request_without_a_question_gets_the_label(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_block block = { LLM_BLOCK_TEXT, .text = "say no" };
    struct llm_message message = { .role = LLM_SYSTEM, .blocks = &block, .n_blocks = 1 };
    struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
    struct http_call_request http = { 0 };

    assert_int_equal(llm_stand_in.request(NULL, &request, a, &http, NULL), 0);
    assert_has(http.inside->pieces[0].p, "[stand-in model: not a language model, it repeats what you say]");
    assert_lacks(http.inside->pieces[0].p, "\"content\":\"no\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_and_streamed_answers_are_the_same),
        cmocka_unit_test(a_text_ends_at_the_limit_but_not_within_a_character),
        cmocka_unit_test(a_stream_has_a_limited_number_of_pieces),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(breaks_and_waits_are_those_of_the_rules),
        cmocka_unit_test(a_request_without_a_question_gets_the_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
