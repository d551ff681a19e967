/* The rows of presets.c against the table of providers in use (facts page "Providers in the field", 5.1), copied from
 * there by hand. */
#include "protocol.h"

enum family { CHAT, RESPONSES, MESSAGES, NATIVE };

struct fact {
    const char *id;
    enum family family;
    const char *base_url;          /* NULL: the person's own */
    const char *path;              /* appended to an address of the person's own */
    const char *key, *url, *model; /* variables */
};

/* Where that page says "no auth", key is empty. */
static const struct fact facts[] = {
    { "openai", RESPONSES, "https://api.openai.com/v1", NULL, "OPEN_AI_KEY", NULL, "OPEN_MODEL_PREF" },
    { "azure", CHAT, NULL, "/openai/v1", "AZURE_OPENAI_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_MODEL_PREF" },
    { "anthropic", MESSAGES, "https://api.anthropic.com", NULL, "ANTHROPIC_API_KEY", NULL, "ANTHROPIC_MODEL_PREF" },
    { "gemini", CHAT, "https://generativelanguage.googleapis.com/v1beta/openai/", NULL, "GEMINI_API_KEY", NULL,
      "GEMINI_LLM_MODEL_PREF" },
    { "bedrock", CHAT, NULL, "/v1", "AWS_BEDROCK_LLM_API_KEY", NULL, "AWS_BEDROCK_LLM_MODEL_PREFERENCE" },
    { "cohere", CHAT, "https://api.cohere.ai/compatibility/v1", NULL, "COHERE_API_KEY", NULL, "COHERE_MODEL_PREF" },
    { "ollama", NATIVE, NULL, NULL, "OLLAMA_AUTH_TOKEN", "OLLAMA_BASE_PATH", "OLLAMA_MODEL_PREF" },
    { "lmstudio", CHAT, NULL, "/v1", "LMSTUDIO_AUTH_TOKEN", "LMSTUDIO_BASE_PATH", "LMSTUDIO_MODEL_PREF" },
    { "localai", CHAT, NULL, "/v1", "LOCAL_AI_API_KEY", "LOCAL_AI_BASE_PATH", "LOCAL_AI_MODEL_PREF" },
    { "koboldcpp", CHAT, NULL, "/v1", NULL, "KOBOLD_CPP_BASE_PATH", "KOBOLD_CPP_MODEL_PREF" },
    { "textgenwebui", CHAT, NULL, "/v1", "TEXT_GEN_WEB_UI_API_KEY", "TEXT_GEN_WEB_UI_BASE_PATH", NULL },
    { "litellm", CHAT, NULL, NULL, "LITE_LLM_API_KEY", "LITE_LLM_BASE_PATH", "LITE_LLM_MODEL_PREF" },
    { "generic-openai", CHAT, NULL, NULL, "GENERIC_OPEN_AI_API_KEY", "GENERIC_OPEN_AI_BASE_PATH",
      "GENERIC_OPEN_AI_MODEL_PREF" },
    { "nvidia-nim", CHAT, NULL, "/v1", NULL, "NVIDIA_NIM_LLM_BASE_PATH", "NVIDIA_NIM_LLM_MODEL_PREF" },
    { "foundry", CHAT, NULL, "/v1", NULL, "FOUNDRY_BASE_PATH", "FOUNDRY_MODEL_PREF" },
    { "docker-model-runner", CHAT, NULL, "/engines/v1", NULL, "DOCKER_MODEL_RUNNER_BASE_PATH",
      "DOCKER_MODEL_RUNNER_LLM_MODEL_PREF" },
    { "privatemode", CHAT, NULL, "/v1", NULL, "PRIVATEMODE_LLM_BASE_PATH", "PRIVATEMODE_LLM_MODEL_PREF" },
    { "lemonade", CHAT, NULL, "/api/v1", "LEMONADE_LLM_API_KEY", "LEMONADE_LLM_BASE_PATH", "LEMONADE_LLM_MODEL_PREF" },
    { "omlx", CHAT, NULL, "/v1", "OMLX_LLM_API_KEY", "OMLX_LLM_BASE_PATH", "OMLX_LLM_MODEL_PREF" },
    { "togetherai", CHAT, "https://api.together.xyz/v1", NULL, "TOGETHER_AI_API_KEY", NULL, "TOGETHER_AI_MODEL_PREF" },
    { "fireworksai", CHAT, "https://api.fireworks.ai/inference/v1", NULL, "FIREWORKS_AI_LLM_API_KEY", NULL,
      "FIREWORKS_AI_LLM_MODEL_PREF" },
    { "mistral", CHAT, "https://api.mistral.ai/v1", NULL, "MISTRAL_API_KEY", NULL, "MISTRAL_MODEL_PREF" },
    { "perplexity", CHAT, "https://api.perplexity.ai", NULL, "PERPLEXITY_API_KEY", NULL, "PERPLEXITY_MODEL_PREF" },
    { "openrouter", CHAT, "https://openrouter.ai/api/v1", NULL, "OPENROUTER_API_KEY", NULL, "OPENROUTER_MODEL_PREF" },
    { "novita", CHAT, "https://api.novita.ai/v3/openai", NULL, "NOVITA_LLM_API_KEY", NULL, "NOVITA_LLM_MODEL_PREF" },
    { "groq", CHAT, "https://api.groq.com/openai/v1", NULL, "GROQ_API_KEY", NULL, "GROQ_MODEL_PREF" },
    { "deepseek", CHAT, "https://api.deepseek.com/v1", NULL, "DEEPSEEK_API_KEY", NULL, "DEEPSEEK_MODEL_PREF" },
    { "apipie", CHAT, "https://apipie.ai/v1", NULL, "APIPIE_LLM_API_KEY", NULL, "APIPIE_LLM_MODEL_PREF" },
    { "xai", CHAT, "https://api.x.ai/v1", NULL, "XAI_LLM_API_KEY", NULL, "XAI_LLM_MODEL_PREF" },
    { "ppio", CHAT, "https://api.ppinfra.com/v3/openai/", NULL, "PPIO_API_KEY", NULL, "PPIO_MODEL_PREF" },
    { "moonshotai", CHAT, "https://api.moonshot.ai/v1", NULL, "MOONSHOT_AI_API_KEY", NULL, "MOONSHOT_AI_MODEL_PREF" },
    { "cometapi", CHAT, "https://api.cometapi.com/v1", NULL, "COMETAPI_LLM_API_KEY", NULL, "COMETAPI_LLM_MODEL_PREF" },
    { "zai", CHAT, "https://api.z.ai/api/paas/v4", NULL, "ZAI_API_KEY", NULL, "ZAI_MODEL_PREF" },
    { "giteeai", CHAT, "https://ai.gitee.com/v1", NULL, "GITEE_AI_API_KEY", NULL, "GITEE_AI_MODEL_PREF" },
    { "sambanova", CHAT, "https://api.sambanova.ai/v1", NULL, "SAMBANOVA_LLM_API_KEY", NULL,
      "SAMBANOVA_LLM_MODEL_PREF" },
    { "minimax", CHAT, "https://api.minimax.io/v1", NULL, "MINIMAX_API_KEY", NULL, "MINIMAX_MODEL_PREF" },
    { "cerebras", CHAT, "https://api.cerebras.ai/v1", NULL, "CEREBRAS_API_KEY", NULL, "CEREBRAS_MODEL_PREF" },
};

static void assert_among(const char *const names[3], const char *wanted, const char *id)
{
    bool is_there = !wanted;

    for (size_t i = 0; i < 3 && names[i]; i++)
        is_there = is_there || strcmp(names[i], wanted) == 0;
    if (!is_there)
        fail_msg("%s does not read %s", id, wanted);
}

static void assert_same_url(const char *url, const char *wanted)
{
    size_t n = strlen(wanted);

    n -= wanted[n - 1] == '/';
    if (!url || strlen(url) != n || memcmp(url, wanted, n) != 0)
        fail_msg("%s is not %s", url ? url : "nothing", wanted);
}

static void every_provider_of_the_field_is_there_as_the_field_has_it(void **state)
{
    static const struct llm_protocol *const families[] = { &llm_openai_chat, &llm_openai_responses,
                                                           &llm_anthropic_messages, &llm_ollama };

    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        const struct fact *f = &facts[i];
        const struct llm_preset *p = llm_preset_find(f->id);

        assert_non_null(p);
        assert_ptr_equal(p->protocol, families[f->family]);
        if (f->base_url)
            assert_same_url(p->base_url, f->base_url);
        else /* a preset's address, if any, is the usual one on a person's own machine */
            assert_true(!p->base_url || strncmp(p->base_url, "http://127.0.0.1:", 17) == 0);
        if (f->path)
            assert_string_equal(p->base_path, f->path);
        assert_among(p->env_key, f->key, f->id);
        assert_among(p->env_base_url, f->url, f->id);
        assert_among(p->env_model, f->model, f->id);
        assert_int_equal(p->needs_key, f->base_url || strcmp(f->id, "azure") == 0 || strcmp(f->id, "bedrock") == 0);
    }
}

static void keys_go_where_the_field_puts_them(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        const struct llm_preset *p = llm_preset_find(facts[i].id);
        bool is_anthropic = strcmp(facts[i].id, "anthropic") == 0;

        assert_string_equal(p->auth_header, is_anthropic ? "x-api-key" : "authorization");
        assert_string_equal(p->auth_prefix ? p->auth_prefix : "", is_anthropic ? "" : "Bearer ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_provider_of_the_field_is_there_as_the_field_has_it),
        cmocka_unit_test(keys_go_where_the_field_puts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
