/* Embeddings (specification, "LLM"; decision D8; docs/embeddings.md). */
#include "api/embed.h"

#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"
#include "embed/lexical.h"

struct embed_body { struct json_value input; const char *provider, *model; };

static const struct field embed_fields[] = {
    FIELD_ANY(struct embed_body, input, "input", FIELD_REQUIRED, .help = "a text, or an array of texts"),
    FIELD_STRING(struct embed_body, provider, "provider", .min = 1, .max = LIMIT_NAME_CHARS, .help = "absent: the setting embed.provider"),
    FIELD_STRING(struct embed_body, model, "model", .min = 1, .max = LIMIT_NAME_CHARS * 2, .help = "absent: the provider's own"),
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

/* ---- what is asked ---- */

struct texts { struct slice *items; size_t n; };

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

/* A string, or 1 to LIMIT_EMBED_TEXTS of them. */
static int check_embed(const struct request *req, const void *body, struct err *e)
{
    struct json_value input = ((const struct embed_body *)body)->input, item;
    struct json_iter it = json_iter(input);
    size_t n = json_length(input);
    char path[32];
    int r = 0;

    if (json_is_absent(input))
        return 0;                       /* told already */
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

static struct texts texts_of(struct arena *a, struct json_value input)
{
    struct texts texts = { arena_array(a, MAX(json_length(input), (size_t)1), sizeof(struct slice)), 0 };
    struct json_iter it = json_iter(input);
    struct json_value item;

    if (json_type(input) == JSON_STRING)
        texts.items[texts.n++] = json_string(input);
    while (json_next(&it, NULL, &item))
        texts.items[texts.n++] = json_string(item);
    return texts;
}

/* ---- the built-in provider ---- */

static void write_vectors_begin(struct json_writer *w)
{
    json_begin_array_as(w, "embeddings");
}

static void write_vectors_end(struct json_writer *w, size_t n_dimensions, const char *provider, const char *model)
{
    json_end(w);
    json_add_int(w, "dimensions", (int64_t)n_dimensions);
    json_add_string(w, "provider", provider);
    json_add_string(w, "model", model);
}

static int embed_builtin(const struct texts *texts, const char *model, struct json_writer *w, struct err *e)
{
    float vector[LEXICAL_DIMENSIONS];

    if (model && strcmp(model, LEXICAL_MODEL) != 0)
        return err_set(e, -EINVAL, "INVALID_MODEL", "The provider " LEXICAL_PROVIDER " has one model, " LEXICAL_MODEL ".");
    write_vectors_begin(w);
    for (size_t i = 0; i < texts->n; i++) {
        lexical_embed(texts->items[i], vector);
        json_add_floats(w, NULL, vector, LEXICAL_DIMENSIONS);
    }
    write_vectors_end(w, LEXICAL_DIMENSIONS, LEXICAL_PROVIDER, LEXICAL_MODEL);
    return 0;
}

/* ---- handlers ---- */

static int embed(struct request *req, struct response *res, struct err *e)
{
    const struct embed_body *body = req->body;
    const struct texts texts = texts_of(req->arena, body->input);
    const char *provider = body->provider, *model = body->model;

    if (!provider) {
        provider = settings_string(req->api->settings, req->arena, SETTING_EMBED_PROVIDER);
        if (!model)
            model = settings_string(req->api->settings, req->arena, SETTING_EMBED_MODEL);
    }
    if (model && !*model)
        model = NULL;
    if (strcmp(provider, LEXICAL_PROVIDER) == 0)
        return embed_builtin(&texts, model, &res->json, e);
    return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "There is no embedding provider %s.", provider);
}

void embed_write_providers(struct request *req, struct json_writer *w, const char *name)
{
    const char *active = settings_string(req->api->settings, req->arena, SETTING_EMBED_PROVIDER);

    json_begin_array_as(w, name);
    json_begin_object(w);
    json_add_string(w, "provider", LEXICAL_PROVIDER);
    json_begin_array_as(w, "models");
    json_begin_object(w);
    json_add_string(w, "id", LEXICAL_MODEL);
    json_add_string(w, "name", "Lexical (words and their spelling, not meaning), 384 dimensions");
    json_end(w);
    json_end(w);
    json_add_bool(w, "active", strcmp(active, LEXICAL_PROVIDER) == 0);
    json_end(w);
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    embed_write_providers(req, &res->json, "providers");
    return 0;
}

const struct route embed_routes[] = {
    { .method = HTTP_POST, .path = "/sdk/llm/embed", .permission = PERM_LLM_EMBED, .kind = ROUTE_LONG, .is_sdk = true,
      ROUTE_BODY(embed_fields, struct embed_body), .max_body = LIMIT_BODY_CHAT, .check_body = check_embed, .answer = embed_answer,
      .handler = embed, .summary = "Vectors of texts", .tag = "LLM" },
    { .method = HTTP_GET, .path = "/sdk/llm/providers/embed", .permission = PERM_LLM_PROVIDERS, .kind = ROUTE_LONG, .is_sdk = true,
      .answer = providers_answer, .handler = list_providers, .summary = "Configured providers of embeddings", .tag = "LLM" },
    ROUTE_END,
};
