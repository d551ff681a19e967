#include "protocol.h"

#define CHUNK(choice) "data: {\"model\":\"m-1\",\"choices\":[" choice "]}\n\n"
#define DELTA(members) CHUNK("{\"index\":0,\"delta\":{" members "},\"finish_reason\":null}")
#define FINISH(why) CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}")
#define USAGE "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\n"
#define DONE "data: [DONE]\n\n"

static void streams_are_read_however_they_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
        int r;
        const char *code;
    } cases[] = {
        { DELTA("\"role\":\"assistant\",\"content\":\"\"") DELTA("\"content\":\"Hel\"")
              DELTA("\"content\":\"l\xc3\xb6\"") FINISH("stop") USAGE DONE,
          "Hell\xc3\xb6|||stop|3+5|m-1" },
        { DELTA("\"content\":\"a\"") FINISH("length"), "a|||length|-|m-1" }, /* never sends DONE */
        { DELTA("\"content\":\"a\"") DONE, "a|||stop|-|m-1" },
        { DELTA("\"reasoning_content\":\"hm\"") DELTA("\"reasoning\":\"!\"") DELTA("\"content\":\"a\"") FINISH("stop")
              DONE,
          "a|hm!||stop|-|m-1" },
        { DELTA(
              "\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]},{\"type\":\"text\",\"text\":\"a\"}]")
              DONE,
          "a|hm||stop|-|m-1" },
        { DELTA(
              "\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]")
              DELTA("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}}]") DELTA(
                  "\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}},{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]")
                  FINISH("tool_calls") DONE,
          "||c1 f {\"a\":1},c2 g {}|tool_calls|-|m-1" },
        { ": ping\n\n" DELTA("\"content\":null,\"refusal\":\"no\"") FINISH("content_filter") DONE "data: late\n\n",
          "no|||content_filter|-|m-1" },
        { DELTA("\"content\":\"a\""), "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { "", "|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { DELTA("\"content\":\"a\"") "data: {\"error\":{\"message\":\"overloaded\"}}\n\n", "a|||-|-|-", -EIO,
          "LLM_ERROR" },
        { "data: {malformed json: <<<chaos>>>\n\n", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
        { "data: []\n\n", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_stream(&llm_openai_chat, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
}

static void more_calls_than_the_limit_are_refused(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_answer answer;
    struct buf text;

    for (int n = LIMIT_TOOL_CALLS; n <= LIMIT_TOOL_CALLS + 1; n++) {
        llm_answer_init(&answer);
        buf_init(&text, 1 << 20);
        for (int i = 0; i < n; i++)
            buf_printf(
                &text,
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"c%d\",\"function\":{\"name\":\"f\"}}]}}]}\n\n",
                i);
        buf_add_str(&text, DONE);
        assert_int_equal(feed(&llm_openai_chat, buf_str(&text), 4096, a, &answer, NULL),
                         n > LIMIT_TOOL_CALLS ? -EMSGSIZE : 0);
        assert_int_equal(answer.n_tools, LIMIT_TOOL_CALLS);
        buf_clear(&text);
        llm_answer_clear(&answer);
    }
}

static void whole_answers_are_read(void **state)
{
    check_whole(
        &llm_openai_chat,
        "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"hi\",\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}],"
        "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
        "hi|hm||stop|1+2|m-1", 0, NULL);
    check_whole(
        &llm_openai_chat,
        "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},"
        "\"finish_reason\":\"tool_calls\"}]}",
        "||c f {\"a\":1}|tool_calls|-|-", 0, NULL);
    check_whole(&llm_openai_chat, "{\"choices\":[]}", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID");
    check_whole(&llm_openai_chat, "{\"error\":{\"message\":\"x\"}}", "|||-|-|-", -EIO, "LLM_ERROR");
    check_whole(&llm_openai_chat, "<html>", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID");
}

static void a_request_says_all_in_the_services_words(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body = body_of(a, "groq", &request, &http);

    assert_string_equal(http.url, "https://api.groq.com/openai/v1/chat/completions");
    assert_string_equal(header_value(&http, "authorization"), "Bearer k");
    assert_string_equal(
        body,
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look:\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,QUJD\"}}]},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"}},"
        "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"time\",\"arguments\":\"{}\"}}]},"
        "{\"role\":\"tool\",\"content\":\"rain\",\"tool_call_id\":\"c1\"},{\"role\":\"tool\",\"content\":\"noon\",\"tool_call_id\":\"c2\"}],"
        "\"temperature\":0.5,\"max_tokens\":100,\"stop\":[\"END\"],\"stream\":true,\"stream_options\":{\"include_usage\":true},"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"Tells it\",\"parameters\":{\"type\":\"object\"}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"time\"}}]}");
}

static void quirks_and_formats_change_the_request(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body;

    request.model = "openai/o3-mini";
    request.is_streamed = false;
    request.format = LLM_FORMAT_SCHEMA;
    request.schema_name = "answer";
    request.is_schema_strict = true;
    request.schema = json_of(a, "{\"type\":\"object\"}");
    request.tool_choice = json_of(a, "\"required\"");
    body = body_of(a, "openrouter", &request, &http);
    assert_has(body, "\"max_completion_tokens\":100");
    assert_lacks(body, "temperature");
    assert_lacks(body, "stream_options");
    assert_has(body, "\"stream\":false");
    assert_has(body, "\"tool_choice\":\"required\"");
    assert_has(
        body,
        "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"schema\":{\"type\":\"object\"},\"strict\":true}}");
    request.format = LLM_FORMAT_JSON;
    request.is_streamed = true;
    body = body_of(a, "mistral", &request, &http);
    assert_lacks(body, "stream_options");
    assert_has(body, "\"response_format\":{\"type\":\"json_object\"}");
}

static void the_list_of_models_is_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_models models = { 0 };
    struct err e = { 0 };

    assert_int_equal(
        llm_openai_chat.on_models(slice_of("{\"data\":[{\"id\":\"a\",\"name\":\"A\"},{\"id\":\"b\"},{\"x\":1},3]}"), a,
                                  &models, &e),
        0);
    assert_int_equal(models.n, 2);
    assert_string_equal(models.items[0].name, "A");
    assert_string_equal(models.items[1].name, "b");
    assert_int_equal(models.items[0].created_s, 0);
    assert_int_equal(llm_openai_chat.on_models(slice_of("{\"data\":3}"), a, &models, &e), -EBADMSG);
    assert_int_equal(llm_openai_chat.on_models(slice_of("nothing"), a, &models, &e), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_however_they_are_split),
        cmocka_unit_test(more_calls_than_the_limit_are_refused),
        cmocka_unit_test(whole_answers_are_read),
        cmocka_unit_test(a_request_says_all_in_the_services_words),
        cmocka_unit_test(quirks_and_formats_change_the_request),
        cmocka_unit_test(the_list_of_models_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
