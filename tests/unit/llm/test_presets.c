#include "protocol.h"

#include "net/url.h"

static void every_row_is_complete(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n = 0;

    for (const struct llm_preset *p = llm_presets; p->id; p++, n++) {
        struct url url = { 0 };

        assert_ptr_equal(llm_preset_find(p->id), p); /* ids are unique */
        assert_non_null(p->label);
        assert_non_null(p->help);
        assert_true(p->protocol && (p->can_chat || p->can_embed || p->can_speak || p->can_hear));
        assert_true(!p->needs_key || (p->auth_header && p->env_key[0]));
        assert_true(p->env_key[0] || p->env_base_url[0] || p->is_stand_in);
        assert_true(!p->env_region == !(p->region_url[0] && p->region_url[1]));
        if (p->base_url)
            assert_int_equal(url_parse(a, p->base_url, &url, NULL), 0);
        if (p->base_url && p->needs_key)
            assert_true(url.is_tls && !url.is_loopback); /* no key is sent unencrypted */
    }
    assert_true(n >= 37);
    assert_null(llm_preset_find("nobody"));
}

static void models_that_think_are_known_by_name(void **state)
{
    static const struct {
        const char *model;
        bool is_reasoning;
    } cases[] = {
        { "o1", true },      { "o3-mini", true }, { "openai/o4-mini", true },
        { "gpt-5", true },   { "gpt-5.1", true }, { "gpt-5-chat-latest", false },
        { "gpt-4o", false }, { "o1x", false },    { "olmo", false },
        { "", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(llm_model_is_reasoning(cases[i].model), cases[i].is_reasoning);
}

static void models_of_embeddings_are_known_by_name(void **state)
{
    static const struct {
        const char *model;
        bool is_embedding;
    } cases[] = {
        { "text-embedding-nomic-embed-text-v1.5", true },
        { "nomic-embed-text:latest", true },
        { "BAAI/bge-m3", true },
        { "all-MiniLM-L6-v2", true },
        { "intfloat/e5-large", true },
        { "llama3.2", false },
        { "gpt-4o", false },
        { "", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(llm_model_is_embedding(cases[i].model), cases[i].is_embedding);
}

static const struct {
    int status;
    const char *body;
    int r;
    const char *code, *words;
} refusals_cases[] = {
    { 401, "{\"error\":{\"message\":\"Incorrect API key\"}}", -EIO, "LLM_ERROR",
      "here refuses the API key (401): Incorrect API key" },
    { 403, " no\n", -EIO, "LLM_ERROR", "here says that this API key may not do this (403): no" },
    { 500, "Internal\x01", -EAGAIN, "LLM_ERROR", "here fails (500) and gives no reason." },
    { 500, "\xff", -EAGAIN, "LLM_ERROR", "here fails (500) and gives no reason." },
    { 502, "<html>", -EAGAIN, "LLM_ERROR", "here fails (502) and gives no reason." },
    { 500, "{\"broken", -EAGAIN, "LLM_ERROR", "here fails (500) and gives no reason." },
    { 404, "Cannot GET /models", -EIO, "LLM_ERROR",
      "here has no such address (404): is its base URL right? It says: Cannot GET /models" },
    { 402, "{\"error\":{\"message\":\"Insufficient Balance\",\"code\":402}}", -EIO, "LLM_ERROR",
      "here wants to be paid first (402): Insufficient Balance" },
    { 413, "", -EIO, "LLM_ERROR", "here finds the request too large (413) and gives no reason." },
    { 400, "[{\"error\":{\"code\":400,\"message\":\"Invalid value\",\"status\":\"INVALID_ARGUMENT\"}}]", -EIO,
      "LLM_ERROR", "(400): Invalid value" }, /* Gemini */
    { 422, "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"Field required\"}]}", -EIO, "LLM_ERROR",
      "(422): Field required" }, /* FastAPI */
    { 422, "{\"object\":\"error\",\"message\":{\"detail\":[{\"msg\":\"Field required\"}]}}", -EIO, "LLM_ERROR",
      "(422): Field required" }, /* Mistral */
    { 400, "{\"object\":\"error\",\"message\":\"Invalid model: x\",\"type\":\"invalid_model\",\"code\":\"1500\"}",
      -EINVAL, "INVALID_MODEL", "Invalid model: x" },
    { 404, "{\"error\":{\"code\":\"DeploymentNotFound\",\"message\":\"The API deployment does not exist.\"}}", -EINVAL,
      "INVALID_MODEL", "deployment" },
    { 400, "{\"error\":{\"message\":\"Model Not Exist\",\"code\":\"invalid_request_error\"}}", -EINVAL, "INVALID_MODEL",
      "Model Not Exist" }, /* DeepSeek */
    { 404, "{\"error\":{\"code\":\"model_not_found\"}}", -EINVAL, "INVALID_MODEL", "it gives no reason" },
    { 502,
      "{\"error\":{\"message\":\"Provider returned error\",\"code\":502,\"metadata\":{\"raw\":\"upstream is down\",\"provider_name\":\"x\"}}}",
      -EAGAIN, "LLM_ERROR", "Provider returned error: upstream is down" }, /* OpenRouter */
    { 429, "{\"error\":{\"message\":\"slow down\"}}", -EBUSY, "RATE_LIMIT", "slow down" },
    { 404, "{\"error\":\"model 'x' not found\"}", -EINVAL, "INVALID_MODEL", "model 'x' not found" },
    { 404, "<html>", -EIO, "LLM_ERROR", "here has no such address (404): is its base URL right?" },
    { 404, "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: x\"}}", -EINVAL,
      "INVALID_MODEL", "model: x" },
    { 400, "{\"error\":{\"message\":\"x is not a valid model ID\"}}", -EINVAL, "INVALID_MODEL", "x" },
    { 400, "{\"error\":{\"message\":\"bad\",\"code\":\"model_not_found\"}}", -EINVAL, "INVALID_MODEL", "bad" },
    { 400, "{\"error\":{\"message\":\"too long\"}}", -EIO, "LLM_ERROR", "refuses the request (400): too long" },
    { 301, "", -EIO, "LLM_ERROR", "redirect" },
    { 503, "{\"message\":\"busy\"}", -EAGAIN, "LLM_ERROR", "fails (503): busy" },
    { 500, "{\"detail\":\"x\"}", -EAGAIN, "LLM_ERROR", "x" },
};

static void refusals_become_the_codes_of_the_service(void **state)
{
    const struct llm_account acc = { .name = "here",
                                     .preset = llm_preset_find("openai"),
                                     .base_url = "https://x.example/v1" };

    for (size_t i = 0; i < ARRAY_SIZE(refusals_cases); i++) {
        struct err e = { 0 };

        assert_int_equal(llm_refusal(&acc, refusals_cases[i].status, slice_of(refusals_cases[i].body), &e),
                         refusals_cases[i].r);
        assert_string_equal(e.code, refusals_cases[i].code);
        assert_has(e.text, refusals_cases[i].words);
        assert_memory_equal(e.text, "here", 4);
    }
}

static void a_base_url_without_its_version_is_pointed_at(void **state)
{
    const struct llm_account acc = { .name = "here",
                                     .preset = llm_preset_find("generic-openai"),
                                     .base_url = "http://box:8000" };
    struct err e = { 0 };

    assert_int_equal(llm_refusal(&acc, 404, slice_of(""), &e), -EIO);
    assert_string_equal(e.text, "here has no such address (404): its base URL probably lacks /v1 at its end.");
}

static void a_refusal_that_repeats_the_credentials_is_reported_without_them(void **state)
{
    const struct http_call_header header = { "x-token", "abcd-efgh" };
    const struct llm_account acc = {
        .name = "here", .preset = llm_preset_find("openai"), .api_key = "sk-12345", .headers = &header, .n_headers = 1
    };
    struct err e = { 0 };

    assert_int_equal(llm_refusal(&acc, 401, slice_of("{\"error\":\"sk-12345 or abcd-efgh: no sk-12345\"}"), &e), -EIO);
    assert_has(e.text, ": **** or ****: no ****");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(models_that_think_are_known_by_name),
        cmocka_unit_test(models_of_embeddings_are_known_by_name),
        cmocka_unit_test(a_base_url_without_its_version_is_pointed_at),
        cmocka_unit_test(a_refusal_that_repeats_the_credentials_is_reported_without_them),
        cmocka_unit_test(refusals_become_the_codes_of_the_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
