/* GET /v1/models: OpenAI's list and Anthropic's in one (platform.openai.com/docs/api-reference/models,
 * docs.anthropic.com/en/api/models-list). */
#include "api/api.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_anthropic_form.h"
#include "api/compat/v1_models.h"
#include "api/compat/v1_openai_form.h"
#include "base/clock.h"
#include "embed/lexical.h"
#include "llm/accounts.h"

#include <stdlib.h>
#include <string.h>

static const struct field model_shape[] = {
    SHAPE_STRING(
        "id", .help = "the model's own name; with `provider/` in front where another account has one of the same name"),
    SHAPE_STRING("object"),
    SHAPE_INT("created",
              .help = "seconds since 1970, as the provider, the model's file or this program knows it; 0: nobody does"),
    SHAPE_STRING("owned_by", .help = "the provider"),
    SHAPE_STRING("type"),
    SHAPE_STRING("display_name"),
    SHAPE_STRING("created_at", .help = "the same as a text"),
    FIELD_END,
};

static const struct field models_shape[] = {
    SHAPE_STRING("object"),
    SHAPE_LIST("data", model_shape),
    SHAPE_BOOL("has_more"),
    SHAPE_STRING("first_id", .flags = FIELD_NULLABLE),
    SHAPE_STRING("last_id", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static int by_model(const void *one, const void *other)
{
    const struct v1_listed_model *a = *(const struct v1_listed_model *const *)one,
                                 *b = *(const struct v1_listed_model *const *)other;
    int order = strcmp(a->model, b->model);

    return order ? order : a < b ? -1 : a > b;
}

/* The first account that has a model keeps its bare name, unless that reads as provider/model of another. */
static void give_ids(struct request *req, const struct v1_model_list *list)
{
    const struct v1_listed_model **sorted = arena_array(req->arena, list->n + 1, sizeof(*sorted));

    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->items[i];
    if (list->n > 0)
        qsort(sorted, list->n, sizeof(*sorted), by_model);
    for (size_t i = 0; i < list->n; i++) {
        struct v1_listed_model *item = &list->items[sorted[i] - list->items];
        bool is_first = i == 0 || strcmp(sorted[i - 1]->model, item->model) != 0;

        item->id = is_first && !v1_provider_end(req, item->model)
                       ? item->model
                       : arena_printf(req->arena, "%s/%s", item->provider, item->model);
    }
}

static void make_room(struct request *req, struct v1_model_list *list, size_t n_more)
{
    struct v1_listed_model *items;

    if (list->n + n_more <= list->n_room)
        return;
    list->n_room = 2 * (list->n + n_more);
    items = arena_array(req->arena, list->n_room, sizeof(*items));
    if (list->n > 0)
        memcpy(items, list->items, list->n * sizeof(*items));
    list->items = items;
}

static void add_account_state(struct request *req, struct llm_account_state *state, struct v1_model_list *list)
{
    struct llm_models models = { 0 };

    if (llm_account_state_models(state, req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL) < 0)
        return; /* a provider that does not answer hides no others */
    make_room(req, list, models.n);
    for (size_t i = 0; i < models.n; i++)
        list->items[list->n++] = (struct v1_listed_model){ .provider = state->account.name,
                                                           .model = models.items[i].id,
                                                           .name = models.items[i].name,
                                                           .created_s = models.items[i].created_s };
}

struct v1_model_list v1_list_models(struct request *req)
{
    struct v1_model_list list = { 0 };
    size_t n;
    struct llm_account_state **states = llm_accounts_list(req->api->llm_accounts, req->arena, &n);

    for (size_t i = 0; i < n; i++)
        add_account_state(req, states[i], &list);
    make_room(req, &list, 1);
    list.items[list.n++] = (struct v1_listed_model){
        .provider = LEXICAL_PROVIDER, .model = LEXICAL_MODEL, .name = LEXICAL_MODEL, .created_s = LEXICAL_CREATED_S
    };
    give_ids(req, &list);
    return list;
}

/* Anthropic's own list also gives the epoch where a date is unknown. */
static void write_members(struct json_writer *w, const struct v1_listed_model *item)
{
    char created_at[TIME_TEXT_SIZE];

    clock_format(item->created_s * 1000, created_at);
    json_add_string(w, "id", item->id);
    json_add_string(w, "object", "model");
    json_add_int(w, "created", item->created_s);
    json_add_string(w, "owned_by", item->provider);
    json_add_string(w, "type", "model");
    json_add_string(w, "display_name", item->name && *item->name ? item->name : item->model);
    json_add_string(w, "created_at", created_at);
}

static int list_models(struct request *req, struct response *res, struct err *e)
{
    const struct v1_model_list list = v1_list_models(req);
    struct json_writer *w = &res->json;

    json_add_string(w, "object", "list");
    json_begin_array_as(w, "data");
    for (size_t i = 0; i < list.n; i++) {
        json_begin_object(w);
        write_members(w, &list.items[i]);
        json_end(w);
    }
    json_end(w);
    json_add_bool(w, "has_more", false);
    json_add_string(w, "first_id", list.items[0].id);
    json_add_string(w, "last_id", list.items[list.n - 1].id);
    return 0;
}

static const char *requested_id(const struct request *req)
{
    const char *id = req->params[0];

    for (size_t i = 1; i < ARRAY_SIZE(req->params) && req->params[i]; i++)
        id = arena_printf(req->arena, "%s/%s", id, req->params[i]);
    return id;
}

static int get_model(struct request *req, struct response *res, struct err *e)
{
    const struct v1_model_list list = v1_list_models(req);
    const char *id = requested_id(req);

    for (size_t i = 0; i < list.n; i++) {
        const struct v1_listed_model *item = &list.items[i];

        if (strcmp(item->id, id) != 0 &&
            strcmp(arena_printf(req->arena, "%s/%s", item->provider, item->model), id) != 0)
            continue;
        write_members(&res->json, item);
        return 0;
    }
    return err_set(e, -EINVAL, "INVALID_MODEL", "There is no model %.200s; GET /v1/models lists those there are.", id);
}

/* Clients of both forms list models here: those of Anthropic identify themselves by a header. */
static int write_error(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    bool is_anthropic = http_header(&x->request, "anthropic-version");

    return (is_anthropic ? &v1_anthropic_error : &v1_openai_error)->write(w, x, status, e);
}

static const struct field either_error[] = {
    SHAPE_STRING("type", .flags = FIELD_OPTIONAL),
    SHAPE_OBJECT("error", NULL),
    SHAPE_STRING("request_id", .flags = FIELD_OPTIONAL),
    FIELD_END,
};
static const struct error_form either = { .name = "ModelsError", .answer = either_error, .write = write_error };

#define MODEL_ROUTE(at)                                                                                                \
    {                                                                                                                  \
        .method = HTTP_GET, .path = at, .permission = PERM_LLM_PROVIDERS, .kind = ROUTE_LONG, .is_sdk = true,          \
        .is_bare = true, .error_form = &either, .takes_escaped_slash = true, .answer = model_shape,                    \
        .handler = get_model, .summary = "One model, in OpenAI's form", .tag = "Compatible"                            \
    }

const struct route v1_model_routes[] = {
    { .method = HTTP_GET,
      .path = "/v1/models",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .is_bare = true,
      .error_form = &either,
      .answer = models_shape,
      .handler = list_models,
      .summary = "Models of all configured providers, in OpenAI's form",
      .tag = "Compatible" },
    MODEL_ROUTE("/v1/models/:id"),
    MODEL_ROUTE("/v1/models/:provider/:id"),
    MODEL_ROUTE("/v1/models/:provider/:owner/:id"),
    ROUTE_END,
};
