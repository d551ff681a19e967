/* The table of known providers. */
#include "llm/llm.h"
#include "stand_in/rules.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define BEARER .auth_header = "authorization", .auth_prefix = "Bearer "
#define CHAT .protocol = &llm_openai_chat, BEARER, .can_chat = true
#define KEYED CHAT, .needs_key = true
#define KEY_HELP(service) .help = "An API key of " service "."
#define URL_HELP(what) .help = "The address of " what "; a key when it asks for one."

const struct llm_preset llm_presets[] = {
    /* OpenAI and its host on Azure */
    { .id = "openai", .label = "OpenAI", .can_speak = true, .can_hear = true, .protocol = &llm_openai_responses, BEARER, .needs_key = true, .can_chat = true, .can_embed = true,
      .base_url = "https://api.openai.com/v1", .base_path = "/v1", .env_key = { "OPENAI_API_KEY", "OPEN_AI_KEY" },
      .env_base_url = { "OPENAI_BASE_URL" }, .env_model = { "OPENAI_MODEL", "OPEN_MODEL_PREF" }, .default_model = "gpt-4.1-mini",
      .default_embed_model = "text-embedding-3-small", KEY_HELP("platform.openai.com") },
    { .id = "azure", .label = "Azure OpenAI", KEYED, .can_embed = true, .base_path = "/openai/v1", .env_key = { "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY" },
      .env_base_url = { "AZURE_OPENAI_ENDPOINT" }, .env_model = { "AZURE_OPENAI_MODEL_PREF", "OPEN_MODEL_PREF" },
      .quirks = LLM_QUIRK_MAX_COMPLETION_TOKENS | LLM_QUIRK_OWN_TEMPERATURE, .help = "The endpoint https://<resource>.openai.azure.com, a key, and the deployment's name as model." },

    /* other makers of models */
    { .id = "anthropic", .label = "Anthropic", .protocol = &llm_anthropic_messages, .auth_header = "x-api-key", .needs_key = true, .can_chat = true,
      .base_url = "https://api.anthropic.com", .env_key = { "ANTHROPIC_API_KEY" }, .env_base_url = { "ANTHROPIC_BASE_URL" },
      .env_model = { "ANTHROPIC_MODEL", "ANTHROPIC_MODEL_PREF" }, .default_model = "claude-sonnet-4-5", KEY_HELP("console.anthropic.com") },
    { .id = "gemini", .label = "Google Gemini", KEYED, .can_embed = true, .base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
      .env_key = { "GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_EMBEDDING_API_KEY" }, .env_model = { "GEMINI_MODEL", "GEMINI_LLM_MODEL_PREF" }, .default_model = "gemini-2.5-flash",
      .default_embed_model = "gemini-embedding-001", .quirks = LLM_QUIRK_THOUGHT_SIGNATURES, KEY_HELP("aistudio.google.com") },
    { .id = "mistral", .label = "Mistral", KEYED, .can_embed = true, .base_url = "https://api.mistral.ai/v1", .env_key = { "MISTRAL_API_KEY" },
      .env_model = { "MISTRAL_MODEL_PREF" }, .default_model = "mistral-small-latest", .default_embed_model = "mistral-embed",
      .quirks = LLM_QUIRK_NO_STREAM_USAGE | LLM_QUIRK_SHORT_TOOL_IDS | LLM_QUIRK_NO_NAMES, KEY_HELP("console.mistral.ai") },
    { .id = "cohere", .label = "Cohere", KEYED, .can_embed = true, .base_url = "https://api.cohere.ai/compatibility/v1", .env_key = { "COHERE_API_KEY", "CO_API_KEY" },
      .env_model = { "COHERE_MODEL_PREF" }, .default_model = "command-a-03-2025", .quirks = LLM_QUIRK_NO_MODEL_LIST, KEY_HELP("dashboard.cohere.com") },
    { .id = "voyageai", .label = "Voyage AI", .protocol = &llm_openai_chat, BEARER, .needs_key = true, .can_embed = true,
      .base_url = "https://api.voyageai.com/v1", .env_key = { "VOYAGE_API_KEY", "VOYAGEAI_API_KEY" }, .default_embed_model = "voyage-3-lite",
      .quirks = LLM_QUIRK_NO_MODEL_LIST, KEY_HELP("dash.voyageai.com") },
    { .id = "deepseek", .label = "DeepSeek", KEYED, .base_url = "https://api.deepseek.com/v1", .env_key = { "DEEPSEEK_API_KEY" },
      .env_model = { "DEEPSEEK_MODEL_PREF" }, .default_model = "deepseek-chat", .quirks = LLM_QUIRK_NO_JSON_SCHEMA | LLM_QUIRK_THOUGHTS_BACK, KEY_HELP("platform.deepseek.com") },
    { .id = "xai", .label = "xAI", KEYED, .base_url = "https://api.x.ai/v1", .env_key = { "XAI_API_KEY", "XAI_LLM_API_KEY" },
      .env_model = { "XAI_LLM_MODEL_PREF" }, .default_model = "grok-4", KEY_HELP("console.x.ai") },
    { .id = "moonshotai", .label = "Moonshot AI", KEYED, .base_url = "https://api.moonshot.ai/v1", .env_key = { "MOONSHOT_API_KEY", "MOONSHOT_AI_API_KEY" },
      .env_model = { "MOONSHOT_AI_MODEL_PREF" }, .quirks = LLM_QUIRK_NO_JSON_SCHEMA | LLM_QUIRK_THOUGHTS_BACK, KEY_HELP("platform.moonshot.ai") },
    { .id = "zai", .label = "Z.ai", KEYED, .base_url = "https://api.z.ai/api/paas/v4", .env_key = { "ZAI_API_KEY" }, .env_model = { "ZAI_MODEL_PREF" },
      .quirks = LLM_QUIRK_NO_JSON_SCHEMA, KEY_HELP("z.ai") },
    { .id = "minimax", .label = "MiniMax", KEYED, .base_url = "https://api.minimax.io/v1", .env_key = { "MINIMAX_API_KEY" },
      .env_model = { "MINIMAX_MODEL_PREF" }, .quirks = LLM_QUIRK_NO_JSON_SCHEMA | LLM_QUIRK_NO_JSON_OBJECT, KEY_HELP("minimax.io") },
    { .id = "perplexity", .label = "Perplexity", KEYED, .base_url = "https://api.perplexity.ai", .env_key = { "PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY" },
      .env_model = { "PERPLEXITY_MODEL_PREF" }, .default_model = "sonar", .quirks = LLM_QUIRK_NO_JSON_OBJECT | LLM_QUIRK_NO_MODEL_LIST, KEY_HELP("perplexity.ai") },

    /* hosts of many models */
    { .id = "bedrock", .label = "AWS Bedrock", KEYED, .env_key = { "AWS_BEDROCK_LLM_API_KEY", "AWS_BEARER_TOKEN_BEDROCK" }, .base_path = "/v1",
      .env_base_url = { "AWS_BEDROCK_BASE_URL" }, .env_region = "AWS_BEDROCK_LLM_REGION", .region_url = { "https://bedrock-mantle.", ".api.aws/v1" },
      .env_model = { "AWS_BEDROCK_LLM_MODEL_PREFERENCE" },
      .help = "The address https://bedrock-mantle.<region>.api.aws/v1 and a Bedrock API key." },
    { .id = "openrouter", .label = "OpenRouter", KEYED, .can_embed = true, .base_url = "https://openrouter.ai/api/v1", .env_key = { "OPENROUTER_API_KEY" },
      .env_model = { "OPENROUTER_MODEL_PREF" }, .default_model = "openrouter/auto", .default_embed_model = "baai/bge-m3",
      .header = { "x-title", "Hearth" }, KEY_HELP("openrouter.ai") },
    { .id = "groq", .label = "Groq", .can_hear = true, KEYED, .base_url = "https://api.groq.com/openai/v1", .env_key = { "GROQ_API_KEY" }, .env_model = { "GROQ_MODEL_PREF" },
      .default_model = "llama-3.3-70b-versatile", .quirks = LLM_QUIRK_NO_JSON_SCHEMA, KEY_HELP("console.groq.com") },
    { .id = "togetherai", .label = "Together AI", KEYED, .base_url = "https://api.together.xyz/v1", .env_key = { "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY" },
      .env_model = { "TOGETHER_AI_MODEL_PREF" }, KEY_HELP("api.together.ai") },
    { .id = "fireworksai", .label = "Fireworks AI", KEYED, .base_url = "https://api.fireworks.ai/inference/v1",
      .env_key = { "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKS_AI_LLM_API_KEY" }, .env_model = { "FIREWORKS_AI_LLM_MODEL_PREF" }, KEY_HELP("fireworks.ai") },
    { .id = "cerebras", .label = "Cerebras", KEYED, .base_url = "https://api.cerebras.ai/v1", .env_key = { "CEREBRAS_API_KEY" },
      .env_model = { "CEREBRAS_MODEL_PREF" }, KEY_HELP("cloud.cerebras.ai") },
    { .id = "sambanova", .label = "SambaNova", KEYED, .base_url = "https://api.sambanova.ai/v1", .env_key = { "SAMBANOVA_API_KEY", "SAMBANOVA_LLM_API_KEY" },
      .env_model = { "SAMBANOVA_LLM_MODEL_PREF" }, KEY_HELP("cloud.sambanova.ai") },
    { .id = "novita", .label = "Novita AI", KEYED, .base_url = "https://api.novita.ai/v3/openai", .env_key = { "NOVITA_API_KEY", "NOVITA_LLM_API_KEY" },
      .env_model = { "NOVITA_LLM_MODEL_PREF" }, KEY_HELP("novita.ai") },
    { .id = "ppio", .label = "PPIO", KEYED, .base_url = "https://api.ppinfra.com/v3/openai", .env_key = { "PPIO_API_KEY" }, .env_model = { "PPIO_MODEL_PREF" },
      KEY_HELP("ppinfra.com") },
    { .id = "apipie", .label = "APIpie", KEYED, .base_url = "https://apipie.ai/v1", .env_key = { "APIPIE_API_KEY", "APIPIE_LLM_API_KEY" },
      .env_model = { "APIPIE_LLM_MODEL_PREF" }, KEY_HELP("apipie.ai") },
    { .id = "cometapi", .label = "CometAPI", KEYED, .base_url = "https://api.cometapi.com/v1", .env_key = { "COMETAPI_API_KEY", "COMETAPI_LLM_API_KEY" },
      .env_model = { "COMETAPI_LLM_MODEL_PREF" }, KEY_HELP("cometapi.com") },
    { .id = "giteeai", .label = "Gitee AI", KEYED, .base_url = "https://ai.gitee.com/v1", .env_key = { "GITEE_AI_API_KEY" },
      .env_model = { "GITEE_AI_MODEL_PREF" }, KEY_HELP("ai.gitee.com") },

    /* on the person's own machines */
    { .id = "ollama", .label = "Ollama", .protocol = &llm_ollama, BEARER, .can_chat = true, .can_embed = true, .base_url = "http://127.0.0.1:11434",
      .env_key = { "OLLAMA_API_KEY", "OLLAMA_AUTH_TOKEN" }, .env_base_url = { "OLLAMA_HOST", "OLLAMA_BASE_PATH" },
      .env_model = { "OLLAMA_MODEL", "OLLAMA_MODEL_PREF" }, .help = "Ollama running, with a model pulled: ollama pull llama3.2" },
    { .id = "lmstudio", .label = "LM Studio", CHAT, .can_embed = true, .base_url = "http://127.0.0.1:1234/v1", .base_path = "/v1",
      .env_key = { "LMSTUDIO_API_KEY", "LMSTUDIO_AUTH_TOKEN" }, .env_base_url = { "LMSTUDIO_BASE_URL", "LMSTUDIO_BASE_PATH" },
      .env_model = { "LMSTUDIO_MODEL_PREF" }, .quirks = LLM_QUIRK_NO_JSON_OBJECT, .help = "LM Studio with its local server started." },
    { .id = "localai", .label = "LocalAI", .can_speak = true, .can_hear = true, CHAT, .can_embed = true, .base_url = "http://127.0.0.1:8080/v1", .base_path = "/v1",
      .env_key = { "LOCALAI_API_KEY", "LOCAL_AI_API_KEY" }, .env_base_url = { "LOCALAI_BASE_URL", "LOCAL_AI_BASE_PATH" },
      .env_model = { "LOCAL_AI_MODEL_PREF" }, .quirks = LLM_QUIRK_NO_STREAM_USAGE, URL_HELP("LocalAI") },
    { .id = "llamacpp", .label = "llama.cpp server", CHAT, .can_embed = true, .base_url = "http://127.0.0.1:8080/v1", .base_path = "/v1",
      .env_key = { "LLAMACPP_API_KEY" }, .env_base_url = { "LLAMACPP_BASE_URL" }, URL_HELP("llama-server") },
    { .id = "koboldcpp", .label = "KoboldCpp", CHAT, .base_url = "http://127.0.0.1:5001/v1", .base_path = "/v1",
      .env_base_url = { "KOBOLDCPP_BASE_URL", "KOBOLD_CPP_BASE_PATH" }, .env_model = { "KOBOLD_CPP_MODEL_PREF" }, .quirks = LLM_QUIRK_NO_JSON_SCHEMA | LLM_QUIRK_NO_JSON_OBJECT,
      URL_HELP("KoboldCpp") },
    { .id = "textgenwebui", .label = "text-generation-webui", CHAT, .base_url = "http://127.0.0.1:5000/v1", .base_path = "/v1",
      .env_key = { "TEXT_GEN_WEB_UI_API_KEY" }, .env_base_url = { "TEXT_GEN_WEB_UI_BASE_URL", "TEXT_GEN_WEB_UI_BASE_PATH" }, .quirks = LLM_QUIRK_NO_JSON_SCHEMA | LLM_QUIRK_NO_JSON_OBJECT,
      URL_HELP("text-generation-webui, started with --api") },
    { .id = "nvidia-nim", .label = "NVIDIA NIM", CHAT, .base_url = "http://127.0.0.1:8000/v1", .base_path = "/v1", .env_base_url = { "NVIDIA_NIM_BASE_URL", "NVIDIA_NIM_LLM_BASE_PATH" },
      .env_model = { "NVIDIA_NIM_LLM_MODEL_PREF" }, URL_HELP("the NIM container") },
    { .id = "foundry", .label = "Foundry Local", CHAT, .base_path = "/v1", .env_base_url = { "FOUNDRY_LOCAL_BASE_URL", "FOUNDRY_BASE_PATH" }, .env_model = { "FOUNDRY_MODEL_PREF" },
      URL_HELP("Foundry Local, as `foundry service status` tells it") },
    { .id = "docker-model-runner", .label = "Docker Model Runner", CHAT, .base_url = "http://127.0.0.1:12434/engines/v1", .base_path = "/engines/v1",
      .env_base_url = { "DOCKER_MODEL_RUNNER_BASE_URL", "DOCKER_MODEL_RUNNER_BASE_PATH" }, .env_model = { "DOCKER_MODEL_RUNNER_LLM_MODEL_PREF" }, URL_HELP("Docker Model Runner") },
    { .id = "privatemode", .label = "Privatemode", CHAT, .base_url = "http://127.0.0.1:8080/v1", .base_path = "/v1",
      .env_base_url = { "PRIVATEMODE_BASE_URL", "PRIVATEMODE_LLM_BASE_PATH" }, .env_model = { "PRIVATEMODE_LLM_MODEL_PREF" }, URL_HELP("the Privatemode proxy") },
    { .id = "lemonade", .label = "Lemonade", .can_speak = true, .can_hear = true, CHAT, .can_embed = true, .base_url = "http://127.0.0.1:8000/api/v1", .base_path = "/api/v1",
      .env_key = { "LEMONADE_API_KEY", "LEMONADE_LLM_API_KEY" }, .env_base_url = { "LEMONADE_BASE_URL", "LEMONADE_LLM_BASE_PATH" }, .env_model = { "LEMONADE_LLM_MODEL_PREF" }, URL_HELP("Lemonade Server") },
    { .id = "omlx", .label = "oMLX", CHAT, .base_url = "http://127.0.0.1:8000/v1", .base_path = "/v1", .env_key = { "OMLX_API_KEY", "OMLX_LLM_API_KEY" },
      .env_base_url = { "OMLX_BASE_URL", "OMLX_LLM_BASE_PATH" }, .env_model = { "OMLX_LLM_MODEL_PREF" }, URL_HELP("oMLX") },
    { .id = "litellm", .label = "LiteLLM", .can_speak = true, .can_hear = true, CHAT, .can_embed = true, .base_url = "http://127.0.0.1:4000", .env_key = { "LITELLM_API_KEY", "LITE_LLM_API_KEY" },
      .env_base_url = { "LITELLM_BASE_URL", "LITE_LLM_BASE_PATH" }, .env_model = { "LITE_LLM_MODEL_PREF" }, .quirks = LLM_QUIRK_EXTRAS, URL_HELP("the LiteLLM proxy") },

    /* any other service with OpenAI's protocol */
    { .id = "generic-openai", .label = "OpenAI-compatible service", .can_speak = true, .can_hear = true, CHAT, .can_embed = true, .env_key = { "GENERIC_OPENAI_API_KEY", "GENERIC_OPEN_AI_API_KEY", "GENERIC_OPEN_AI_EMBEDDING_API_KEY" },
      .env_base_url = { "GENERIC_OPENAI_BASE_URL", "GENERIC_OPEN_AI_BASE_PATH" }, .env_model = { "GENERIC_OPENAI_MODEL", "GENERIC_OPEN_AI_MODEL_PREF" },
      .quirks = LLM_QUIRK_MAY_NOT_STREAM | LLM_QUIRK_EXTRAS, URL_HELP("a service that speaks OpenAI's chat completions, up to and with /v1") },

    /* speech alone (speech/services.h) */
    { .id = "elevenlabs", .label = "ElevenLabs", .protocol = &llm_speech, .auth_header = "xi-api-key", .needs_key = true, .can_speak = true,
      .base_url = "https://api.elevenlabs.io", .env_key = { "ELEVENLABS_API_KEY", "TTS_ELEVEN_LABS_KEY" }, .quirks = LLM_QUIRK_NO_MODEL_LIST, KEY_HELP("elevenlabs.io") },
    { .id = "deepgram", .label = "Deepgram", .protocol = &llm_speech, .auth_header = "authorization", .auth_prefix = "Token ", .needs_key = true, .can_speak = true,
      .can_hear = true, .base_url = "https://api.deepgram.com", .env_key = { "DEEPGRAM_API_KEY" }, .quirks = LLM_QUIRK_NO_MODEL_LIST, KEY_HELP("console.deepgram.com") },
    { .id = "azure-speech", .label = "Azure Speech", .protocol = &llm_speech, .auth_header = "ocp-apim-subscription-key", .needs_key = true, .can_speak = true,
      .env_key = { "AZURE_SPEECH_KEY" }, .env_base_url = { "AZURE_SPEECH_ENDPOINT" }, .env_region = "AZURE_SPEECH_REGION",
      .region_url = { "https://", ".tts.speech.microsoft.com" }, .quirks = LLM_QUIRK_NO_MODEL_LIST,
      .help = "The address https://<region>.tts.speech.microsoft.com and a key of the Speech resource." },
    { .id = "kokoro", .label = "Kokoro", .protocol = &llm_speech, BEARER, .can_speak = true, .base_url = "http://127.0.0.1:8880/v1", .base_path = "/v1",
      .env_base_url = { "KOKORO_BASE_URL" }, .quirks = LLM_QUIRK_NO_MODEL_LIST, URL_HELP("Kokoro-FastAPI") },
    { .id = "piper", .label = "Piper's HTTP server", .protocol = &llm_speech, BEARER, .can_speak = true, .base_url = "http://127.0.0.1:5000",
      .env_base_url = { "PIPER_BASE_URL" }, .quirks = LLM_QUIRK_NO_MODEL_LIST, URL_HELP("`python3 -m piper.http_server`") },
    { .id = "whispercpp", .label = "whisper.cpp server", .protocol = &llm_speech, BEARER, .can_hear = true, .base_url = "http://127.0.0.1:8080",
      .env_base_url = { "WHISPERCPP_BASE_URL" }, .quirks = LLM_QUIRK_NO_MODEL_LIST, URL_HELP("whisper-server") },

    /* no provider: a part of this service, for first steps and for tests of apps */
    { .id = STAND_IN_PROVIDER, .label = "Stand-in: no language model", .protocol = &llm_stand_in, .can_chat = true, .can_embed = true, .is_stand_in = true,
      .default_model = STAND_IN_MODEL, .default_embed_model = STAND_IN_EMBED_MODEL,
      .help = "Nothing. It repeats what you say: for first steps and for tests of apps, without a model and without a network." },
    { .id = NULL },
};
/* clang-format on */

const struct llm_preset *llm_preset_find(const char *id)
{
    for (const struct llm_preset *p = llm_presets; p->id; p++)
        if (strcmp(p->id, id) == 0)
            return p;
    return NULL;
}

const struct llm_protocol llm_speech = { .name = "speech" };

const char *const llm_uses[] = { [LLM_USE_USUAL] = "models", [LLM_USE_SPEECH] = "speech", [LLM_USE_ALL] = "all", NULL };

bool llm_preset_is_for_speech(const struct llm_preset *preset)
{
    return !preset->can_chat && !preset->can_embed;
}

bool llm_account_is_for_speech(const struct llm_account *acc)
{
    bool can = acc->preset->can_speak || acc->preset->can_hear;

    return can && (acc->use != LLM_USE_USUAL || llm_preset_is_for_speech(acc->preset));
}

bool llm_model_is_reasoning(const char *model)
{
    static const char *const beginnings[] = { "o1", "o3", "o4", "gpt-5" };
    const char *slash = strrchr(model, '/');

    if (slash) /* "openai/o3" */
        model = slash + 1;
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        size_t n = strlen(beginnings[i]);

        if (strncmp(model, beginnings[i], n) == 0 && (model[n] == '\0' || model[n] == '-' || model[n] == '.'))
            return strstr(model, "-chat") == NULL;
    }
    return false;
}

/* The minor version of a model of the fourth generation: 6 for "claude-sonnet-4-6"; -1 for other models. A date is not
 * a minor version. */
static long minor_of_fourth(const char *model)
{
    const char *four = strstr(model, "-4");
    size_t n = four && (four[2] == '-' || four[2] == '.') ? strspn(four + 3, "0123456789") : 0;

    if (!four || (four[2] && !strchr("-.@", four[2])))
        return -1;
    return n > 0 && n <= 2 ? strtol(four + 3, NULL, 10) : 0;
}

/* Only for Anthropic's models: names of other makers' models do not show whether they think. */
enum llm_thinking llm_model_thinking(const char *model)
{
    long minor = minor_of_fourth(model);

    if (strncmp(model, "claude-", 7) != 0)
        return LLM_THINKS_NOT;
    if (model[7] >= '1' && model[7] <= '3')
        return strncmp(model + 7, "3-7", 3) == 0 ? LLM_THINKS_BY_BUDGET : LLM_THINKS_NOT;
    return minor >= 0 && minor < 6 ? LLM_THINKS_BY_BUDGET : LLM_THINKS_ADAPTIVELY;
}

bool llm_model_takes_sampling(const char *model)
{
    long minor;

    if (strncmp(model, "claude-", 7) != 0)
        return true;                        /* other makers use this protocol too */
    if (model[7] >= '1' && model[7] <= '3') /* "claude-3-5-haiku" */
        return true;
    minor = minor_of_fourth(model);
    return minor >= 0 && minor <= 6;
}

bool llm_model_is_embedding(const char *model)
{
    static const char *const words[] = { "embed", "bge", "minilm", "e5-", "gte-" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasestr(model, words[i]))
            return true;
    return false;
}

const char *llm_finish_name(enum llm_finish why)
{
    static const char *const names[] = {
        [LLM_FINISH_STOP] = "stop",
        [LLM_FINISH_LENGTH] = "length",
        [LLM_FINISH_TOOLS] = "tool_calls",
        [LLM_FINISH_FILTER] = "content_filter",
    };

    return names[why];
}
