#include "protocol.h"

#define LINE(message) "{\"model\":\"m-1\",\"message\":{\"role\":\"assistant\"," message "},\"done\":false}\n"
#define DONE(members)                                                                                                  \
    "{\"model\":\"m-1\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true" members "}\n"
#define COUNTS ",\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":5"

static void streams_are_read_however_they_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
        int r;
        const char *code;
    } cases[] = {
        { LINE("\"content\":\"Hel\"") LINE("\"content\":\"lo\"") DONE(COUNTS), "Hello|||stop|3+5|m-1" },
        { LINE("\"content\":\"\",\"thinking\":\"hm\"") LINE("\"content\":\"a\"") DONE(",\"done_reason\":\"length\""),
          "a|hm||length|-|m-1" },
        { LINE(
              "\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},{\"id\":\"c2\",\"function\":{\"name\":\"g\"}}]")
              DONE(COUNTS),
          "||c1 f {\"a\":1},c2 g {}|tool_calls|3+5|m-1" },
        { "{\"message\":{\"content\":\"a\"},\"done\":true}", "a|||stop|-|-" }, /* without the final line end */
        { LINE("\"content\":\"a\"") "{\"error\":\"the model crashed\"}\n", "a|||-|-|-", -EIO, "LLM_ERROR" },
        { LINE("\"content\":\"a\"") "{\"error\":\"the model crashed\"}", "a|||-|-|-", -EIO, "LLM_ERROR" },
        { LINE("\"content\":\"a\""), "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { LINE("\"content\":\"a\"") "{\"message\":{\"con", "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { "{malformed json: <<<chaos>>>\n", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_stream(&llm_ollama, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
}

static void whole_answers_are_read(void **state)
{
    check_whole(&llm_ollama,
                "{\"model\":\"m-1\",\"message\":{\"content\":\"hi\",\"thinking\":\"hm\"},\"done\":true" COUNTS "}",
                "hi|hm||stop|3+5|m-1", 0, NULL);
    check_whole(&llm_ollama, "{\"error\":\"x\"}", "|||-|-|-", -EIO, "LLM_ERROR");
    check_whole(&llm_ollama, "{}", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID");
}

static void a_tool_call_without_an_id_gets_one(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_answer answer;

    llm_answer_init(&answer);
    assert_int_equal(feed(&llm_ollama,
                          LINE("\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]") DONE(""), 5, a,
                          &answer, NULL),
                     0);
    assert_memory_equal(answer.tools[0].id, "call_", 5);
    assert_int_equal(strlen(answer.tools[0].id), 41);
    llm_answer_clear(&answer);
}

static void a_request_says_all_in_the_services_words(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body = body_of(a, "ollama", &request, &http);

    assert_string_equal(http.url, "http://127.0.0.1:11434/api/chat");
    assert_string_equal(
        body,
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Look:\",\"images\":[\"QUJD\"]},"
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"weather\",\"arguments\":{\"city\":\"Bern\"}}},{\"function\":{\"name\":\"time\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"content\":\"rain\",\"tool_name\":\"weather\"},{\"role\":\"tool\",\"content\":\"noon\",\"tool_name\":\"time\"}],"
        "\"stream\":true,\"options\":{\"temperature\":0.5,\"num_predict\":100,\"stop\":[\"END\"]},"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"Tells it\",\"parameters\":{\"type\":\"object\"}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"time\",\"description\":\"\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]}");
    request.format = LLM_FORMAT_JSON;
    assert_has(body_of(a, "ollama", &request, &http), "\"format\":\"json\"");
}

static void what_it_cannot_read_is_refused_in_words(void **state)
{
    static const enum llm_block_kind kinds[] = { LLM_BLOCK_IMAGE_URL, LLM_BLOCK_FILE_DATA };
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_account acc = { .name = "ollama",
                                     .preset = llm_preset_find("ollama"),
                                     .base_url = "http://127.0.0.1:11434" };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct llm_block block = { kinds[i], .url = "https://h/x.png", .media_type = "application/pdf",
                                         .base64 = "QUJD" };
        const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
        const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
        struct http_call_request http = { 0 };
        struct err e = { 0 };

        assert_int_equal(llm_ollama.request(&acc, &request, a, &http, &e), -EINVAL);
        assert_string_equal(e.code, "UNSUPPORTED_CONTENT");
        assert_has(e.text, "messages[0]");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_however_they_are_split),
        cmocka_unit_test(whole_answers_are_read),
        cmocka_unit_test(a_tool_call_without_an_id_gets_one),
        cmocka_unit_test(a_request_says_all_in_the_services_words),
        cmocka_unit_test(what_it_cannot_read_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
