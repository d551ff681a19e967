/* How much a model reads. */
#include "agents/context_private.h"

#include "settings/settings.h"
#include "store/tables/model_facts.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_TOKENS = 512, LEAST_NUMBER = 1000, MOST_DIGITS = 12 };

#define FACT_WINDOW "window"

/* As their makers say; the first row whose beginning fits counts. Others: agents.windows, or the first refusal. */
static const struct {
    const char *begins;
    int64_t tokens;
} known[] = {
    { "gpt-3.5", 16385 }, { "gpt-4-turbo", 128000 }, { "gpt-4o", 128000 },   { "gpt-4.1", 1047576 },
    { "gpt-4", 8192 },    { "gpt-5", 400000 },       { "o1", 200000 },       { "o3", 200000 },
    { "o4", 200000 },     { "claude-", 200000 },     { "gemini-", 1048576 },
};

/* "openai/gpt-4o" is the model gpt-4o of a gateway. */
static const char *plain_name(const char *model)
{
    const char *slash = strrchr(model, '/');

    return slash ? slash + 1 : model;
}

static bool fits(const char *pattern, size_t n, const char *model)
{
    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, model, n - 1) == 0;
    return strlen(model) == n && strncmp(pattern, model, n) == 0;
}

static int64_t of_settings(const struct models_call *call, const char *model)
{
    size_t n = 0;
    const char *const *items = settings_list(call->models->settings, call->arena, SETTING_AGENTS_WINDOWS, &n);

    for (size_t i = 0; i < n; i++) {
        const char *at = strrchr(items[i], '=');

        if (at && fits(items[i], (size_t)(at - items[i]), model))
            return strtoll(at + 1, NULL, 10);
    }
    return 0;
}

static int64_t learnt(const struct models_call *call, const char *provider, const char *model)
{
    const char *value = NULL;

    if (!provider ||
        store_model_facts_get(call->models->store, call->arena, provider, model, FACT_WINDOW, &value, NULL) < 0)
        return 0;
    return value ? strtoll(value, NULL, 10) : 0;
}

/* A server that this service runs has the context of the settings. */
static int64_t of_runner(const struct models_call *call, const char *provider)
{
    struct llm_account_state *state =
        provider ? llm_accounts_find(call->models->llm_accounts, call->arena, provider) : NULL;

    return state && state->account.runner ? settings_int(call->models->settings, SETTING_LLAMACPP_CONTEXT) : 0;
}

static int64_t of_name(const char *model)
{
    const char *name = plain_name(model);

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strncmp(name, known[i].begins, strlen(known[i].begins)) == 0)
            return known[i].tokens;
    return 0;
}

int64_t context_window(const struct models_call *call, const char *provider, const char *model)
{
    int64_t tokens = model ? of_settings(call, model) : 0;

    if (tokens == 0 && model)
        tokens = learnt(call, provider, model);
    if (tokens == 0)
        tokens = of_runner(call, provider);
    if (tokens == 0 && model)
        tokens = of_name(model);
    if (tokens == 0)
        tokens = settings_int(call->models->settings, SETTING_AGENTS_WINDOW_TOKENS);
    return MAX(tokens, (int64_t)LEAST_TOKENS);
}

/* ---- refusals ---- */

static bool is_too_long(const char *text)
{
    static const char *const signs[] = { "context length",
                                         "context window",
                                         "context size",
                                         "context_length",
                                         "maximum context",
                                         "prompt is too long",
                                         "input is too long",
                                         "too many tokens",
                                         "too many input tokens",
                                         "reduce the length",
                                         "exceeds the available context",
                                         "maximum number of tokens",
                                         "token limit",
                                         "finds the request too large" };

    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (strcasestr(text, signs[i]))
            return true;
    return false;
}

/* The least number that can be a window: refusals name the window and the larger size of the request. Commas between
 * digits are skipped. */
static int64_t least_number(const char *text)
{
    int64_t least = 0;

    while (*text) {
        char digits[MOST_DIGITS + 1] = "";
        size_t n = 0;

        for (; (*text >= '0' && *text <= '9') || (*text == ',' && n > 0 && text[1] >= '0' && text[1] <= '9'); text++)
            if (*text != ',' && n < MOST_DIGITS)
                digits[n++] = *text;
        if (n > 0 && strtoll(digits, NULL, 10) >= LEAST_NUMBER && (least == 0 || strtoll(digits, NULL, 10) < least))
            least = strtoll(digits, NULL, 10);
        text += *text != '\0' && n == 0;
    }
    return least;
}

int64_t context_window_of_refusal(const struct err *refusal, int64_t n_sent)
{
    int64_t said, smaller = MAX(n_sent * 3 / 4, (int64_t)LEAST_TOKENS);

    if (strcmp(refusal->code, "LLM_ERROR") != 0 || !is_too_long(refusal->text))
        return 0;
    said = least_number(refusal->text);
    return said > 0 ? MIN(said, smaller) : smaller; /* estimates are rough: each refusal makes the window smaller */
}

void context_window_learn(const struct models_call *call, const char *provider, const char *model, int64_t tokens)
{
    char text[INT_TEXT_SIZE];

    if (!provider || !model)
        return;
    int_text(text, tokens);
    (void)!store_model_facts_set(call->models->store, provider, model, FACT_WINDOW, text, NULL);
}
