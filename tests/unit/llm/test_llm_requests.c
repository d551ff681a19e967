/* The requests of all protocols side by side: one request in the form of each protocol. */
#include "protocol.h"

#include "llm/plan.h"

#define TEXT(words)                                                                                                    \
    {                                                                                                                  \
        LLM_BLOCK_TEXT, .text = words                                                                                  \
    }

static const char *const protocols[] = { "openai", "anthropic", "ollama",
                                         "groq" }; /* responses, messages, native, chat completions */

static int refuse(const char *preset, const struct llm_request *request, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_preset *row = llm_preset_find(preset);
    const struct llm_account acc = {
        .name = preset, .preset = row, .base_url = row->base_url ? row->base_url : "https://h/v1", .api_key = "k"
    };
    struct http_call_request http = { 0 };

    return row->protocol->request(&acc, request, a, &http, e);
}

static void a_tool_is_chosen_in_the_words_of_each(void **state)
{
    static const struct {
        const char *choice, *of[4];
    } cases[] = {
        { "\"auto\"",
          { "\"tool_choice\":\"auto\"", "\"tool_choice\":{\"type\":\"auto\"}",
            "\"tools\":", "\"tool_choice\":\"auto\"" } },
        { "\"none\"",
          { "\"tool_choice\":\"none\"", "\"tool_choice\":{\"type\":\"none\"}", NULL, "\"tool_choice\":\"none\"" } },
        { "\"required\"",
          { "\"tool_choice\":\"required\"", "\"tool_choice\":{\"type\":\"any\"}",
            "\"tools\":", "\"tool_choice\":\"required\"" } },
        { "{\"type\":\"function\",\"function\":{\"name\":\"time\"}}",
          { "\"tool_choice\":{\"type\":\"function\",\"name\":\"time\"}",
            "\"tool_choice\":{\"type\":\"tool\",\"name\":\"time\"}",
            "\"tools\":", "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"time\"}}" } },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t k = 0; k < ARRAY_SIZE(protocols); k++) {
            request.tool_choice = json_of(a, cases[i].choice);
            if (cases[i].of[k])
                assert_has(body_of(a, protocols[k], &request, &http), cases[i].of[k]);
            else /* Ollama has no tool choice: without tools there is nothing to choose */
                assert_lacks(body_of(a, protocols[k], &request, &http), "\"tools\"");
        }
}

static void a_tools_result_may_hold_an_image_where_the_protocol_takes_one(void **state)
{
    static const struct llm_block result[] = { TEXT("seen:"),
                                               { LLM_BLOCK_IMAGE_DATA, .media_type = "image/png", .base64 = "QUJD" } };
    static const struct llm_tool_call call = { "c1", "look", "{}" };
    static const struct llm_message messages[] = {
        { .role = LLM_ASSISTANT, .tool_calls = &call, .n_tool_calls = 1 },
        { .role = LLM_TOOL, .blocks = result, .n_blocks = 2, .tool_call_id = "c1" },
    };
    static const char *const wanted[] = {
        "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":[{\"type\":\"input_text\",\"text\":\"seen:\"},"
        "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\"}]}",
        "{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":\"seen:\"},"
        "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]}",
        "{\"role\":\"tool\",\"content\":\"seen:\",\"tool_name\":\"look\",\"images\":[\"QUJD\"]}",
    };
    const struct llm_request request = { .messages = messages, .n_messages = 2, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        assert_has(body_of(a, protocols[i], &request, &http), wanted[i]);
    assert_int_equal(refuse("groq", &request, &e), -EINVAL);
    assert_string_equal(e.code, "UNSUPPORTED_CONTENT");
    assert_has(e.text, "`messages[1]`");
}

static void what_a_protocol_cannot_carry_is_refused_with_its_place(void **state)
{
    static const struct llm_block blocks[] = {
        { LLM_BLOCK_IMAGE_URL, .url = "https://h/x.png" },
        { LLM_BLOCK_FILE_DATA, .media_type = "application/pdf", .base64 = "QUJD" },
        { LLM_BLOCK_FILE_DATA, .media_type = "application/zip", .base64 = "QUJD" },
    };
    static const struct {
        const char *preset;
        size_t block;
        const char *words;
    } cases[] = {
        { "ollama", 0, "data URL" },
        { "ollama", 1, "text and images only" },
        { "anthropic", 2, "application/zip" },
        { "anthropic", 0, NULL },
        { "anthropic", 1, NULL },
        { "openai", 2, NULL },
        { "groq", 2, NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_message message = { .role = LLM_USER, .blocks = &blocks[cases[i].block], .n_blocks = 1 };
        const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
        struct err e = { 0 };

        assert_int_equal(refuse(cases[i].preset, &request, &e), cases[i].words ? -EINVAL : 0);
        assert_string_equal(e.code, cases[i].words ? "UNSUPPORTED_CONTENT" : "");
        if (cases[i].words) {
            assert_has(e.text, cases[i].words);
            assert_has(e.text, "`messages[0]`");
        }
    }
}

static void a_failed_tool_is_reported_in_the_words_of_each(void **state)
{
    static const struct llm_block text[] = { TEXT("no network") }, progress[] = { TEXT("error 404") };
    static const struct llm_tool_call call = { "c1", "look", "{}" };
    static const struct llm_message messages[] = {
        { .role = LLM_ASSISTANT, .tool_calls = &call, .n_tool_calls = 1 },
        { .role = LLM_TOOL, .blocks = text, .n_blocks = 1, .tool_call_id = "c1", .is_error = true },
        { .role = LLM_TOOL, .blocks = progress, .n_blocks = 1, .tool_call_id = "c1", .is_error = true },
        { .role = LLM_TOOL, .blocks = text, .n_blocks = 1, .tool_call_id = "c1" },
    };
    static const char *const wanted[][3] = {
        { "\"output\":\"Error: no network\"}", "\"output\":\"error 404\"}", "\"output\":\"no network\"}" },
        { "\"content\":\"no network\",\"is_error\":true}", "\"content\":\"error 404\",\"is_error\":true}",
          "\"content\":\"no network\"}" },
        { "\"content\":\"Error: no network\",", "\"content\":\"error 404\",", "\"content\":\"no network\"," },
        { "\"content\":\"Error: no network\",", "\"content\":\"error 404\",", "\"content\":\"no network\"," },
    };
    const struct llm_request request = { .messages = messages, .n_messages = 4, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        for (size_t k = 0; k < ARRAY_SIZE(wanted[i]); k++)
            assert_has(body_of(a, protocols[i], &request, &http), wanted[i][k]);
}

static void files_without_a_name_get_one_and_images_their_detail(void **state)
{
    static const struct llm_block blocks[] = {
        { LLM_BLOCK_FILE_DATA, .media_type = "application/pdf", .base64 = "QUJD" },
        { LLM_BLOCK_IMAGE_URL, .url = "https://h/x.png", .detail = "low" },
    };
    static const struct llm_message message = { .role = LLM_USER, .blocks = blocks, .n_blocks = 2 };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };

    assert_has(
        body_of(a, "openai", &request, &http),
        "[{\"type\":\"input_file\",\"filename\":\"file.pdf\",\"file_data\":\"data:application/pdf;base64,QUJD\"},"
        "{\"type\":\"input_image\",\"image_url\":\"https://h/x.png\",\"detail\":\"low\"}]");
    assert_has(
        body_of(a, "groq", &request, &http),
        "[{\"type\":\"file\",\"file\":{\"filename\":\"file.pdf\",\"file_data\":\"data:application/pdf;base64,QUJD\"}},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x.png\",\"detail\":\"low\"}}]");
    assert_has(body_of(a, "anthropic", &request, &http),
               "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://h/x.png\"}}");
}

static void addresses_of_files_go_to_those_who_fetch_them(void **state)
{
    static const struct llm_block pdf = { LLM_BLOCK_FILE_URL, .url = "https://h/a.pdf?x=1", .file_name = "mine" },
                                  page = { LLM_BLOCK_FILE_URL, .url = "https://h/a" };
    const struct llm_message named = { .role = LLM_USER, .blocks = &pdf, .n_blocks = 1 },
                             unnamed = { .role = LLM_USER, .blocks = &page, .n_blocks = 1 };
    const struct llm_request request = { .messages = &named, .n_messages = 1, .model = "m" },
                             other = { .messages = &unnamed, .n_messages = 1, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };
    struct err e = { 0 };

    assert_has(body_of(a, "openai", &request, &http), "{\"type\":\"input_file\",\"file_url\":\"https://h/a.pdf?x=1\"}");
    assert_has(
        body_of(a, "anthropic", &request, &http),
        "{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"https://h/a.pdf?x=1\"},\"title\":\"mine\"}");
    assert_int_equal(refuse("anthropic", &other, &e), -EINVAL);
    assert_int_equal(refuse("groq", &request, &e), -EINVAL);
    assert_int_equal(refuse("ollama", &request, &e), -EINVAL);
    assert_string_equal(e.code, "UNSUPPORTED_CONTENT");
}

static void the_time_of_a_model_is_read_as_each_service_reports_it(void **state)
{
    static const struct {
        const struct llm_protocol *protocol;
        const char *list;
        int64_t wanted;
    } cases[] = {
        { &llm_openai_chat, "{\"data\":[{\"id\":\"m\",\"created\":1715367049}]}", 1715367049 },
        { &llm_openai_responses, "{\"data\":[{\"id\":\"m\",\"created\":1715367049.5}]}", 1715367049 },
        { &llm_openai_chat, "{\"data\":[{\"id\":\"m\",\"created\":1715367049123}]}", 1715367049 },
        { &llm_openai_chat, "{\"data\":[{\"id\":\"m\",\"created\":-5}]}", 0 },
        { &llm_openai_chat, "{\"data\":[{\"id\":\"m\",\"created\":1e300}]}", 0 },
        { &llm_openai_chat, "{\"data\":[{\"id\":\"m\",\"created\":[]}]}", 0 },
        { &llm_anthropic_messages, "{\"data\":[{\"id\":\"m\",\"created_at\":\"2025-02-19T00:00:00Z\"}]}", 1739923200 },
        { &llm_ollama, "{\"models\":[{\"name\":\"m\",\"modified_at\":\"2025-10-03T23:34:03.409490317-07:00\"}]}",
          1759559643 },
        { &llm_ollama, "{\"models\":[{\"name\":\"m\",\"modified_at\":\"yesterday\"}]}", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_models models = { 0 };

        assert_int_equal(cases[i].protocol->on_models(slice_of(cases[i].list), a, &models, NULL), 0);
        assert_int_equal(models.items[0].created_s, cases[i].wanted);
    }
}

static void an_assistant_that_spoke_and_called_tools_is_reported_so(void **state)
{
    static const struct llm_block said[] = { TEXT("Let me see.") };
    static const struct llm_tool_call call = { "c1", "look", "not json" };
    static const struct llm_message message = {
        .role = LLM_ASSISTANT, .blocks = said, .n_blocks = 1, .tool_calls = &call, .n_tool_calls = 1
    };
    static const char *const wanted[] = {
        "\"input\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Let me see.\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"look\",\"arguments\":\"not json\"}]",
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Let me see.\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"look\",\"input\":{}}]}",
        "{\"role\":\"assistant\",\"content\":\"Let me see.\",\"tool_calls\":[{\"function\":{\"name\":\"look\",\"arguments\":{}}}]}",
        "{\"role\":\"assistant\",\"content\":\"Let me see.\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"not json\"}}]}",
    };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
        assert_has(body_of(a, protocols[i], &request, &http), wanted[i]);
}

/* Anthropic: system separate, no empty messages, alternating roles, at least one message. */
static void anthropic_gets_no_message_it_would_refuse(void **state)
{
    static const struct llm_block rule1[] = { TEXT("One.") }, rule2[] = { TEXT("Two.") }, blank[] = { TEXT(" \n") },
                                  hi[] = { TEXT("hi"), TEXT("") }, more[] = { TEXT("more") };
    static const struct llm_message mixed[] = {
        { .role = LLM_SYSTEM, .blocks = rule1, .n_blocks = 1 },
        { .role = LLM_USER, .blocks = hi, .n_blocks = 2 },
        { .role = LLM_ASSISTANT, .blocks = blank, .n_blocks = 1 },
        { .role = LLM_SYSTEM, .blocks = rule2, .n_blocks = 1 },
        { .role = LLM_USER, .blocks = more, .n_blocks = 1 },
    };
    static const struct {
        size_t first, n;
        const char *wanted;
    } cases[] = {
        { 0, 5,
          "\"system\":\"One.\\n\\nTwo.\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"text\",\"text\":\"more\"}]}]," },
        { 0, 1,
          "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"One.\"}]}]," },
        { 2, 2,
          "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Two.\"}]}]," },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_request http = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_request request = { .messages = mixed + cases[i].first,
                                             .n_messages = cases[i].n,
                                             .model = "m" };

        assert_has(body_of(a, "anthropic", &request, &http), cases[i].wanted);
    }
}

static void sampling_goes_only_to_models_that_take_it(void **state)
{
    static const struct {
        const char *preset, *model;
        bool temperature, top_p, has_temperature, has_top_p;
        const char *tokens;
    } cases[] = {
        { "openai", "gpt-4.1", true, true, true, true, "\"max_output_tokens\":64" },
        { "openai", "o4-mini", true, true, false, false, "\"max_output_tokens\":64" },
        { "openrouter", "openai/gpt-5", true, true, false, false, "\"max_completion_tokens\":64" },
        { "groq", "llama-3.3-70b-versatile", true, true, true, true, "\"max_tokens\":64" },
        { "azure", "my-deployment", true, false, true, false, "\"max_completion_tokens\":64" },
        { "azure", "my-o3", false, false, false, false,
          "\"max_completion_tokens\":64" }, /* the name of a deployment says nothing about the model */
        { "ollama", "llama3.2", true, true, true, true, "\"num_predict\":64" },
        { "anthropic", "claude-sonnet-4-5", true, true, true, false, "\"max_tokens\":64" }, /* one of the two */
        { "anthropic", "claude-sonnet-4-5", false, true, false, true, "\"max_tokens\":64" },
        { "anthropic", "claude-sonnet-4-5", false, false, true, false, "\"max_tokens\":64" },
        { "anthropic", "claude-opus-4-7", true, true, false, false, "\"max_tokens\":64" },
        { "anthropic", "claude-sonnet-5", true, true, false, false, "\"max_tokens\":64" },
        { "anthropic", "glm-4.6", true, false, true, false, "\"max_tokens\":64" },
    };
    static const struct llm_block hi[] = { TEXT("hi") };
    static const struct llm_message message = { .role = LLM_USER, .blocks = hi, .n_blocks = 1 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct llm_preset *row = llm_preset_find(cases[i].preset);
        const struct llm_account acc = { .name = "x", .preset = row, .base_url = "https://h/v1" };
        const struct llm_request request = { .messages = &message,
                                             .n_messages = 1,
                                             .model = cases[i].model,
                                             .temperature = 0.25,
                                             .has_temperature = cases[i].temperature,
                                             .top_p = 0.5,
                                             .has_top_p = cases[i].top_p,
                                             .max_tokens = 64 };
        struct http_call_request http = { 0 };

        assert_int_equal(row->protocol->request(&acc, &request, a, &http, NULL), 0);
        (cases[i].has_temperature ? assert_has : assert_lacks)(http.body.p, "\"temperature\":0.25");
        (cases[i].has_top_p ? assert_has : assert_lacks)(http.body.p, "\"top_p\":0.5");
        assert_has(http.body.p, cases[i].tokens);
    }
}

static void anthropics_models_are_known_by_their_generation(void **state)
{
    static const struct {
        const char *model;
        bool takes;
    } cases[] = {
        { "claude-3-5-haiku-latest", true },   { "claude-2.1", true },
        { "claude-sonnet-4-20250514", true },  { "claude-opus-4-1-20250805", true },
        { "claude-sonnet-4-6", true },         { "claude-opus-4@20250514", true },
        { "claude-haiku-4-5", true },          { "claude-opus-4-7", false },
        { "claude-opus-4-8-20260401", false }, { "claude-opus-5", false },
        { "claude-sonnet-5-20270101", false }, { "glm-4.6", true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(llm_model_takes_sampling(cases[i].model), cases[i].takes);
}

static void ids_of_tool_calls_are_made_to_fit(void **state)
{
    static const struct {
        const char *preset, *id;
        bool is_kept;
        size_t length;
    } cases[] = {
        { "groq", "call_abc-1", true, 10 },
        { "anthropic", "toolu_01", true, 8 },
        { "anthropic", "functions.weather:0", false, 14 },
        { "mistral", "D681PevKs", true, 9 },
        { "mistral", "call_abc1", false, 9 },
        { "mistral", "call_a-very-long-one", false, 9 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct llm_tool_call call = { cases[i].id, "f", "{}" };
        const struct llm_message messages[] = { { .role = LLM_ASSISTANT, .tool_calls = &call, .n_tool_calls = 1 },
                                                { .role = LLM_TOOL, .tool_call_id = cases[i].id } };
        const struct llm_request request = { .messages = messages, .n_messages = 2, .model = "m" };
        const struct llm_account acc = { .preset = llm_preset_find(cases[i].preset) };
        const char *id = wire_tool_id(a, &acc, cases[i].id), *body, *first;
        struct http_call_request http = { 0 };

        assert_int_equal(strcmp(id, cases[i].id) == 0, cases[i].is_kept);
        assert_int_equal(strlen(id), cases[i].length);
        body = body_of(a, cases[i].preset, &request, &http);
        first = strstr(body, arena_printf(a, "\"%s\"", id));
        assert_non_null(first);
        assert_non_null(strstr(first + 1, arena_printf(a, "\"%s\"", id))); /* the call and its result */
    }
}

static void every_account_speaks_to_its_own_address_with_its_own_headers(void **state)
{
    static const struct {
        const char *preset, *base_url, *url, *header, *value;
    } cases[] = {
        { "openai", NULL, "https://api.openai.com/v1/responses", "authorization", "Bearer k" },
        { "azure", "https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1/chat/completions",
          "authorization", "Bearer k" },
        { "anthropic", NULL, "https://api.anthropic.com/v1/messages", "x-api-key", "k" },
        { "anthropic", NULL, "https://api.anthropic.com/v1/messages", "anthropic-version", "2023-06-01" },
        { "anthropic", NULL, "https://api.anthropic.com/v1/messages", "authorization", NULL },
        { "openrouter", NULL, "https://openrouter.ai/api/v1/chat/completions", "x-title", "Hearth" },
        { "groq", NULL, "https://api.groq.com/openai/v1/chat/completions", "x-title", NULL },
        { "ollama", NULL, "http://127.0.0.1:11434/api/chat", "authorization", "Bearer k" },
        { "foundry", "http://127.0.0.1:5273/v1", "http://127.0.0.1:5273/v1/chat/completions", "authorization",
          "Bearer k" },
        { "generic-openai", "https://h/a?api-version=2", "https://h/a/chat/completions?api-version=2", "x-own", "1" },
    };
    static const struct http_call_header own = { "x-own", "1" };
    static const struct llm_block hi[] = { TEXT("hi") };
    static const struct llm_message message = { .role = LLM_USER, .blocks = hi, .n_blocks = 1 };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m", .max_tokens = 1 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct llm_preset *row = llm_preset_find(cases[i].preset);
        const struct llm_account acc = { .name = "x",
                                         .preset = row,
                                         .base_url = cases[i].base_url ? cases[i].base_url : row->base_url,
                                         .api_key = "k",
                                         .headers = &own,
                                         .n_headers = 1 };
        struct http_call_request http = { 0 };

        assert_int_equal(row->protocol->request(&acc, &request, a, &http, NULL), 0);
        assert_string_equal(http.url, cases[i].url);
        assert_string_equal(http.method, "POST");
        assert_string_equal(header_value(&http, "content-type"), "application/json");
        assert_string_equal(header_value(&http, "x-own"), "1");
        if (cases[i].value)
            assert_string_equal(header_value(&http, cases[i].header), cases[i].value);
        else
            assert_null(header_value(&http, cases[i].header));
    }
}

static void gemini_gets_the_signature_it_asks_for(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };

    assert_has(body_of(a, "gemini", &request, &http),
               "\"extra_content\":{\"google\":{\"thought_signature\":\"skip_thought_signature_validator\"}}");
    assert_lacks(body_of(a, "groq", &request, &http), "extra_content");
}

/* api-docs.deepseek.com/guides/thinking_mode: a tool call must be sent back with the thoughts before the call, or it is
 * refused. */
static void thoughts_go_back_to_those_who_ask_for_them(void **state)
{
    static const struct llm_tool_call call = { "c1", "look", "{}" };
    static const struct {
        const char *preset, *reasoning, *wanted, *unwanted;
    } cases[] = {
        { "deepseek", "hm", "\"reasoning_content\":\"hm\"", NULL },
        { "moonshotai", "hm", "\"reasoning_content\":\"hm\"", NULL },
        { "deepseek", NULL, "\"reasoning_content\":\"\"", NULL },
        { "ollama", "hm", "\"thinking\":\"hm\"", "reasoning" },
        { "groq", "hm", "\"name\":\"me\"", "reasoning" },
        { "mistral", "hm", "\"tool_calls\"", "\"name\":\"me\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct llm_message message = {
            .role = LLM_ASSISTANT, .name = "me", .tool_calls = &call, .n_tool_calls = 1, .reasoning = cases[i].reasoning
        };
        const struct llm_request request = { .messages = &message, .n_messages = 1, .model = "m" };
        struct http_call_request http = { 0 };
        const char *body = body_of(a, cases[i].preset, &request, &http);

        assert_has(body, cases[i].wanted);
        if (cases[i].unwanted)
            assert_lacks(body, cases[i].unwanted);
    }
}

static void formats_are_asked_for_where_each_protocol_has_their_place(void **state)
{
    static const char *const wanted[][4] = {
        { "\"text\":{\"format\":{\"type\":\"json_object\"}}", NULL, "\"format\":\"json\"",
          "\"response_format\":{\"type\":\"json_object\"}" },
        { "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"type\":\"object\"},\"strict\":false}}",
          NULL, "\"format\":{\"type\":\"object\"}",
          "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{\"type\":\"object\"},\"strict\":false}}" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);
    struct http_call_request http = { 0 };

    request.schema = json_of(a, "{\"type\":\"object\"}");
    request.schema_name = "n";
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        for (size_t k = 0; k < ARRAY_SIZE(protocols); k++) {
            request.format = i == 0 ? LLM_FORMAT_JSON : LLM_FORMAT_SCHEMA;
            if (wanted[i][k])
                assert_has(body_of(a, protocols[k], &request, &http), wanted[i][k]);
        }
}

/* Some services repeat the key that they refuse. */
static void errors_hide_the_accounts_secrets(void **state)
{
    static const struct http_call_header own[] = { { "x-token", "very-secret-token" }, { "x-region", "eu" } };
    const struct llm_account acc = {
        .name = "here", .preset = llm_presets, .api_key = "sk-proj-0123456789", .headers = own, .n_headers = 2
    };
    struct err e = { 0 };

    err_set(&e, -EIO, "LLM_ERROR",
            "Incorrect API key sk-proj-0123456789, not sk-proj-0123456789 with very-secret-token in eu");
    assert_int_equal(llm_blame(&acc, -EIO, &e), -EIO);
    assert_string_equal(e.text, "Incorrect API key ****, not **** with **** in eu");
    err_set(&e, -EIO, "LLM_ERROR", "%.*s", 30, "Incorrect API key: sk-proj-0123456789"); /* cut inside the key */
    assert_int_equal(llm_blame(&acc, -EIO, &e), -EIO);
    assert_string_equal(e.text, "Incorrect API key: ****");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_is_chosen_in_the_words_of_each),
        cmocka_unit_test(a_tools_result_may_hold_an_image_where_the_protocol_takes_one),
        cmocka_unit_test(what_a_protocol_cannot_carry_is_refused_with_its_place),
        cmocka_unit_test(a_failed_tool_is_reported_in_the_words_of_each),
        cmocka_unit_test(files_without_a_name_get_one_and_images_their_detail),
        cmocka_unit_test(addresses_of_files_go_to_those_who_fetch_them),
        cmocka_unit_test(the_time_of_a_model_is_read_as_each_service_reports_it),
        cmocka_unit_test(an_assistant_that_spoke_and_called_tools_is_reported_so),
        cmocka_unit_test(anthropic_gets_no_message_it_would_refuse),
        cmocka_unit_test(sampling_goes_only_to_models_that_take_it),
        cmocka_unit_test(anthropics_models_are_known_by_their_generation),
        cmocka_unit_test(ids_of_tool_calls_are_made_to_fit),
        cmocka_unit_test(every_account_speaks_to_its_own_address_with_its_own_headers),
        cmocka_unit_test(gemini_gets_the_signature_it_asks_for),
        cmocka_unit_test(thoughts_go_back_to_those_who_ask_for_them),
        cmocka_unit_test(formats_are_asked_for_where_each_protocol_has_their_place),
        cmocka_unit_test(errors_hide_the_accounts_secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
