/* What providers refuse tells how a model takes tools and images. Learnt once and kept in the store
 * (MODEL_FACTS_AGE_S). */
#include "agents/loop_private.h"

#include "models/provider_choice.h"
#include "store/tables/model_facts.h"

#include <string.h>

#define FACT_TOOLS "tools"
#define FACT_IMAGES "images"

static const char *const tools_words[] = {
    [LOOP_TOOLS_NATIVE] = "native", [LOOP_TOOLS_BY_SCHEMA] = "schema", [LOOP_TOOLS_BY_INSTRUCTION] = "instruction"
};

static const char *fact_of(const struct models_call *call, const char *provider, const char *model, const char *fact)
{
    const char *value = NULL;

    if (store_model_facts_get(call->models->store, call->arena, provider, model, fact, &value, NULL) < 0)
        return NULL;
    return value;
}

/* The provider and the model that a request without names goes to. */
static void name_them(const struct models_call *call, const char **provider, const char **model)
{
    struct provider_default def = { 0 };
    struct llm_account_state *state;

    if (!*provider && provider_default_of(call, PROVIDER_CHAT, &def, NULL) == 0) {
        *provider = def.provider;
        *model = *model ? *model : def.model;
    }
    if (!*provider || *model)
        return;
    state = llm_accounts_find(call->models->llm_accounts, call->arena, *provider);
    *model = state ? state->account.model : NULL;
}

void loop_habits_read(const struct models_call *call, const char **provider, const char **model,
                      struct loop_habits *ret)
{
    const char *tools, *images;

    *ret = (struct loop_habits){ .tools = LOOP_TOOLS_NATIVE };
    name_them(call, provider, model);
    if (!*provider || !*model)
        return;
    tools = fact_of(call, *provider, *model, FACT_TOOLS);
    images = fact_of(call, *provider, *model, FACT_IMAGES);
    for (size_t i = 0; tools && i < ARRAY_SIZE(tools_words); i++)
        if (strcmp(tools, tools_words[i]) == 0)
            ret->tools = (enum loop_tools_mode)i;
    ret->takes_no_images = images && strcmp(images, "none") == 0;
}

/* ---- reading a refusal ---- */

static bool speaks_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* A server's or gateway's words for "this cannot be". */
static bool is_denial(const char *text)
{
    static const char *const words[] = { "not support",   "n't support", "unsupported",   "not enabled",
                                         "not available", "requires --", "no endpoints",  "not implemented",
                                         "unrecognized",  "unknown",     "not permitted", "not allowed",
                                         "cannot" };

    return speaks_of(text, words, ARRAY_SIZE(words));
}

/* The refusal of one tool's schema says nothing about tools as such. */
static bool refuses_tools(const char *text)
{
    static const char *const words[] = { "tool", "function call", "function_call", "functions" };
    static const char *const others[] = { "schema", "parameters", "properties" };

    return speaks_of(text, words, ARRAY_SIZE(words)) && !speaks_of(text, others, ARRAY_SIZE(others)) && is_denial(text);
}

/* Of a provider, or of this service, which found that the answer does not keep to the schema (llm/format.h). */
static bool refuses_schema(const char *text)
{
    static const char *const words[] = { "response_format", "response format",   "json_schema",
                                         "json schema",     "structured output", "grammar" };

    return speaks_of(text, words, ARRAY_SIZE(words));
}

static bool refuses_images(const char *text)
{
    static const char *const words[] = { "image", "vision", "multimodal", "multi-modal" };

    return speaks_of(text, words, ARRAY_SIZE(words)) && is_denial(text);
}

static bool is_refusal(const struct err *why)
{
    return strcmp(why->code, "LLM_ERROR") == 0 || strcmp(why->code, "INVALID_MODEL") == 0 ||
           strcmp(why->code, "UNSUPPORTED_CONTENT") == 0;
}

static void keep(const struct models_call *call, const char *provider, const char *model, const char *fact,
                 const char *value)
{
    if (provider && model)
        (void)!store_model_facts_set(call->models->store, provider, model, fact, value, NULL);
}

bool loop_habits_learn(const struct models_call *call, const char *provider, const char *model, const struct err *why,
                       bool had_tools, bool had_images, struct loop_habits *habits)
{
    if (!is_refusal(why))
        return false;
    if (had_images && !habits->takes_no_images && refuses_images(why->text)) {
        habits->takes_no_images = true;
        keep(call, provider, model, FACT_IMAGES, "none");
        return true;
    }
    if (!had_tools || habits->tools == LOOP_TOOLS_BY_INSTRUCTION ||
        !(habits->tools == LOOP_TOOLS_NATIVE ? refuses_tools(why->text) : refuses_schema(why->text)))
        return false;
    habits->tools++;
    keep(call, provider, model, FACT_TOOLS, tools_words[habits->tools]);
    return true;
}
