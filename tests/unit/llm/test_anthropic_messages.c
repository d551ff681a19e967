#include "protocol.h"

#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define START                                                                                                          \
    EVENT(                                                                                                             \
        "message_start",                                                                                               \
        ",\"message\":{\"model\":\"m-1\",\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}")
#define TEXT(text)                                                                                                     \
    EVENT("content_block_delta", ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define FINISH(why)                                                                                                    \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" why "\"},\"usage\":{\"output_tokens\":5}")                 \
    EVENT("message_stop", "")
#define TOOL(index, id)                                                                                                \
    EVENT("content_block_start", ",\"index\":" index ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"" id          \
                                 "\",\"name\":\"f\",\"input\":{}}")
#define ARGUMENTS(index, json)                                                                                         \
    EVENT("content_block_delta",                                                                                       \
          ",\"index\":" index ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}")
#define STOP(index) EVENT("content_block_stop", ",\"index\":" index)

static void streams_are_read_however_they_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
        int r;
        const char *code;
    } cases[] = {
        { START EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}")
              EVENT("ping", "") TEXT("Hel") TEXT("lo") STOP("0") FINISH("end_turn"),
          "Hello|||stop|7+5|m-1" },
        { START EVENT("content_block_delta", ",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")
              EVENT("content_block_delta", ",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"x\"}")
                  TEXT("a") FINISH("max_tokens"),
          "a|hm||length|7+5|m-1" },
        { START TOOL("1", "c1") ARGUMENTS("1", "") ARGUMENTS("1", "{\\\"a\\\"") ARGUMENTS("1", ":1}") STOP("1")
              TOOL("2", "c2") STOP("2") FINISH("tool_use"),
          "||c1 f {\"a\":1},c2 f {}|tool_calls|7+5|m-1" },
        { START TEXT("a") FINISH("refusal"), "a|||content_filter|7+5|m-1" },
        { START TEXT("a") EVENT("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"),
          "a|||-|-|-", -EAGAIN, "LLM_ERROR" },
        { START TEXT("a"), "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { START "data: x\n\n", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_stream(&llm_anthropic_messages, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
}

static void whole_answers_are_read(void **state)
{
    check_whole(
        &llm_anthropic_messages,
        "{\"model\":\"m-1\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":\"text\",\"text\":\"hi\"},"
        "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"a\":1}}],\"stop_reason\":\"tool_use\","
        "\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}",
        "hi|hm|c f {\"a\":1}|tool_calls|1+2|m-1", 0, NULL);
    check_whole(&llm_anthropic_messages, "{\"type\":\"error\",\"error\":{\"message\":\"x\"}}", "|||-|-|-", -EIO,
                "LLM_ERROR");
    check_whole(&llm_anthropic_messages, "{}", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID");
}

#define BLOCK(index, block) EVENT("content_block_start", ",\"index\":" index ",\"content_block\":{" block "}")
#define DELTA(index, delta) EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{" delta "}")

/* Two thoughts in sequence, an encrypted one, one whose text is withheld, one after a text. */
static void thoughts_keep_their_signatures_and_their_place(void **state)
{
    check_pieces(
        &llm_anthropic_messages,
        START BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
            DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"h\"")
                DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"m\"")
                    DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"s+1/==\"") STOP(
                        "0") BLOCK("1", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                        DELTA("1", "\"type\":\"thinking_delta\",\"thinking\":\"so\"")
                            DELTA("1", "\"type\":\"signature_delta\",\"signature\":\"s2\"") STOP(
                                "1") BLOCK("2", "\"type\":\"redacted_thinking\",\"data\":\"d1\"") STOP("2")
                                BLOCK("3", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                                    DELTA("3", "\"type\":\"signature_delta\",\"signature\":\"s3\"") STOP("3")
                                        BLOCK("4", "\"type\":\"text\",\"text\":\"\"")
                                            DELTA("4", "\"type\":\"text_delta\",\"text\":\"a\"") STOP("4")
                                                BLOCK("5", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                                                    DELTA("5", "\"type\":\"thinking_delta\",\"thinking\":\"oh\"")
                                                        DELTA("5", "\"type\":\"signature_delta\",\"signature\":\"s4\"")
                                                            STOP("5") TOOL("6", "c1") STOP("6") FINISH("tool_use"),
        "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s+1/==\"},{\"type\":\"thinking\",\"thinking\":\"so\",\"signature\":\"s2\"},"
        "{\"type\":\"redacted_thinking\",\"data\":\"d1\"},{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s3\"},{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"thinking\",\"thinking\":\"oh\",\"signature\":\"s4\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{}}]}",
        "thought hm (s+1/==), thought so (s2), hidden (d1), thought (s3), text a, thought oh (s4), call 0");
}

static void thoughts_go_back_signed_in_their_place_or_not_at_all(void **state)
{
    static const struct llm_thought thoughts[] = {
        { "hm", "s1" }, { "of another model", "" }, { NULL, "d1" }, { "", "s2" }
    };
    static const struct llm_block blocks[] = { { LLM_BLOCK_TEXT, .text = "a" }, { LLM_BLOCK_TEXT, .text = "b" } };
    static const struct llm_tool_call calls[] = { { "c1", "f", "{}" } };
    static const unsigned char order[] = { LLM_PIECE_THOUGHT, LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK, LLM_PIECE_THOUGHT,
                                           LLM_PIECE_CALL,    LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK };
    static const struct llm_block question[] = { { LLM_BLOCK_TEXT, .text = "q" } };
    static const char *const others[] = { "openai", "groq", "ollama", "deepseek" };
    struct llm_message messages[] = {
        { .role = LLM_USER, .blocks = question, .n_blocks = 1 },
        { .role = LLM_ASSISTANT,
          .blocks = blocks,
          .n_blocks = 2,
          .tool_calls = calls,
          .n_tool_calls = 1,
          .thoughts = thoughts,
          .n_thoughts = 4,
          .order = order,
          .n_order = 7 },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { .messages = messages,
                                   .n_messages = 2,
                                   .model = "m",
                                   .temperature = -1,
                                   .thinking = json_of(a, "{\"type\":\"enabled\",\"budget_tokens\":1024}"),
                                   .output_effort = "low" };
    struct http_call_request http = { 0 };

    assert_has(
        body_of(a, "anthropic", &request, &http),
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"redacted_thinking\",\"data\":\"d1\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{}},"
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"b\"}]}");
    assert_has(http.body.p,
               "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},\"output_config\":{\"effort\":\"low\"}");
    messages[1].order = NULL;
    assert_has(
        body_of(a, "anthropic", &request, &http),
        "\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"tool_use\"");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        const char *body = body_of(a, others[i], &request, &http);

        assert_lacks(body, "\"hm\"");
        assert_lacks(body, "s1");
        assert_lacks(body, "thinking");
    }
}

static void a_request_says_all_in_the_services_words(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body = body_of(a, "anthropic", &request, &http);

    assert_string_equal(http.url, "https://api.anthropic.com/v1/messages");
    assert_string_equal(header_value(&http, "x-api-key"), "k");
    assert_string_equal(header_value(&http, "anthropic-version"), "2023-06-01");
    assert_string_equal(
        body,
        "{\"model\":\"m\",\"system\":\"Be brief.\",\"messages\":["
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look:\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"weather\",\"input\":{\"city\":\"Bern\"}},"
        "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"time\",\"input\":{}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"rain\"},{\"type\":\"tool_result\",\"tool_use_id\":\"c2\",\"content\":\"noon\"}]}],"
        "\"max_tokens\":100,\"temperature\":0.5,\"stop_sequences\":[\"END\"],\"stream\":true,"
        "\"tools\":[{\"name\":\"weather\",\"description\":\"Tells it\",\"input_schema\":{\"type\":\"object\"}},{\"name\":\"time\",\"input_schema\":{\"type\":\"object\"}}]}");
}

static void sampling_and_tool_choice_are_translated(void **state)
{
    static const struct {
        const char *choice, *wanted;
    } cases[] = {
        { "\"required\"", "\"tool_choice\":{\"type\":\"any\"}" },
        { "\"none\"", "\"tool_choice\":{\"type\":\"none\"}" },
        { "\"auto\"", "\"tool_choice\":{\"type\":\"auto\"}" },
        { "{\"type\":\"function\",\"function\":{\"name\":\"time\"}}",
          "\"tool_choice\":{\"type\":\"tool\",\"name\":\"time\"}" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        request.tool_choice = json_of(a, cases[i].choice);
        assert_has(body_of(a, "anthropic", &request, &http), cases[i].wanted);
    }
    request.temperature = 1.5;
    assert_has(body_of(a, "anthropic", &request, &http), "\"temperature\":1,");
    request.has_top_p = true;
    request.top_p = 0.5;
    assert_lacks(body_of(a, "anthropic", &request, &http), "temperature");
    assert_has(body_of(a, "anthropic", &request, &http), "\"top_p\":0.5");
}

static void images_by_address_and_files_have_their_blocks(void **state)
{
    static const struct llm_block blocks[] = {
        { LLM_BLOCK_TEXT, .text = "" },
        { LLM_BLOCK_IMAGE_URL, .url = "https://h/x.png" },
        { LLM_BLOCK_FILE_DATA, .media_type = "application/pdf", .base64 = "QUJD", .file_name = "a.pdf" },
    };
    static const struct llm_message message = { .role = LLM_USER, .blocks = blocks, .n_blocks = 3 };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };

    assert_has(
        body_of(a, "anthropic", &request, &http),
        "\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://h/x.png\"}},"
        "{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"QUJD\"},\"title\":\"a.pdf\"}]");
    assert_has(body_of(a, "openai", &request, &http),
               "{\"type\":\"input_image\",\"image_url\":\"https://h/x.png\"},"
               "{\"type\":\"input_file\",\"filename\":\"a.pdf\",\"file_data\":\"data:application/pdf;base64,QUJD\"}");
    assert_has(
        body_of(a, "groq", &request, &http),
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x.png\"}},"
        "{\"type\":\"file\",\"file\":{\"filename\":\"a.pdf\",\"file_data\":\"data:application/pdf;base64,QUJD\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_however_they_are_split),
        cmocka_unit_test(whole_answers_are_read),
        cmocka_unit_test(thoughts_keep_their_signatures_and_their_place),
        cmocka_unit_test(thoughts_go_back_signed_in_their_place_or_not_at_all),
        cmocka_unit_test(a_request_says_all_in_the_services_words),
        cmocka_unit_test(sampling_and_tool_choice_are_translated),
        cmocka_unit_test(images_by_address_and_files_have_their_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
