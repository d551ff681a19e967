/* What a server wants: messages, limits, and which model it would like. */
#include "agents/sampling_private.h"

#include "agents/message.h"
#include "models/provider_choice.h"

#include <string.h>

enum { MOST_STOPS = 16 };

static int bad(const char *name, const char *rule, struct err *e)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "`%s` must be %s", name, rule);
}

static int read_block(struct json_value from, struct llm_block *ret, struct err *e)
{
    struct slice type = json_string(json_get(from, "type"));

    if (slice_eq_str(type, "text")) {
        *ret = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = json_cstr(json_get(from, "text")) };
        return ret->text ? 0 : bad("messages[].content.text", "a text without NUL", e);
    }
    if (!slice_eq_str(type, "image"))
        return bad("messages[].content.type", "text or image", e);
    return agent_message_image(from, ret) ? 0 : bad("messages[].content", "a PNG, JPEG, GIF or WebP in base64", e);
}

static int read_content(struct arena *a, struct json_value content, struct llm_message *ret, struct err *e)
{
    bool is_list = json_type(content) == JSON_ARRAY;
    size_t n = is_list ? json_length(content) : 1;
    struct json_iter it = json_iter(content);
    struct json_value item = content;
    struct llm_block *blocks;
    int r = 0;

    if (n == 0 || n > LIMIT_BLOCKS)
        return bad("messages[].content", "one block or an array of 1 to 1000 blocks", e);
    blocks = arena_array(a, n, sizeof(*blocks));
    for (size_t i = 0; r == 0 && i < n && (!is_list || json_next(&it, NULL, &item)); i++)
        r = read_block(item, &blocks[i], e);
    ret->blocks = blocks;
    ret->n_blocks = n;
    return r;
}

static int read_message(struct arena *a, struct json_value from, struct llm_message *ret, struct err *e)
{
    struct slice role = json_string(json_get(from, "role"));

    if (!slice_eq_str(role, "user") && !slice_eq_str(role, "assistant"))
        return bad("messages[].role", "user or assistant", e);
    *ret = (struct llm_message){ .role = slice_eq_str(role, "user") ? LLM_USER : LLM_ASSISTANT };
    return read_content(a, json_get(from, "content"), ret, e);
}

static int read_messages(struct arena *a, struct json_value params, struct llm_request *ret, struct err *e)
{
    struct json_value list = json_get(params, "messages"), prompt = json_get(params, "systemPrompt"), item;
    size_t n_list = json_type(list) == JSON_ARRAY ? json_length(list) : 0, n = 0;
    struct llm_message *messages;
    struct json_iter it = json_iter(list);
    int r = 0;

    if (n_list == 0 || n_list > LIMIT_MESSAGES)
        return bad("messages", "an array of 1 to 2000 messages", e);
    if (!json_is_absent(prompt) && !json_cstr(prompt))
        return bad("systemPrompt", "a text without NUL", e);
    messages = arena_array(a, n_list + 1, sizeof(*messages));
    if (!json_is_absent(prompt))
        messages[n++] = agent_message_of(a, LLM_SYSTEM, json_cstr(prompt));
    while (r == 0 && json_next(&it, NULL, &item))
        r = read_message(a, item, &messages[n++], e);
    ret->messages = messages;
    ret->n_messages = n;
    return r;
}

static int read_stops(struct arena *a, struct json_value stops, struct llm_request *ret, struct err *e)
{
    const char **items = arena_array(a, MOST_STOPS, sizeof(*items));
    struct json_iter it = json_iter(stops);
    struct json_value item;
    size_t n = 0;

    if (json_is_absent(stops))
        return 0;
    if (json_type(stops) != JSON_ARRAY || json_length(stops) > MOST_STOPS)
        return bad("stopSequences", "an array of at most 16 texts", e);
    while (json_next(&it, NULL, &item)) {
        items[n] = json_cstr(item);
        if (!items[n] || !*items[n] || strlen(items[n]) > LIMIT_STOP_BYTES)
            return bad("stopSequences", "texts of 1 to 256 bytes", e);
        n++;
    }
    ret->stop = (struct field_strings){ items, n };
    return 0;
}

static int read_numbers(struct json_value params, struct llm_request *ret, struct err *e)
{
    struct json_value temperature = json_get(params, "temperature");
    double most = json_double(json_get(params, "maxTokens"));

    if (!(most >= 1))
        return bad("maxTokens", "a number of at least 1", e);
    ret->max_tokens = most < LIMIT_MCP_SAMPLE_TOKENS ? (int64_t)most : LIMIT_MCP_SAMPLE_TOKENS;
    ret->has_temperature = !json_is_absent(temperature);
    ret->temperature = ret->has_temperature ? json_double(temperature) : -1;
    if (ret->has_temperature && !(ret->temperature >= 0 && ret->temperature <= 2))
        return bad("temperature", "a number from 0 to 2", e);
    return 0;
}

static void read_hints(struct json_value params, struct sample *ret)
{
    struct json_iter it = json_iter(json_get(json_get(params, "modelPreferences"), "hints"));
    struct json_value item;

    while (ret->n_hints < LIMIT_MCP_SAMPLE_HINTS && json_next(&it, NULL, &item)) {
        const char *name = json_cstr(json_get(item, "name"));

        if (name && *name)
            ret->hints[ret->n_hints++] = name;
    }
}

int sample_read(struct arena *a, struct json_value params, struct sample *ret, struct err *e)
{
    int r;

    *ret = (struct sample){ .n_hints = 0 };
    r = read_messages(a, params, &ret->request, e);
    if (r == 0)
        r = read_numbers(params, &ret->request, e);
    if (r == 0)
        r = read_stops(a, json_get(params, "stopSequences"), &ret->request, e);
    if (r == 0)
        read_hints(params, ret);
    return r;
}

/* ---- the model ---- */

static const char *find_model(const struct models_call *call, struct llm_account_state *state, const char *hint)
{
    struct llm_models models = { .n = 0 };

    if (llm_account_state_models(state, call->models->settings, call->arena, call->is_gone, &models, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < models.n; i++)
        if (strcasestr(models.items[i].id, hint) && !llm_model_is_embedding(models.items[i].id))
            return models.items[i].id;
    return NULL;
}

int sample_choose(const struct models_call *call, const struct sample *sample, const char **ret_provider,
                  const char **ret_model, struct err *e)
{
    struct provider_default def = { 0 };
    struct llm_account_state **states;
    size_t n;
    int r;

    *ret_provider = *ret_model = NULL;
    r = sample->n_hints > 0 ? provider_default_of(call, PROVIDER_CHAT, &def, e) : 0;
    if (r < 0 || sample->n_hints == 0)
        return r;
    states = provider_account_states(call, PROVIDER_CHAT, def.provider, &n);
    for (size_t i = 0; i < sample->n_hints; i++)
        for (size_t at = 0; at < n; at++) {
            /* An app with a provider of its own uses no other one. */
            if (strcmp(def.origin, "app") == 0 && strcmp(states[at]->account.name, def.provider) != 0)
                continue;
            *ret_model = find_model(call, states[at], sample->hints[i]);
            *ret_provider = *ret_model ? states[at]->account.name : NULL;
            if (*ret_model)
                return 0;
        }
    return 0;
}
