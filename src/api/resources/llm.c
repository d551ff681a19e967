/* Specification, "LLM"; decision D8. */
#include "api/api.h"
#include "api/resources/embed.h"
#include "api/resources/llm_chat.h"
#include "api/resources/llm_form.h"
#include "api/resources/metered.h"
#include "api/routes.h"
#include "llm/request.h"
#include "models/provider_choice.h"

/* ---- shapes ---- */

static const struct field metrics_shape[] = {
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("completion_tokens"),
    SHAPE_INT("total_tokens"),
    SHAPE_DOUBLE("duration", .help = "seconds"),
    SHAPE_DOUBLE("outputTps", .help = "output tokens a second"),
    SHAPE_BOOL("estimated", .flags = FIELD_OPTIONAL, .help = "the provider did not count"),
    FIELD_END,
};

static const struct field tool_call_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("type"),
                                                SHAPE_OBJECT("function", llm_function_shape), FIELD_END };

static const struct field response_shape[] = {
    SHAPE_STRING("content"),
    SHAPE_STRING("provider"),
    SHAPE_STRING("model"),
    SHAPE_OBJECT("metrics", metrics_shape),
    SHAPE_STRING("finish_reason", .help = "stop, length, tool_calls, content_filter"),
    SHAPE_STRING("reasoning", .flags = FIELD_OPTIONAL),
    SHAPE_LIST("tool_calls", tool_call_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field chat_answer[] = { SHAPE_OBJECT("response", response_shape), FIELD_END };
static const struct field model_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("name"), FIELD_END };
static const struct field entry_shape[] = {
    SHAPE_STRING("provider"),
    SHAPE_LIST("models", model_shape),
    SHAPE_BOOL("active", .help = "asked when a request names no provider"),
    FIELD_END,
};
static const struct field providers_answer[] = { SHAPE_LIST("llm", entry_shape),
                                                 SHAPE_LIST("embedding", embed_provider_shape), FIELD_END };
static const struct field chat_providers_answer[] = { SHAPE_LIST("providers", entry_shape), FIELD_END };

/* ---- POST /sdk/llm/chat ---- */

static bool needs_long(const struct request *req)
{
    const struct llm_request_body *body = req->body;

    return llm_messages_name_addresses(&body->messages) /* files are fetched before the chat */ ||
           chat_waits(metered_call(req), body->provider, body->model);
}

static int chat_whole(struct request *req, struct response *res, struct err *e)
{
    const struct llm_request_body *body = req->body;
    struct llm_request request = { 0 };
    struct llm_chat chat = { .provider = body->provider, .request = &request, .form = &llm_form_sdk };
    int r = llm_request_of(body, http_exchange_body_arena(req->exchange), &request, e);

    return r < 0 ? r : llm_chat_answer(req, res, &chat, e);
}

/* ---- POST /sdk/llm/chat/stream ---- */

static int chat_stream(struct request *req, struct response *res, struct err *e)
{
    const char *last_id = http_header(&req->exchange->request, "last-event-id");
    const char *request = http_header(&req->exchange->request, "x-hearth-resumable");
    const struct llm_request_body *body = req->body;
    struct arena *a = http_exchange_body_arena(req->exchange);
    struct llm_chat chat = { .provider = body->provider,
                             .request = ARENA_NEW(a, struct llm_request),
                             .form = &llm_form_sdk };
    int r;

    if (last_id && *last_id)
        return llm_chat_resume(req, res, last_id, e);
    chat.is_resumable = request && (strcmp(request, "1") == 0 || strcmp(request, "true") == 0);
    r = llm_request_of(body, a, chat.request, e);
    return r < 0 ? r : llm_chat_stream(req, res, &chat, e);
}

/* ---- GET /sdk/llm/providers ---- */

static void write_model(struct json_writer *w, const char *id, const char *name)
{
    json_begin_object(w);
    json_add_string(w, "id", id);
    json_add_string(w, "name", name);
    json_end(w);
}

/* Is this model only for embeddings? Judged by its name and the account's embedding model; a model that the account is
 * configured to chat with is never taken for one. */
static bool only_embeds(const struct llm_account *acc, const char *model)
{
    if (acc->model && strcmp(acc->model, model) == 0)
        return false;
    return llm_model_is_embedding(model) || (acc->embed_model && strcmp(acc->embed_model, model) == 0);
}

/* first: the default model, or NULL. */
static struct llm_models models_to_chat(struct request *req, struct llm_account_state *state, const char *first)
{
    struct llm_models all = { 0 }, listed = { 0 };
    struct llm_model *items;

    if (llm_account_state_models(state, req->api->settings, req->arena, &req->exchange->is_gone, &all, NULL) < 0)
        all.n = 0; /* a provider that does not answer hides no others */
    items = arena_array(req->arena, all.n + 1, sizeof(*items));
    if (first)
        items[listed.n++] = (struct llm_model){ .id = first, .name = first };
    for (size_t i = 0; i < all.n; i++)
        if (!only_embeds(&state->account, all.items[i].id) && !(first && strcmp(first, all.items[i].id) == 0))
            items[listed.n++] = all.items[i];
    listed.items = items;
    return listed;
}

static void write_entry(struct request *req, struct json_writer *w, struct llm_account_state *state, bool is_active,
                        const char *first)
{
    const struct llm_models models = models_to_chat(req, state, first);

    if (models.n == 0 && state->account.embed_model && !is_active)
        return; /* configured for embeddings only */
    json_begin_object(w);
    json_add_string(w, "provider", state->account.name);
    json_begin_array_as(w, "models");
    for (size_t i = 0; i < models.n; i++)
        write_model(w, models.items[i].id, models.items[i].name);
    json_end(w);
    json_add_bool(w, "active", is_active);
    json_end(w);
}

static int write_entries(struct request *req, struct json_writer *w, const char *name, struct err *e)
{
    struct provider_default def = { 0 };
    struct llm_account_state **states;
    size_t n;
    int r = provider_default_of(metered_call(req), PROVIDER_CHAT, &def, e);

    if (r < 0)
        return r;
    states = provider_account_states(metered_call(req), PROVIDER_CHAT, def.provider, &n);
    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        bool is_active = def.provider && strcmp(def.provider, states[i]->account.name) == 0;

        write_entry(req, w, states[i], is_active, is_active ? def.model : NULL);
    }
    json_end(w);
    return 0;
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    int r = write_entries(req, &res->json, "llm", e);

    return r < 0 ? r : embed_write_providers(req, &res->json, "embedding", e);
}

static int list_chat_providers(struct request *req, struct response *res, struct err *e)
{
    return write_entries(req, &res->json, "providers", e);
}

const struct route llm_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/llm/chat",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .tries_loop = true,
      .is_sdk = true,
      ROUTE_BODY(llm_request_fields, struct llm_request_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = chat_answer,
      .handler = chat_whole,
      .summary = "Ask a language model and get the whole answer",
      .tag = "LLM" },
    { .method = HTTP_POST,
      .path = "/sdk/llm/chat/stream",
      .permission = PERM_LLM_CHAT,
      .kind = ROUTE_RELAY,
      .needs_long = needs_long,
      .tries_loop = true,
      .is_sdk = true,
      ROUTE_BODY(llm_request_fields, struct llm_request_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer_type = "text/event-stream",
      .handler = chat_stream,
      .summary = "Ask a language model and get the answer as it comes",
      .tag = "LLM" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/providers",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Configured providers of every kind",
      .tag = "LLM" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/providers/chat",
      .permission = PERM_LLM_PROVIDERS,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .answer = chat_providers_answer,
      .handler = list_chat_providers,
      .summary = "Configured providers of language models",
      .tag = "LLM" },
    ROUTE_END,
};
