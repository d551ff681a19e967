/* Data that must travel with an answer's text: how hard a model is to think, in each protocol's form; the attachments
 * of a tool call; encrypted thoughts. */
#include "protocol.h"

#include "llm/request.h"
#include "llm/protocols/stops.h"

static struct llm_request plain_request(const char *model, const char *effort)
{
    static const struct llm_block hi[] = { { LLM_BLOCK_TEXT, .text = "hi" } };
    static const struct llm_message messages[] = { { .role = LLM_USER, .blocks = hi, .n_blocks = 1 } };

    return (struct llm_request){
        .messages = messages, .n_messages = 1, .model = model, .temperature = -1, .effort = effort
    };
}

static void effort_is_said_in_each_protocols_words(void **state)
{
    static const struct {
        const char *preset, *model, *effort;
        int64_t max_tokens;
        const char *has, *lacks;
    } cases[] = {
        { "groq", "m", "low", 0, "\"reasoning_effort\":\"low\"", "thinking" },
        { "groq", "m", NULL, 0, "\"model\"", "effort" },
        { "openai", "gpt-5", "minimal", 0, "\"reasoning\":{\"effort\":\"minimal\"}", "include" },
        { "openai", "gpt-5", NULL, 0, "\"model\"", "reasoning" },
        { "ollama", "qwen3", "high", 0, "\"think\":true", "high" },
        { "ollama", "qwen3", "none", 0, "\"think\":false", "none" },
        { "ollama", "gpt-oss:20b", "xhigh", 0, "\"think\":\"high\"", "xhigh" },
        { "ollama", "gpt-oss:20b", "none", 0, "\"think\":false", "none" },
        { "ollama", "qwen3", NULL, 0, "\"model\"", "think" },
        { "anthropic", "claude-sonnet-4-5", "medium", 8000,
          "\"max_tokens\":8000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":4000}", "effort" },
        { "anthropic", "claude-sonnet-4-5", "low", 2000, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}",
          "effort" },
        { "anthropic", "claude-opus-4", "max", 64000, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":32000}",
          "effort" },
        { "anthropic", "claude-3-7-sonnet-latest", "high", 0,
          "\"max_tokens\":16384,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":13040}", "effort" },
        { "anthropic", "claude-opus-4-6", "high", 0,
          "\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"high\"}", "budget" },
        { "anthropic", "claude-sonnet-5", "minimal", 0,
          "\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"low\"}", "budget" },
        { "anthropic", "claude-sonnet-4-5", "none", 0, "\"max_tokens\":4096", "thinking" },
        { "anthropic", "claude-sonnet-4-5", "high", 1024, "\"max_tokens\":1024",
          "thinking" }, /* no room for an answer */
        { "anthropic", "claude-3-5-haiku", "high", 0, "\"max_tokens\":4096", "thinking" },
        { "anthropic", "house-model", "high", 0, "\"max_tokens\":4096", "thinking" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = plain_request(cases[i].model, cases[i].effort);
        struct http_call_request http = { 0 };
        const char *body;

        request.max_tokens = cases[i].max_tokens;
        body = body_of(a, cases[i].preset, &request, &http);
        assert_has(body, cases[i].has);
        assert_lacks(body, cases[i].lacks);
    }
}

/* Leaves out what the service would refuse together with thoughts, or leaves out the thoughts. */
static void anthropic_is_not_asked_to_think_where_it_would_refuse(void **state)
{
    static const struct llm_thought thoughts[] = { { "hm", "s1" } },
                                    foreign[] = { { NULL, WIRE_RESPONSES_SIGNATURE "{}" } };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct llm_message messages[5];
    struct http_call_request http = { 0 };

    memcpy(messages, request.messages, sizeof(messages));
    request.messages = messages;
    request.model = "claude-sonnet-4-5";
    request.effort = "high";
    request.max_tokens = 4000;
    request.has_temperature = true;
    assert_lacks(body_of(a, "anthropic", &request, &http), "budget_tokens"); /* the calls lack their thoughts */
    assert_has(http.body.p, "\"temperature\":0.5");
    messages[2].thoughts = foreign;
    messages[2].n_thoughts = 1;
    assert_lacks(body_of(a, "anthropic", &request, &http), "budget_tokens");
    messages[2].thoughts = thoughts;
    assert_has(body_of(a, "anthropic", &request, &http), "\"budget_tokens\":3200");
    assert_has(
        http.body.p,
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":\"tool_use\"");
    assert_lacks(http.body.p, "temperature");
    request.tool_choice = json_of(a, "\"required\"");
    assert_lacks(body_of(a, "anthropic", &request, &http), "budget_tokens");
    request.tool_choice = json_of(a, "\"auto\"");
    assert_has(body_of(a, "anthropic", &request, &http), "budget_tokens");
}

#define CHUNK(call) "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" call "]}}]}\n\n"
#define SIGNED "\"extra_content\":{\"google\":{\"thought_signature\":\"Cs+/=\"}}"

static void check_extra(const char *stream, const char *whole)
{
    for (int i = 0; i < 2; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_answer answer;
        struct llm_sink sink;
        struct json_writer w;
        struct err e = { 0 };
        struct buf out;

        llm_answer_init(&answer);
        buf_init(&out, 4096);
        sink = llm_answer_sink(&answer);
        if (i)
            assert_int_equal(llm_openai_chat.on_whole(llm_openai_chat.reader(a, &sink), slice_of(whole), &e), 0);
        else
            assert_int_equal(feed(&llm_openai_chat, stream, 5, a, &answer, &e), 0);
        json_write_init(&w, &out);
        json_begin_object(&w);
        llm_answer_write_tools(&answer, &w, "all", true);
        llm_answer_write_tools(&answer, &w, "sdk", false);
        json_end(&w);
        assert_string_equal(
            buf_str(&out),
            "{\"all\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}," SIGNED
            "},"
            "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}],"
            "\"sdk\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
            "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}");
        llm_answer_clear(&answer);
        buf_clear(&out);
    }
}

/* Gemini signs the first of several calls; the signature comes with the call, or in a separate part. */
static void what_comes_with_a_call_is_kept(void **state)
{
    static const char whole[] =
        "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c1\"," SIGNED
        ",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
        "{\"id\":\"c2\",\"extra_content\":3,\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}}]}";

    check_extra(
        CHUNK("{\"index\":0,\"id\":\"c1\"," SIGNED ",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
            CHUNK("{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}") "data: [DONE]\n\n",
        whole);
    check_extra(
        CHUNK("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
            CHUNK("{\"index\":0," SIGNED "}") CHUNK(
                "{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}") "data: [DONE]\n\n",
        whole);
}

static void what_came_with_a_call_goes_back_to_those_who_ask_for_it(void **state)
{
    static const struct {
        const char *preset;
        const char *wanted;
    } cases[] = {
        { "gemini", "\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"}," SIGNED "}" },
        { "gemini", "\"arguments\":\"{}\"},\"extra_content\":{\"google\":{\"thought_signature\":\"skip_" },
        { "litellm", SIGNED },
        { "generic-openai", SIGNED },
        { "groq", NULL },
        { "openai", NULL },
        { "mistral", NULL },
        { "ollama", NULL },
        { "anthropic", NULL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request_body *body = ARENA_NEW(a, struct llm_request_body);
    struct llm_request request = { 0 };
    struct http_call_request http = { 0 };

    assert_int_equal(
        fields_read(
            llm_request_fields,
            json_of(
                a,
                "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                "{\"id\":\"c1\"," SIGNED
                ",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"}},{\"id\":\"c2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}]}"),
            body, a, "", NULL),
        0);
    assert_int_equal(llm_request_of(body, a, &request, NULL), 0);
    request.model = "m";
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_preset *row = llm_preset_find(cases[i].preset);
        const struct llm_account acc = { .name = "x", .preset = row, .base_url = "http://h/v1", .api_key = "k" };

        assert_int_equal(row->protocol->request(&acc, &request, a, &http, NULL), 0);
        if (cases[i].wanted)
            assert_has(http.body.p, cases[i].wanted);
        else
            assert_lacks(http.body.p, "extra_content");
    }
}

static void thoughts_of_openais_form_are_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request_body *body = ARENA_NEW(a, struct llm_request_body);
    struct llm_request request = { 0 };
    struct err e = { 0 };

    assert_int_equal(
        fields_read(
            llm_request_fields,
            json_of(
                a,
                "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"thinking_blocks\":[{\"type\":\"thinking\",\"signature\":\"no\"}]},"
                "{\"role\":\"assistant\",\"content\":\"a\",\"thinking_blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":\"thinking\",\"thinking\":\"unsigned\"},"
                "{\"type\":\"redacted_thinking\",\"data\":\"d1\"},{\"type\":\"thinking\",\"signature\":\"s2\"}]}]}"),
            body, a, "", &e),
        0);
    assert_int_equal(llm_request_of(body, a, &request, &e), 0);
    assert_int_equal(request.messages[0].n_thoughts, 0);
    assert_int_equal(request.messages[1].n_thoughts, 3);
    assert_string_equal(request.messages[1].thoughts[0].text, "hm");
    assert_null(request.messages[1].thoughts[1].text);
    assert_string_equal(request.messages[1].thoughts[1].signature, "d1");
    assert_string_equal(request.messages[1].thoughts[2].text, "");
    assert_int_equal(
        fields_read(llm_request_fields,
                    json_of(a, "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"thinking_blocks\":[{}]}]}"),
                    body, a, "", &e),
        -EINVAL);
}

#define ITEM                                                                                                           \
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}],\"encrypted_content\":\"gAAA+/=\"}"
#define RECEIVED_ITEM                                                                                                  \
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"status\":\"completed\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}],\"encrypted_content\":\"gAAA+/=\"}"
#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define CALL "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{}\"}"

static void encrypted_thoughts_of_responses_are_kept(void **state)
{
    check_pieces(
        &llm_openai_responses,
        EVENT(
            "response.output_item.added",
            ",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"half\"}")
            EVENT("response.reasoning_summary_text.delta", ",\"output_index\":0,\"summary_index\":0,\"delta\":\"hm\"")
                EVENT("response.output_item.done", ",\"output_index\":0,\"item\":" RECEIVED_ITEM)
                    EVENT("response.output_item.done", ",\"output_index\":1,\"item\":" CALL)
                        EVENT("response.completed", ",\"response\":{\"status\":\"completed\"}"),
        "{\"status\":\"completed\",\"output\":[" RECEIVED_ITEM "," CALL "]}",
        "thought hm, hidden (" WIRE_RESPONSES_SIGNATURE ITEM "), call 0");
    check_pieces(
        &llm_openai_responses,
        EVENT("response.output_item.done",
              ",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":null}")
            EVENT("response.output_item.done",
                  ",\"output_index\":1,\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}")
                EVENT("response.completed", ",\"response\":{}"),
        "{\"output\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":null},{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}]}",
        "hidden (" WIRE_RESPONSES_SIGNATURE "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"x\"})");
}

static void encrypted_thoughts_go_back_to_responses_only(void **state)
{
    static const struct llm_thought thoughts[] = { { NULL, WIRE_RESPONSES_SIGNATURE ITEM },
                                                   { "of another", "s1" },
                                                   { NULL, "d1" },
                                                   { NULL, WIRE_RESPONSES_SIGNATURE "no json" } };
    static const struct llm_block blocks[] = { { LLM_BLOCK_TEXT, .text = "a" }, { LLM_BLOCK_TEXT, .text = "b" } };
    static const unsigned char order[] = { LLM_PIECE_BLOCK,   LLM_PIECE_BLOCK,   LLM_PIECE_THOUGHT, LLM_PIECE_CALL,
                                           LLM_PIECE_THOUGHT, LLM_PIECE_THOUGHT, LLM_PIECE_THOUGHT, LLM_PIECE_CALL };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct llm_message messages[5];
    struct http_call_request http = { 0 };

    memcpy(messages, request.messages, sizeof(messages));
    messages[2] = (struct llm_message){ .role = LLM_ASSISTANT,
                                        .blocks = blocks,
                                        .n_blocks = 2,
                                        .tool_calls = messages[2].tool_calls,
                                        .n_tool_calls = 2,
                                        .thoughts = thoughts,
                                        .n_thoughts = 4,
                                        .order = order,
                                        .n_order = 8 };
    request.messages = messages;
    request.model = "gpt-5";
    assert_has(
        body_of(a, "openai", &request, &http),
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"},{\"type\":\"output_text\",\"text\":\"b\"}]}," ITEM
        ",{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"},{\"type\":\"function_call\",\"call_id\":\"c2\"");
    assert_has(http.body.p, "\"store\":false,\"include\":[\"reasoning.encrypted_content\"]");
    assert_lacks(http.body.p, "s1");
    assert_lacks(http.body.p, "d1");
    request.model = "gpt-4o";
    assert_lacks(body_of(a, "openai", &request, &http), "include");
    assert_lacks(body_of(a, "anthropic", &request, &http), "gAAA");
    assert_lacks(body_of(a, "groq", &request, &http), "gAAA");
}

static void signatures_and_extras_end_with_a_stop(void **state)
{
    static const char *const words[] = { "END" };
    const struct field_strings stops = { words, 1 };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_answer answer;
    struct llm_sink to, sink;

    llm_answer_init(&answer);
    to = llm_answer_sink(&answer);
    sink = llm_stops_sink(a, &stops, false, &to);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("d1")), 0);
    assert_int_equal(sink.on_tool(sink.arg, 0, "c", "f", SLICE_LIT("{}")), 0);
    assert_int_equal(sink.on_extra(sink.arg, 0, SLICE_LIT("{}")), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("aEND")), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("d2")), 0);
    assert_int_equal(sink.on_extra(sink.arg, 0, SLICE_LIT("{\"late\":1}")), 0);
    assert_string_equal(pieces_received(a, &answer), "hidden (d1), call 0, text a");
    assert_string_equal(buf_str(&answer.signatures), "d1{}");
    assert_int_equal(llm_answer_add_extra(&answer, 1, SLICE_LIT("{}")), -EMSGSIZE);
    llm_answer_clear(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effort_is_said_in_each_protocols_words),
        cmocka_unit_test(anthropic_is_not_asked_to_think_where_it_would_refuse),
        cmocka_unit_test(what_comes_with_a_call_is_kept),
        cmocka_unit_test(what_came_with_a_call_goes_back_to_those_who_ask_for_it),
        cmocka_unit_test(thoughts_of_openais_form_are_read),
        cmocka_unit_test(encrypted_thoughts_of_responses_are_kept),
        cmocka_unit_test(encrypted_thoughts_go_back_to_responses_only),
        cmocka_unit_test(signatures_and_extras_end_with_a_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
