/* Streams and errors, byte for byte, as OpenAI's and Anthropic's clients read them. How those clients interpret them:
 * tests/peers. */
#include "api/compat/v1_anthropic_form.h"
#include "api/compat/v1_openai_form.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define UUID "12345678-0000-4000-8000-000000000000"

struct recorder {
    struct llm_answer answer;
    struct llm_progress progress;
    struct buf out;
};

static void recorder_open(struct recorder *t, void *state)
{
    llm_answer_init(&t->answer);
    buf_init(&t->out, 1 << 20);
    t->progress = (struct llm_progress){ .uuid = UUID,
                                         .provider = "p",
                                         .model = "m",
                                         .answer = &t->answer,
                                         .began_wall_ms = 5999,
                                         .prompt_tokens = 7,
                                         .state = state };
}

static void recorder_close(struct recorder *t)
{
    llm_answer_clear(&t->answer);
    buf_clear(&t->out);
}

static void emit_tool(struct recorder *t, const struct llm_form *form, size_t index, const char *id, const char *name,
                      const char *arguments)
{
    form->tool(&t->out, &t->progress, index, id, name, slice_of(arguments));
}

static void emit_end(struct recorder *t, const struct llm_form *form, enum llm_finish why)
{
    llm_answer_end(&t->answer, why, &(struct llm_usage){ .prompt_tokens = 3, .completion_tokens = 5 }, NULL);
    form->end(&t->out, &t->progress);
}

static void check(struct recorder *t, const char *wanted)
{
    assert_string_equal(buf_str(&t->out), wanted);
    buf_reset(&t->out);
}

#define CHUNK                                                                                                          \
    "data: {\"id\":\"chatcmpl-" UUID                                                                                   \
    "\",\"object\":\"chat.completion.chunk\",\"created\":5,\"model\":\"m\",\"choices\":["
#define DELTA(delta, why) CHUNK "{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":" why "}]}\n\n"

static void openai_streams_are_chunks(void **state)
{
    struct v1_openai_state own = { .wants_usage = true };
    const struct llm_form *form = &v1_openai_form;
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t, &own);
    form->begin(&t.out, &t.progress);
    check(&t, DELTA("{\"role\":\"assistant\",\"content\":\"\"}", "null"));
    form->reasoning(&t.out, &t.progress, SLICE_LIT("hm"));
    check(&t, DELTA("{\"reasoning_content\":\"hm\"}", "null"));
    form->text(&t.out, &t.progress, SLICE_LIT("a\n\"b\""));
    check(&t, DELTA("{\"content\":\"a\\n\\\"b\\\"\"}", "null"));
    emit_tool(&t, form, 1, "c1", "f", "");
    check(
        &t,
        DELTA(
            "{\"tool_calls\":[{\"index\":1,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}",
            "null"));
    emit_tool(&t, form, 1, NULL, NULL, "{\"x\"");
    check(&t, DELTA("{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{\\\"x\\\"\"}}]}", "null"));
    emit_end(&t, form, LLM_FINISH_TOOLS);
    check(&t, DELTA("{}", "\"tool_calls\"") CHUNK
          "],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5,\"total_tokens\":8}}\n\ndata: [DONE]\n\n");
}

static void openai_streams_carry_what_must_come_back(void **state)
{
    struct v1_openai_state own = { .wants_usage = false };
    AUTO(recorder_close) struct recorder t;
    struct llm_sink sink;

    recorder_open(&t, &own);
    sink = llm_answer_sink(&t.answer);
    v1_openai_form.extra(&t.out, &t.progress, 1, SLICE_LIT("{\"google\":{\"thought_signature\":\"s\"}}"));
    check(
        &t,
        DELTA(
            "{\"tool_calls\":[{\"index\":1,\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}},\"function\":{\"arguments\":\"\"}}]}",
            "null"));
    assert_true(v1_openai_form.keeps_thoughts);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("hm")), 0);
    assert_int_equal(sink.on_signature(sink.arg, false, SLICE_LIT("s1")), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("d1")), 0);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("unsigned")), 0);
    emit_end(&t, &v1_openai_form, LLM_FINISH_STOP);
    check(
        &t,
        DELTA(
            "{\"thinking_blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":\"redacted_thinking\",\"data\":\"d1\"}]}",
            "null") DELTA("{}", "\"stop\"") "data: [DONE]\n\n");
}

static void openai_streams_report_usage_only_when_asked(void **state)
{
    struct v1_openai_state own = { .wants_usage = false };
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t, &own);
    emit_end(&t, &v1_openai_form, LLM_FINISH_LENGTH);
    check(&t, DELTA("{}", "\"length\"") "data: [DONE]\n\n");
}

#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define START(index, block) EVENT("content_block_start", ",\"index\":" index ",\"content_block\":{" block "}")
#define PART(index, delta) EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{" delta "}")
#define STOP(index) EVENT("content_block_stop", ",\"index\":" index)
#define USAGE(in, out) ",\"usage\":{\"input_tokens\":" in ",\"output_tokens\":" out "}"

static void anthropic_streams_are_blocks_one_behind_the_other(void **state)
{
    struct v1_anthropic_state own = { 0 };
    const struct llm_form *form = &v1_anthropic_form;
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t, &own);
    form->begin(&t.out, &t.progress);
    check(&t,
          EVENT("message_start", ",\"message\":{\"id\":\"msg_" UUID
                                 "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"
                                 "\"stop_reason\":null,\"stop_sequence\":null" USAGE("7", "0") "}") EVENT("ping", ""));
    form->reasoning(&t.out, &t.progress, SLICE_LIT("hm"));
    check(&t, START("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                  PART("0", "\"type\":\"thinking_delta\",\"thinking\":\"hm\""));
    form->text(&t.out, &t.progress, SLICE_LIT("a"));
    check(&t,
          STOP("0") START("1", "\"type\":\"text\",\"text\":\"\"") PART("1", "\"type\":\"text_delta\",\"text\":\"a\""));
    form->text(&t.out, &t.progress, SLICE_LIT("b"));
    check(&t, PART("1", "\"type\":\"text_delta\",\"text\":\"b\""));
    emit_tool(&t, form, 0, "c0", "f", "");
    check(&t, STOP("1") START("2", "\"type\":\"tool_use\",\"id\":\"c0\",\"name\":\"f\",\"input\":{}"));
    emit_tool(&t, form, 0, NULL, NULL, "{}");
    check(&t, PART("2", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\""));
    emit_tool(&t, form, LIMIT_TOOL_CALLS - 1, "c1", "g", "{}");
    check(&t, STOP("2") START("3", "\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"g\",\"input\":{}")
                  PART("3", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\""));
    emit_end(&t, form, LLM_FINISH_TOOLS);
    check(&t, STOP("3") EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null}" USAGE(
                                                   "3", "5")) EVENT("message_stop", ""));
}

static void signatures_end_their_thoughts(void **state)
{
    struct v1_anthropic_state own = { 0 };
    const struct llm_form *form = &v1_anthropic_form;
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t, &own);
    form->reasoning(&t.out, &t.progress, SLICE_LIT("hm"));
    buf_reset(&t.out);
    form->signature(&t.out, &t.progress, false, SLICE_LIT("s1"));
    check(&t, PART("0", "\"type\":\"signature_delta\",\"signature\":\"s1\"") STOP("0"));
    form->reasoning(&t.out, &t.progress, SLICE_LIT("so"));
    check(&t, START("1", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                  PART("1", "\"type\":\"thinking_delta\",\"thinking\":\"so\""));
    form->signature(&t.out, &t.progress, true, SLICE_LIT("d1"));
    check(&t, STOP("1") START("2", "\"type\":\"redacted_thinking\",\"data\":\"d1\"") STOP("2"));
    form->signature(&t.out, &t.progress, false, SLICE_LIT("s2")); /* of a thought whose text is withheld */
    check(&t, START("3", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
                  PART("3", "\"type\":\"signature_delta\",\"signature\":\"s2\"") STOP("3"));
    form->text(&t.out, &t.progress, SLICE_LIT("a"));
    check(&t, START("4", "\"type\":\"text\",\"text\":\"\"") PART("4", "\"type\":\"text_delta\",\"text\":\"a\""));
}

static void a_message_has_its_blocks_in_the_order_they_were_reported(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(recorder_close) struct recorder t;
    struct json_writer w;
    struct llm_sink sink;

    recorder_open(&t, NULL);
    sink = llm_answer_sink(&t.answer);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("hm")), 0);
    assert_int_equal(sink.on_signature(sink.arg, false, SLICE_LIT("s1")), 0);
    assert_int_equal(sink.on_signature(sink.arg, true, SLICE_LIT("d1")), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("a")), 0);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("so")), 0);
    assert_int_equal(sink.on_tool(sink.arg, 0, "c", "f", SLICE_LIT("{}")), 0);
    json_write_init(&w, &t.out);
    json_begin_object(&w);
    v1_anthropic_form.whole(&w, &t.progress);
    json_end(&w);
    assert_non_null(strstr(
        buf_str(&t.out),
        "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":\"redacted_thinking\",\"data\":\"d1\"},"
        "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"thinking\",\"thinking\":\"so\",\"signature\":\"\"},"
        "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}]"));
}

static void an_answer_of_nothing_is_a_message_too(void **state)
{
    struct v1_anthropic_state own = { 0 };
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t, &own);
    emit_end(&t, &v1_anthropic_form, LLM_FINISH_STOP);
    check(&t, EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}" USAGE("3", "5"))
                  EVENT("message_stop", ""));
}

static void errors_in_a_stream_are_reported_in_it(void **state)
{
    AUTO(recorder_close) struct recorder t;
    struct err e = { 0 };

    recorder_open(&t, NULL);
    err_set(&e, -EIO, "LLM_ERROR", "It broke.");
    v1_openai_form.error(&t.out, &t.progress, &e);
    check(
        &t,
        "data: {\"error\":{\"message\":\"It broke.\",\"type\":\"server_error\",\"param\":null,\"code\":\"llm_error\",\"hearth_code\":\"LLM_ERROR\"}}\n\n");
    v1_anthropic_form.error(&t.out, &t.progress, &e);
    check(&t, EVENT("error",
                    ",\"error\":{\"type\":\"api_error\",\"message\":\"It broke.\",\"hearth_code\":\"LLM_ERROR\"}"));
}

/* Our status and code; then the status, OpenAI's type and code, and Anthropic's type in the answer. */
static void errors_have_the_status_and_the_words_of_the_form(void **state)
{
    static const struct {
        int status;
        const char *code;
        int progress;
        const char *openai_type, *openai_code, *anthropic_type;
    } cases[] = {
        { 400, "VALIDATION_ERROR", 400, "invalid_request_error", "validation_error", "invalid_request_error" },
        { 400, "INVALID_MODEL", 404, "invalid_request_error", "model_not_found", "not_found_error" },
        { 400, "PROVIDER_UNAVAILABLE", 404, "invalid_request_error", "model_not_found", "not_found_error" },
        { 401, "MISSING_APP_ID", 401, "authentication_error", "invalid_api_key", "authentication_error" },
        { 401, "INVALID_API_KEY", 401, "authentication_error", "invalid_api_key", "authentication_error" },
        { 403, "PERMISSION_REQUIRED", 403, "permission_error", "permission_required", "permission_error" },
        { 405, "METHOD_NOT_ALLOWED", 405, "invalid_request_error", "method_not_allowed", "invalid_request_error" },
        { 413, "BODY_TOO_LARGE", 413, "invalid_request_error", "body_too_large", "request_too_large" },
        { 429, "RATE_LIMIT", 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error" },
        { 500, "INTERNAL_ERROR", 500, "server_error", "internal_error", "api_error" },
        { 502, "LLM_ERROR", 502, "server_error", "llm_error", "api_error" },
        { 503, "PROVIDER_UNAVAILABLE", 503, "server_error", "provider_unavailable", "overloaded_error" },
        { 504, "UPSTREAM_TIMEOUT", 504, "server_error", "upstream_timeout", "timeout_error" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct http_exchange x = { .arena = a, .request.id = "r-1" };
        struct json_value progress = { 0 };
        struct err e = { 0 };
        struct json_writer w;
        struct buf out;

        err_set(&e, -EINVAL, cases[i].code, "Words.");
        for (int k = 0; k < 2; k++) {
            buf_init(&out, 4096);
            json_write_init(&w, &out);
            json_begin_object(&w);
            assert_int_equal((k ? &v1_anthropic_error : &v1_openai_error)->write(&w, &x, cases[i].status, &e),
                             cases[i].progress);
            json_end(&w);
            assert_int_equal(json_parse(a, buf_slice(&out), &progress, NULL), 0);
            progress = json_get(progress, "error");
            assert_string_equal(json_cstr(json_get(progress, "type")),
                                k ? cases[i].anthropic_type : cases[i].openai_type);
            assert_string_equal(json_cstr(json_get(progress, "hearth_code")), cases[i].code);
            if (k == 0)
                assert_string_equal(json_cstr(json_get(progress, "code")), cases[i].openai_code);
            buf_clear(&out);
        }
    }
}

static void arguments_that_are_no_object_become_an_empty_one(void **state)
{
    static const struct {
        const char *arguments, *input;
    } cases[] = { { "{\"a\":1}", "{\"a\":1}" }, { "", "{}" }, { "[1]", "{}" }, { "{\"a\"", "{}" } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        AUTO(recorder_close) struct recorder t;
        struct json_writer w;

        recorder_open(&t, NULL);
        assert_int_equal(llm_answer_add_tool(&t.answer, 0, "c", "f", slice_of(cases[i].arguments)), 0);
        json_write_init(&w, &t.out);
        json_begin_object(&w);
        v1_anthropic_form.whole(&w, &t.progress);
        json_end(&w);
        assert_non_null(strstr(buf_str(&t.out), arena_printf(a, "\"input\":%s}]", cases[i].input)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_streams_are_chunks),
        cmocka_unit_test(openai_streams_carry_what_must_come_back),
        cmocka_unit_test(openai_streams_report_usage_only_when_asked),
        cmocka_unit_test(anthropic_streams_are_blocks_one_behind_the_other),
        cmocka_unit_test(signatures_end_their_thoughts),
        cmocka_unit_test(a_message_has_its_blocks_in_the_order_they_were_reported),
        cmocka_unit_test(an_answer_of_nothing_is_a_message_too),
        cmocka_unit_test(errors_in_a_stream_are_reported_in_it),
        cmocka_unit_test(errors_have_the_status_and_the_words_of_the_form),
        cmocka_unit_test(arguments_that_are_no_object_become_an_empty_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
