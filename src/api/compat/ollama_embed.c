/* Ollama's POST /api/embed and the older /api/embeddings (github.com/ollama/ollama, docs/api.md). */
#include "api/api.h"
#include "api/resources/embed.h"
#include "api/compat/ollama_form.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "base/clock.h"
#include "base/limits.h"

struct embed_body {
    const char *model;
    struct json_value input, keep_alive, options;
    bool is_cut;
    int64_t dimensions;
};
struct old_body {
    const char *model, *prompt;
    struct json_value keep_alive, options;
};

static const struct field embed_fields[] = {
    FIELD_STRING(struct embed_body, model, "model", FIELD_REQUIRED, .min = 1, .max = 256,
                 .help = "see GET /api/tags; `default`: the default model"),
    FIELD_ANY(struct embed_body, input, "input", .help = "a text, or an array of texts"),
    FIELD_INT(struct embed_body, dimensions, "dimensions", .min = 0, .max = LIMIT_DIMENSIONS,
              .help = "absent or 0: as the model makes them"),
    FIELD_BOOL(struct embed_body, is_cut, "truncate", .help = "read and not used: texts that are too long are refused"),
    FIELD_ANY(struct embed_body, keep_alive, "keep_alive", .help = "read and not used"),
    FIELD_OBJECT(struct embed_body, options, "options", .help = "read and not used"),
    FIELD_END,
};

static const struct field old_fields[] = {
    FIELD_STRING(struct old_body, model, "model", FIELD_REQUIRED, .min = 1, .max = 256,
                 .help = "see GET /api/tags; `default`: the default model"),
    FIELD_STRING(struct old_body, prompt, "prompt", .max = LIMIT_EMBED_TEXT),
    FIELD_ANY(struct old_body, keep_alive, "keep_alive", .help = "read and not used"),
    FIELD_OBJECT(struct old_body, options, "options", .help = "read and not used"),
    FIELD_END,
};

static const struct field embed_shape[] = {
    SHAPE_STRING("model"),
    SHAPE_ANY("embeddings", .help = "an array of numbers for each text"),
    SHAPE_INT("total_duration", .help = "nanoseconds"),
    SHAPE_INT("load_duration"),
    SHAPE_INT("prompt_eval_count"),
    FIELD_END,
};
static const struct field old_shape[] = { SHAPE_FLOATS("embedding"), FIELD_END };

/* A request without text only loads the model. */
static bool is_empty(struct json_value input)
{
    return json_is_absent(input) || (json_type(input) == JSON_ARRAY && json_length(input) == 0) ||
           (json_type(input) == JSON_STRING && json_string(input).n == 0);
}

static int check_embed(const struct request *req, const void *body, struct err *e)
{
    struct json_value input = ((const struct embed_body *)body)->input;

    return is_empty(input) ? 0 : embed_check_input(input, e);
}

static bool needs_long(const struct request *req)
{
    return true; /* the name is looked up in the providers' lists */
}

static int make(struct request *req, const char *model, struct embed_job *request, struct embed_made *ret,
                struct err *e)
{
    struct provider_choice whom = { 0 };
    int r = v1_find_tagged_model(req, PROVIDER_EMBED, model, &whom, e);

    request->provider = whom.provider;
    request->model = whom.model;
    return r < 0 ? r : embed_for(req, request, ret, e);
}

static int embed(struct request *req, struct response *res, struct err *e)
{
    const struct embed_body *body = req->body;
    const struct embed_input input = embed_read_input(req->arena, body->input);
    struct embed_job request = { .texts = input.items, .n = input.n, .n_dimensions = body->dimensions };
    struct embed_made made = { .model = body->model };
    int64_t began_us = clock_mono_us();
    int r = is_empty(body->input) ? 0 : make(req, body->model, &request, &made, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "model", made.model);
    json_begin_array_as(&res->json, "embeddings");
    for (size_t i = 0; i < made.n; i++)
        json_add_floats(&res->json, NULL, made.items + i * made.n_dimensions, made.n_dimensions);
    json_end(&res->json);
    json_add_int(&res->json, "total_duration", (clock_mono_us() - began_us) * 1000);
    json_add_int(&res->json, "load_duration", 0);
    json_add_int(&res->json, "prompt_eval_count", made.n_tokens);
    return 0;
}

static int embed_prompt(struct request *req, struct response *res, struct err *e)
{
    const struct old_body *body = req->body;
    const struct slice text = slice_of(body->prompt ? body->prompt : "");
    struct embed_job request = { .texts = &text, .n = 1 };
    struct embed_made made = { 0 };
    int r = text.n == 0 ? 0 : make(req, body->model, &request, &made, e);

    if (r == 0)
        json_add_floats(&res->json, "embedding", made.items, made.n_dimensions);
    return r;
}

const struct route ollama_embed_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/embed",
      .permission = PERM_LLM_EMBED,
      .needs_long = needs_long,
      .is_bare = true,
      ROUTE_BODY(embed_fields, struct embed_body),
      .check_body = check_embed,
      .max_body = LIMIT_BODY_CHAT,
      .answer = embed_shape,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .handler = embed,
      .summary = "Vectors of texts in Ollama's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/api/embeddings",
      .permission = PERM_LLM_EMBED,
      .needs_long = needs_long,
      .is_bare = true,
      ROUTE_BODY(old_fields, struct old_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = old_shape,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .handler = embed_prompt,
      .summary = "The vector of one text in Ollama's older form",
      .tag = "Compatible" },
    ROUTE_END,
};
