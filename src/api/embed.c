/* Embeddings (specification, "LLM"; decision D8; docs/embeddings.md). */
#include "api/embed.h"

#include "api/api.h"
#include "api/embed_texts.h"
#include "api/provider_choice.h"
#include "api/routes.h"
#include "base/limits.h"
#include "embed/lexical.h"

struct embed_body { struct json_value input; const char *provider, *model, *input_type; };

static const char *const purposes[] = { "query", "document", NULL };

static const struct field embed_fields[] = {
    FIELD_ANY(struct embed_body, input, "input", FIELD_REQUIRED, .help = "a text, or an array of texts"),
    FIELD_STRING(struct embed_body, provider, "provider", .max = LIMIT_NAME_CHARS, .help = "absent: the setting embed.provider"),
    FIELD_STRING(struct embed_body, model, "model", .max = LIMIT_NAME_CHARS * 2, .help = "absent: the provider's own"),
    FIELD_STRING(struct embed_body, input_type, "input_type", .one_of = purposes, .help = "what the texts are in a search, for models that tell them apart"),
    FIELD_END,
};

static const struct field embed_answer[] = {
    SHAPE_LIST("embeddings", NULL, .help = "an array of numbers for each text, in order"), SHAPE_INT("dimensions"), SHAPE_STRING("provider"),
    SHAPE_STRING("model"), FIELD_END,
};

static const struct field model_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("name"), FIELD_END };

const struct field embed_provider_shape[] = {
    SHAPE_STRING("provider"), SHAPE_LIST("models", model_shape), SHAPE_BOOL("active", .help = "asked when a request names none"), FIELD_END,
};

static const struct field providers_answer[] = { SHAPE_LIST("providers", embed_provider_shape), FIELD_END };

/* ---- handlers ---- */

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
    return embed_waits(req, ((const struct embed_body *)req->body)->provider);
}

static int embed(struct request *req, struct response *res, struct err *e)
{
    const struct embed_body *body = req->body;
    const struct embed_input input = embed_read_input(req->arena, body->input);
    const struct embed_wish wish = { .texts = input.items, .n = input.n, .provider = body->provider, .model = body->model, .purpose = purpose_of(body) };
    struct json_writer *w = &res->json;
    struct embed_made made = { 0 };
    int r = embed_texts(req, &wish, &made, e);

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

static void write_models(struct request *req, struct json_writer *w, struct llm_seat *seat, const char *own)
{
    struct llm_models models = { 0 };
    int r = llm_seat_models(seat, req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL);

    json_begin_array_as(w, "models");
    if (own)
        write_model(w, own, own);
    for (size_t i = 0; r == 0 && i < models.n; i++)
        if (llm_model_is_embedding(models.items[i].id) && (!own || strcmp(own, models.items[i].id) != 0))
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

static void write_provider(struct request *req, struct json_writer *w, struct llm_seat *seat, const struct provider_default *def)
{
    bool is_active = strcmp(def->provider, seat->account.name) == 0;

    json_begin_object(w);
    json_add_string(w, "provider", seat->account.name);
    write_models(req, w, seat, is_active && def->model ? def->model : embed_own_model(&seat->account));
    json_add_bool(w, "active", is_active);
    json_end(w);
}

int embed_write_providers(struct request *req, struct json_writer *w, const char *name, struct err *e)
{
    struct provider_default def = { 0 };
    size_t n;
    struct llm_seat **seats = llm_accounts_list(req->api->llm_accounts, req->arena, &n);
    int r = provider_default_of(req, PROVIDER_EMBED, &def, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, name);
    write_builtin(w, def.provider);
    for (size_t i = 0; i < n; i++)
        if (seats[i]->account.preset->can_embed)
            write_provider(req, w, seats[i], &def);
    json_end(w);
    return 0;
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    return embed_write_providers(req, &res->json, "providers", e);
}

const struct route embed_routes[] = {
    { .method = HTTP_POST, .path = "/sdk/llm/embed", .permission = PERM_LLM_EMBED, .needs_long = needs_long, .is_sdk = true,
      ROUTE_BODY(embed_fields, struct embed_body), .max_body = LIMIT_BODY_CHAT, .check_body = check_embed, .answer = embed_answer,
      .handler = embed, .summary = "Vectors of texts", .tag = "LLM" },
    { .method = HTTP_GET, .path = "/sdk/llm/providers/embed", .permission = PERM_LLM_PROVIDERS, .kind = ROUTE_LONG, .is_sdk = true,
      .answer = providers_answer, .handler = list_providers, .summary = "Configured providers of embeddings", .tag = "LLM" },
    ROUTE_END,
};
