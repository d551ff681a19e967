/* POST /v1/embeddings (platform.openai.com/docs/api-reference/embeddings/create). */
#include "api/api.h"
#include "api/resources/embed.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "base/base64.h"
#include "base/limits.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "base64 vectors are float32 in little-endian order");

struct embeddings_body {
    struct json_value input;
    const char *model, *encoding_format;
    int64_t dimensions;
};

static const char *const encodings[] = { "float", "base64", NULL };

static const struct field embeddings_fields[] = {
    FIELD_ANY(struct embeddings_body, input, "input", FIELD_REQUIRED, .help = "a text, or an array of texts"),
    FIELD_STRING(struct embeddings_body, model, "model", .max = 256,
                 .help = "see GET /v1/models; absent or `default`: the default model"),
    FIELD_STRING(struct embeddings_body, encoding_format, "encoding_format", .one_of = encodings, .def_str = "float"),
    FIELD_INT(struct embeddings_body, dimensions, "dimensions", .min = 1, .max = LIMIT_DIMENSIONS,
              .help = "absent: as the model makes them"),
    FIELD_END,
};

static const struct field embedding_shape[] = {
    SHAPE_STRING("object"),
    SHAPE_ANY("embedding", .help = "numbers, or the base64 of float32 in little-endian order"),
    SHAPE_INT("index"),
    FIELD_END,
};

static const struct field usage_shape[] = {
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("total_tokens"),
    SHAPE_BOOL("estimated", .flags = FIELD_OPTIONAL, .help = "the provider did not count"),
    FIELD_END,
};

static const struct field embeddings_answer[] = {
    SHAPE_STRING("object"),
    SHAPE_LIST("data", embedding_shape),
    SHAPE_STRING("model"),
    SHAPE_OBJECT("usage", usage_shape),
    FIELD_END,
};

static bool is_of_tokens(struct json_value input)
{
    struct json_iter it = json_iter(input);
    struct json_value first;

    if (json_type(input) != JSON_ARRAY || !json_next(&it, NULL, &first))
        return false;
    return json_type(first) == JSON_INT || json_type(first) == JSON_ARRAY;
}

static int check_body(const struct request *req, const void *body, struct err *e)
{
    struct json_value input = ((const struct embeddings_body *)body)->input;

    if (is_of_tokens(input))
        return err_add_field(
            e, "input",
            "must be a text or an array of texts; arrays of tokens are not taken, for each model counts its own");
    return embed_check_input(input, e);
}

/* A name that must be looked up in lists waits for the providers of those lists. */
static bool needs_long(const struct request *req)
{
    const struct embeddings_body *body = req->body;

    return (body->model && *body->model) || embed_waits(metered_call(req), NULL, NULL);
}

static void write_vector(struct request *req, struct json_writer *w, const float *items, size_t n)
{
    const struct embeddings_body *body = req->body;
    struct buf text;

    if (strcmp(body->encoding_format, "float") == 0) {
        json_add_floats(w, "embedding", items, n);
        return;
    }
    buf_init(&text, LIMIT_REPLY);
    base64_encode_data(&text, (struct slice){ (const char *)items, n * sizeof(*items) });
    json_add_slice(w, "embedding", buf_slice(&text));
    buf_clear(&text);
}

static void write_vectors(struct request *req, struct json_writer *w, const struct embed_made *made)
{
    json_add_string(w, "object", "list");
    json_begin_array_as(w, "data");
    for (size_t i = 0; i < made->n; i++) {
        json_begin_object(w);
        json_add_string(w, "object", "embedding");
        write_vector(req, w, made->items + i * made->n_dimensions, made->n_dimensions);
        json_add_int(w, "index", (int64_t)i);
        json_end(w);
    }
    json_end(w);
    json_add_string(w, "model", made->model);
    json_begin_object_as(w, "usage");
    json_add_int(w, "prompt_tokens", made->n_tokens);
    json_add_int(w, "total_tokens", made->n_tokens);
    if (made->is_estimated)
        json_add_bool(w, "estimated", true);
    json_end(w);
}

static int embed(struct request *req, struct response *res, struct err *e)
{
    const struct embeddings_body *body = req->body;
    const struct embed_input input = embed_read_input(req->arena, body->input);
    struct embed_job job = { .texts = input.items, .n = input.n, .n_dimensions = body->dimensions };
    struct embed_made made = { 0 };
    struct provider_choice whom = { 0 };
    int r = v1_find_model(req, PROVIDER_EMBED, body->model, &whom, e);

    job.provider = whom.provider;
    job.model = whom.model;
    if (r == 0)
        r = embed_for(req, &job, &made, e);
    if (r == 0)
        write_vectors(req, &res->json, &made);
    return r;
}

const struct route v1_embedding_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/embeddings",
      .permission = PERM_LLM_EMBED,
      .needs_long = needs_long,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(embeddings_fields, struct embeddings_body),
      .check_body = check_body,
      .max_body = LIMIT_BODY_CHAT,
      .answer = embeddings_answer,
      .error_form = &v1_openai_error,
      .handler = embed,
      .summary = "Vectors of texts in OpenAI's form",
      .tag = "Compatible" },
    ROUTE_END,
};
