#include "protocol.h"

#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define TEXT(delta) EVENT("response.output_text.delta", ",\"output_index\":0,\"delta\":\"" delta "\"")
#define RESPONSE(members) ",\"response\":{\"model\":\"m-1\"" members "}"
#define USAGE ",\"usage\":{\"input_tokens\":3,\"output_tokens\":5}"

static void streams_are_read_however_they_are_split(void **state)
{
    static const struct {
        const char *text, *wanted;
        int r;
        const char *code;
    } cases[] = {
        { EVENT("response.created", RESPONSE("")) TEXT("Hel") TEXT("lo") EVENT("response.completed", RESPONSE(USAGE)),
          "Hello|||stop|3+5|m-1" },
        { EVENT("response.reasoning_summary_text.delta", ",\"delta\":\"hm\"") TEXT("a")
              EVENT("response.completed", RESPONSE("")),
          "a|hm||stop|-|m-1" },
        { EVENT(
              "response.output_item.added",
              ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"\"}")
              EVENT("response.output_item.added",
                    ",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"c2\",\"name\":\"g\"}")
                  EVENT("response.function_call_arguments.delta", ",\"output_index\":2,\"delta\":\"{}\"")
                      EVENT("response.function_call_arguments.delta", ",\"output_index\":1,\"delta\":\"{\\\"a\\\":1}\"")
                          EVENT("response.function_call_arguments.delta", ",\"output_index\":9,\"delta\":\"lost\"")
                              EVENT("response.completed", RESPONSE(USAGE)),
          "||c1 f {\"a\":1},c2 g {}|tool_calls|3+5|m-1" },
        { TEXT("a")
              EVENT("response.incomplete", RESPONSE(",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}")),
          "a|||length|-|m-1" },
        { EVENT("response.incomplete", RESPONSE(",\"incomplete_details\":{\"reason\":\"content_filter\"}")),
          "|||content_filter|-|m-1" },
        { EVENT("response.refusal.delta", ",\"delta\":\"no\"")
              EVENT("response.completed", RESPONSE("")) "data: [DONE]\n\n",
          "no|||stop|-|m-1" },
        { TEXT("a") EVENT("response.failed", RESPONSE(",\"error\":{\"message\":\"bad\"}")), "a|||-|-|-", -EIO,
          "LLM_ERROR" },
        { EVENT("error", ",\"message\":\"bad\""), "|||-|-|-", -EIO, "LLM_ERROR" },
        { TEXT("a"), "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
        { "data: {\"type\":\n\n", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_stream(&llm_openai_responses, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
}

static void whole_answers_are_read(void **state)
{
    check_whole(&llm_openai_responses,
                "{\"model\":\"m-1\",\"status\":\"completed\",\"error\":null,\"output\":["
                "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}]},"
                "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]},"
                "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}]" USAGE "}",
                "hi|hm|c f {}|tool_calls|3+5|m-1", 0, NULL);
    check_whole(&llm_openai_responses, "{\"error\":{\"message\":\"x\"}}", "|||-|-|-", -EIO, "LLM_ERROR");
    check_whole(&llm_openai_responses, "{}", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID");
}

static void a_request_says_all_in_the_services_words(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body;

    request.tool_choice = json_of(a, "{\"type\":\"function\",\"function\":{\"name\":\"time\"}}");
    body = body_of(a, "openai", &request, &http);
    assert_string_equal(http.url, "https://api.openai.com/v1/responses");
    assert_string_equal(
        body,
        "{\"model\":\"m\",\"input\":[{\"role\":\"system\",\"content\":[{\"type\":\"input_text\",\"text\":\"Be brief.\"}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Look:\"},{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"},"
        "{\"type\":\"function_call\",\"call_id\":\"c2\",\"name\":\"time\",\"arguments\":\"{}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"rain\"},{\"type\":\"function_call_output\",\"call_id\":\"c2\",\"output\":\"noon\"}],"
        "\"temperature\":0.5,\"max_output_tokens\":100,\"stream\":true,\"store\":false,"
        "\"tools\":[{\"type\":\"function\",\"name\":\"weather\",\"description\":\"Tells it\",\"parameters\":{\"type\":\"object\"},\"strict\":false},"
        "{\"type\":\"function\",\"name\":\"time\",\"parameters\":{\"type\":\"object\",\"properties\":{}},\"strict\":false}],\"tool_choice\":{\"type\":\"function\",\"name\":\"time\"}}");
}

static void models_that_think_take_no_temperature_and_a_least_of_tokens_is_asked(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };
    const char *body;

    request.model = "gpt-5-mini";
    request.max_tokens = 1;
    request.format = LLM_FORMAT_JSON;
    body = body_of(a, "openai", &request, &http);
    assert_lacks(body, "temperature");
    assert_has(body, "\"max_output_tokens\":16");
    assert_has(body, "\"text\":{\"format\":{\"type\":\"json_object\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_however_they_are_split),
        cmocka_unit_test(whole_answers_are_read),
        cmocka_unit_test(a_request_says_all_in_the_services_words),
        cmocka_unit_test(models_that_think_take_no_temperature_and_a_least_of_tokens_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
