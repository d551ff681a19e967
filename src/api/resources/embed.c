/* Embeddings (specification, "LLM"; decision D8; docs/embeddings.md). */
#include "api/resources/embed.h"

#include "api/api.h"
#include "api/resources/metered.h"
#include "api/routes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "embed/lexical.h"
#include "models/provider_choice.h"

struct embed_body {
    struct json_value input;
    const char *provider, *model, *input_type;
};

static const char *const purposes[] = { "query", "document", NULL };

static const struct field embed_fields[] = {
    FIELD_ANY(struct embed_body, input, "input", FIELD_REQUIRED, .help = "a text, or an array of texts"),
    FIELD_STRING(struct embed_body, provider, "provider", .max = LIMIT_NAME_CHARS,
                 .help = "absent: the setting embed.provider"),
    FIELD_STRING(struct embed_body, model, "model", .max = LIMIT_NAME_CHARS * 2, .help = "absent: the provider's own"),
    FIELD_STRING(struct embed_body, input_type, "input_type", .one_of = purposes,
                 .help = "what the texts are in a search, for models that tell them apart"),
    FIELD_END,
};

static const struct field embed_answer[] = {
    SHAPE_LIST("embeddings", NULL, .help = "an array of numbers for each text, in order"),
    SHAPE_INT("dimensions"),
    SHAPE_STRING("provider"),
    SHAPE_STRING("model"),
    FIELD_END,
};

static const struct field model_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("name"), FIELD_END };

const struct field embed_provider_shape[] = {
    SHAPE_STRING("provider"),
    SHAPE_LIST("models", model_shape),
    SHAPE_BOOL("active", .help = "asked when a request names none"),
    FIELD_END,
};

static const struct field providers_answer[] = { SHAPE_LIST("providers", embed_provider_shape), FIELD_END };

/* ---- the input ---- */

static int check_text(struct json_value value, const char *path, struct err *e)
{
    struct slice text = json_string(value);

    if (json_type(value) != JSON_STRING)
        return err_add_field(e, path, "must be a string");
    if (text.n == 0)
        return err_add_field(e, path, "must not be empty");
    if (text.n > LIMIT_EMBED_TEXT)
        return err_add_field(e, path, "must be at most %d bytes", LIMIT_EMBED_TEXT);
    return 0;
}

int embed_check_input(struct json_value input, struct err *e)
{
    struct json_value item;
    struct json_iter it = json_iter(input);
    size_t n = json_length(input);
    char path[32];
    int r = 0;

    if (json_is_absent(input))
        return 0; /* reported already */
    if (json_type(input) == JSON_STRING)
        return check_text(input, "input", e);
    if (json_type(input) != JSON_ARRAY)
        return err_add_field(e, "input", "must be a string or an array of strings");
    if (n < 1 || n > LIMIT_EMBED_TEXTS)
        return err_add_field(e, "input", "must have 1 to %d texts", LIMIT_EMBED_TEXTS);
    for (size_t i = 0; r == 0 && json_next(&it, NULL, &item); i++) {
        snprintf(path, sizeof(path), "input[%zu]", i);
        r = check_text(item, path, e);
    }
    return r;
}

struct embed_input embed_read_input(struct arena *a, struct json_value input)
{
    struct slice *texts = arena_array(a, MAX(json_length(input), (size_t)1), sizeof(*texts));
    struct json_iter it = json_iter(input);
    struct json_value item;
    size_t n = 0;

    if (json_type(input) == JSON_STRING)
        texts[n++] = json_string(input);
    while (json_next(&it, NULL, &item))
        texts[n++] = json_string(item);
    return (struct embed_input){ texts, n };
}

/* ---- handlers ---- */

int embed_for(struct request *req, const struct embed_job *job, struct embed_made *ret, struct err *e)
{
    struct models_call *call = metered_call(req);
    int64_t began_us = clock_mono_us();
    int r = embed_texts(call, job, ret, e);

    if (r < 0)
        metered_retry_after(req->exchange, e, call->retry_after_ms);
    else
        metered_headers(req->exchange, ret->provider, began_us, clock_mono_us() - began_us - ret->upstream_us);
    return r;
}

static enum embed_purpose purpose_of(const struct embed_body *body)
{
    if (!body->input_type)
        return EMBED_ANY;
    return strcmp(body->input_type, "query") == 0 ? EMBED_QUERY : EMBED_DOCUMENT;
}

static int check_embed(const struct request *req, const void *body, struct err *e)
{
    return embed_check_input(((const struct embed_body *)body)->input, e);
}

static bool needs_long(const struct request *req)
{
    const struct embed_body *body = req->body;

    return embed_waits(metered_call(req), body->provider, body->model);
}

static int embed(struct request *req, struct response *res, struct err *e)
{
    const struct embed_body *body = req->body;
    const struct embed_input input = embed_read_input(req->arena, body->input);
    const struct embed_job job = { .texts = input.items,
                                   .n = input.n,
                                   .provider = body->provider,
                                   .model = body->model,
                                   .purpose = purpose_of(body) };
    struct json_writer *w = &res->json;
    struct embed_made made = { 0 };
    int r = embed_for(req, &job, &made, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, "embeddings");
    for (size_t i = 0; i < made.n; i++)
        json_add_floats(w, NULL, made.items + i * made.n_dimensions, made.n_dimensions);
    json_end(w);
    json_add_int(w, "dimensions", (int64_t)made.n_dimensions);
    json_add_string(w, "provider", made.provider);
    json_add_string(w, "model", made.model);
    return 0;
}

static void write_model(struct json_writer *w, const char *id, const char *name)
{
    json_begin_object(w);
    json_add_string(w, "id", id);
    json_add_string(w, "name", name);
    json_end(w);
}

static bool is_one_of(const char *model, const char *first, const char *own)
{
    return (first && strcmp(first, model) == 0) || (own && strcmp(own, model) == 0);
}

/* first: the default model, or NULL. */
static void write_models(struct request *req, struct json_writer *w, struct llm_account_state *state, const char *first)
{
    const char *own = embed_own_model(&state->account);
    struct llm_models models = { 0 };
    int r = llm_account_state_models(state, req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL);

    json_begin_array_as(w, "models");
    if (first)
        write_model(w, first, first);
    if (own && !is_one_of(own, first, NULL))
        write_model(w, own, own);
    for (size_t i = 0; r == 0 && i < models.n; i++)
        if (llm_model_is_embedding(models.items[i].id) && !is_one_of(models.items[i].id, first, own))
            write_model(w, models.items[i].id, models.items[i].name);
    json_end(w);
}

static void write_builtin(struct json_writer *w, const char *active)
{
    json_begin_object(w);
    json_add_string(w, "provider", LEXICAL_PROVIDER);
    json_begin_array_as(w, "models");
    write_model(w, LEXICAL_MODEL, "Lexical (words and their spelling, not meaning), 384 dimensions");
    json_end(w);
    json_add_bool(w, "active", strcmp(active, LEXICAL_PROVIDER) == 0);
    json_end(w);
}

static void write_provider(struct request *req, struct json_writer *w, struct llm_account_state *state,
                           const struct provider_default *def)
{
    bool is_active = strcmp(def->provider, state->account.name) == 0;

    json_begin_object(w);
    json_add_string(w, "provider", state->account.name);
    write_models(req, w, state, is_active ? def->model : NULL);
    json_add_bool(w, "active", is_active);
    json_end(w);
}

int embed_write_providers(struct request *req, struct json_writer *w, const char *name, struct err *e)
{
    struct provider_default def = { 0 };
    struct llm_account_state **states;
    size_t n, i = 0;
    int r = provider_default_of(metered_call(req), PROVIDER_EMBED, &def, e);

    if (r < 0)
        return r;
    states = provider_account_states(metered_call(req), PROVIDER_EMBED, def.provider, &n);
    json_begin_array_as(w, name);
    if (n > 0 && strcmp(states[0]->account.name, def.provider) == 0)
        write_provider(req, w, states[i++], &def);
    write_builtin(w, def.provider);
    for (; i < n; i++)
        write_provider(req, w, states[i], &def);
    json_end(w);
    return 0;
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    return embed_write_providers(req, &res->json, "providers", e);
}

const struct route embed_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/llm/embed",
      .permission = PERM_LLM_EMBED,
      .needs_long = needs_long,
      .is_sdk = true,
      ROUTE_BODY(embed_fields, struct embed_body),
      .max_body = LIMIT_BODY_CHAT,
      .check_body = check_embed,
      .answer = embed_answer,
      .handler = embed,
      .summary = "Vectors of texts",
      .tag = "LLM" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/providers/embed",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Configured providers of embeddings",
      .tag = "LLM" },
    ROUTE_END,
};
