/* Ollama's routes that describe models: /api/tags, /api/ps, /api/show, /api/version (github.com/ollama/ollama,
 * docs/api.md); and those that change models, which is left to the providers here: /api/pull, /api/push, /api/create,
 * /api/copy, /api/delete, /api/blobs. */
#include "api/api.h"
#include "api/compat/ollama_form.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_models.h"
#include "base/clock.h"
#include "base/hash.h"
#include "embed/lexical.h"
#include "llm/accounts.h"

#include <string.h>

/* The version of Ollama whose interface this is. Programs read it before they use functions of later versions. */
#define OLLAMA_VERSION "0.12.6"
#define NO_TIME "1970-01-01T00:00:00Z"

struct model_body {
    const char *model, *name;
    bool is_streamed;
};

static const struct field show_fields[] = {
    FIELD_STRING(struct model_body, model, "model", .max = 256, .help = "see GET /api/tags"),
    FIELD_STRING(struct model_body, name, "name", .max = 256, .help = "another name of model"),
    FIELD_END,
};

static const struct field pull_fields[] = {
    FIELD_STRING(struct model_body, model, "model", .max = 256, .help = "see GET /api/tags"),
    FIELD_STRING(struct model_body, name, "name", .max = 256, .help = "another name of model"),
    FIELD_BOOL(struct model_body, is_streamed, "stream", .def = 1),
    FIELD_END,
};

static const struct field details_shape[] = {
    SHAPE_STRING("parent_model"),
    SHAPE_STRING("format"),
    SHAPE_STRING("family", .help = "the provider"),
    SHAPE_STRINGS("families"),
    SHAPE_STRING("parameter_size"),
    SHAPE_STRING("quantization_level"),
    FIELD_END,
};

static const struct field model_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("model"),
    SHAPE_TIME("modified_at"),
    SHAPE_INT("size"),
    SHAPE_STRING("digest"),
    SHAPE_OBJECT("details", details_shape),
    SHAPE_TIME("expires_at", .flags = FIELD_OPTIONAL),
    SHAPE_INT("size_vram", .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field list_shape[] = { SHAPE_LIST("models", model_shape), FIELD_END };

static const struct field show_shape[] = {
    SHAPE_STRING("license"),
    SHAPE_STRING("modelfile"),
    SHAPE_STRING("parameters"),
    SHAPE_STRING("template"),
    SHAPE_OBJECT("details", details_shape),
    SHAPE_OBJECT("model_info", NULL),
    SHAPE_STRINGS("capabilities"),
    SHAPE_TIME("modified_at"),
    FIELD_END,
};

static const struct field version_shape[] = { SHAPE_STRING("version"), SHAPE_STRING("hearth"), FIELD_END };
static const struct field pull_shape[] = { SHAPE_STRING("status"), FIELD_END };

/* ---- lists ---- */

static void write_details(struct json_writer *w, const char *provider)
{
    json_begin_object_as(w, "details");
    json_add_string(w, "parent_model", "");
    json_add_string(w, "format", "");
    json_add_string(w, "family", provider);
    json_add_strings(w, "families", &provider, 1);
    json_add_string(w, "parameter_size", "");
    json_add_string(w, "quantization_level", "");
    json_end(w);
}

static void write_time(struct json_writer *w, int64_t created_s)
{
    char text[TIME_TEXT_SIZE];

    clock_format(created_s * 1000, text);
    json_add_string(w, "modified_at", text);
}

static void write_model(struct json_writer *w, struct arena *a, const struct v1_listed_model *item)
{
    char digest[HASH_HEX_SIZE];

    hash_text_hex(slice_of(arena_printf(a, "%s/%s", item->provider, item->model)), digest);
    json_add_string(w, "name", item->id);
    json_add_string(w, "model", item->id);
    write_time(w, item->created_s);
    json_add_int(w, "size", 0);
    json_add_string(w, "digest", digest);
    write_details(w, item->provider);
}

static int list_tags(struct request *req, struct response *res, struct err *e)
{
    const struct v1_model_list list = v1_list_models(req);

    json_begin_array_as(&res->json, "models");
    for (size_t i = 0; i < list.n; i++) {
        json_begin_object(&res->json);
        write_model(&res->json, req->arena, &list.items[i]);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static void write_running(struct request *req, struct json_writer *w, struct llm_account_state *state)
{
    struct llm_models models;

    llamacpp_running(state->account.runner, req->arena, &models);
    for (size_t i = 0; i < models.n; i++) {
        json_begin_object(w);
        write_model(w, req->arena,
                    &(struct v1_listed_model){
                        .id = models.items[i].id, .provider = state->account.name, .model = models.items[i].id });
        json_add_string(w, "expires_at", NO_TIME);
        json_add_int(w, "size_vram", 0);
        json_end(w);
    }
}

/* Lists the models that this service runs itself. */
static int list_running(struct request *req, struct response *res, struct err *e)
{
    size_t n;
    struct llm_account_state **states = llm_accounts_list(req->api->llm_accounts, req->arena, &n);

    json_begin_array_as(&res->json, "models");
    for (size_t i = 0; i < n; i++)
        if (states[i]->account.runner)
            write_running(req, &res->json, states[i]);
    json_end(&res->json);
    return 0;
}

/* ---- one model ---- */

static bool is_named(struct request *req, const struct v1_listed_model *item, const char *name)
{
    return strcmp(item->id, name) == 0 ||
           strcmp(arena_printf(req->arena, "%s/%s", item->provider, item->model), name) == 0;
}

static const struct v1_listed_model *find_listed(struct request *req, const struct v1_model_list *list,
                                                 const char *name)
{
    for (size_t i = 0; name && i < list->n; i++)
        if (is_named(req, &list->items[i], name))
            return &list->items[i];
    return NULL;
}

/* The error text is Ollama's, because its clients look for "not found". */
static int find_model(struct request *req, const struct v1_listed_model **ret, struct err *e)
{
    const struct model_body *body = req->body;
    const char *name = body->model && *body->model ? body->model : body->name;
    struct v1_model_list list;

    if (!name || !*name)
        return err_add_field(e, "model", "is required");
    list = v1_list_models(req);
    *ret = find_listed(req, &list, name);
    if (!*ret)
        *ret = find_listed(req, &list, v1_other_tag(req->arena, name));
    return *ret
               ? 0
               : err_set(
                     e, -EINVAL, "INVALID_MODEL",
                     "model '%.200s' not found: no provider of Hearth lists it. Hearth pulls no models: add a provider that has it "
                     "(`hearth provider add`), pull it with that provider's own Ollama, or put its file into the folder of models.",
                     name);
}

static void write_capabilities(struct json_writer *w, const struct v1_listed_model *item)
{
    bool is_embedding = llm_model_is_embedding(item->model) || strcmp(item->provider, LEXICAL_PROVIDER) == 0;
    bool is_thinking = llm_model_is_reasoning(item->model) || llm_model_thinking(item->model) != LLM_THINKS_NOT;

    json_begin_array_as(w, "capabilities");
    if (is_embedding)
        json_add_string(w, NULL, "embedding");
    for (size_t i = 0; !is_embedding && i < 3; i++)
        json_add_string(w, NULL, (const char *const[]){ "completion", "tools", "vision" }[i]);
    if (!is_embedding && is_thinking)
        json_add_string(w, NULL, "thinking");
    json_end(w);
}

static int show(struct request *req, struct response *res, struct err *e)
{
    const struct v1_listed_model *item = NULL;
    struct json_writer *w = &res->json;
    int r = find_model(req, &item, e);

    if (r < 0 || !item)
        return r;
    json_add_string(w, "license", "");
    json_add_string(w, "modelfile", arena_printf(req->arena, "FROM %s", item->id));
    json_add_string(w, "parameters", "");
    json_add_string(w, "template", "{{ .Prompt }}");
    write_details(w, item->provider);
    json_begin_object_as(w, "model_info");
    json_add_string(w, "general.architecture", item->provider);
    json_add_string(w, "general.basename", item->model);
    json_end(w);
    write_capabilities(w, item);
    write_time(w, item->created_s);
    return 0;
}

/* A model that is listed need not be pulled. */
static int pull(struct request *req, struct response *res, struct err *e)
{
    const struct model_body *body = req->body;
    const struct v1_listed_model *item = NULL;
    int r = find_model(req, &item, e);

    if (r == 0 && body->is_streamed)
        buf_add_str(response_start_raw(res, OLLAMA_LINES), "{\"status\":\"success\"}\n");
    else if (r == 0)
        json_add_string(&res->json, "status", "success");
    return r;
}

/* ---- not supported here ---- */

static int refuse(struct request *req, struct response *res, struct err *e)
{
    return err_set(
        e, -ENOTSUP, "NOT_IMPLEMENTED",
        "Hearth keeps no models of its own and does not make, copy, send or remove any. Models belong to the configured providers "
        "(`hearth provider list`): do this with their own tools, or put a GGUF file into the folder of models (docs/local-models.md).");
}

static int show_version(struct request *req, struct response *res, struct err *e)
{
    json_add_string(&res->json, "version", OLLAMA_VERSION);
    json_add_string(&res->json, "hearth", HEARTH_VERSION);
    return 0;
}

#define REFUSED(verb, at)                                                                                              \
    {                                                                                                                  \
        .method = verb, .path = at, .permission = PERM_LLM_PROVIDERS, .is_bare = true, .takes_anonymous = true,        \
        .is_refused = true, .status = 501, .error_form = &ollama_error, .handler = refuse,                             \
        .summary = "Not done here: models belong to their providers", .tag = "Compatible"                              \
    }

const struct route ollama_model_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/version",
      .permission = PERM_PUBLIC,
      .kind = ROUTE_INLINE,
      .is_bare = true,
      .answer = version_shape,
      .error_form = &ollama_error,
      .handler = show_version,
      .summary = "The version of Ollama's interface that is spoken here",
      .tag = "Compatible" },
    { .method = HTTP_GET,
      .path = "/api/tags",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_bare = true,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .answer = list_shape,
      .handler = list_tags,
      .summary = "Models of all configured providers, in Ollama's form",
      .tag = "Compatible" },
    { .method = HTTP_GET,
      .path = "/api/ps",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_bare = true,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .answer = list_shape,
      .handler = list_running,
      .summary = "Models that run on this machine now, in Ollama's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/api/show",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_bare = true,
      .takes_anonymous = true,
      ROUTE_BODY(show_fields, struct model_body),
      .error_form = &ollama_error,
      .answer = show_shape,
      .handler = show,
      .summary = "One model, in Ollama's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/api/pull",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_bare = true,
      .takes_anonymous = true,
      ROUTE_BODY(pull_fields, struct model_body),
      .error_form = &ollama_error,
      .answer = pull_shape,
      .may_stream = true,
      .stream_type = OLLAMA_LINES,
      .handler = pull,
      .summary = "Whether a model is there; none is fetched",
      .tag = "Compatible" },
    REFUSED(HTTP_POST, "/api/push"),
    REFUSED(HTTP_POST, "/api/create"),
    REFUSED(HTTP_POST, "/api/copy"),
    REFUSED(HTTP_DELETE, "/api/delete"),
    REFUSED(HTTP_POST, "/api/blobs/:digest"),
    ROUTE_END,
};
