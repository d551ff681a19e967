/* Specification, "LLM"; decision D8. */
#include "api/api.h"
#include "api/embed.h"
#include "api/llm_chat.h"
#include "api/llm_form.h"
#include "api/provider_choice.h"
#include "api/routes.h"
#include "llm/ask.h"

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

static const struct field tool_call_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("type"), SHAPE_OBJECT("function", llm_function_shape), FIELD_END };

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
static const struct field providers_answer[] = { SHAPE_LIST("llm", entry_shape), SHAPE_LIST("embedding", embed_provider_shape), FIELD_END };
static const struct field chat_providers_answer[] = { SHAPE_LIST("providers", entry_shape), FIELD_END };

/* ---- POST /sdk/llm/chat ---- */

static void write_response(struct json_writer *w, const struct llm_outcome *out)
{
    const struct llm_answer *answer = out->answer;

    json_begin_object_as(w, "response");
    json_add_slice(w, "content", buf_slice(&answer->text));
    json_add_string(w, "provider", out->provider);
    json_add_string(w, "model", out->model);
    llm_write_metrics(w, answer, (double)out->answer_us / 1e6);
    json_add_string(w, "finish_reason", llm_finish_name(answer->why));
    if (answer->reasoning.n > 0)
        json_add_slice(w, "reasoning", buf_slice(&answer->reasoning));
    if (answer->n_tools > 0)
        llm_answer_write_tools(answer, w, "tool_calls", false);
    json_end(w);
}

static int chat(struct request *req, struct response *res, struct err *e)
{
    const struct llm_ask_body *body = req->body;
    struct llm_ask ask = { 0 };
    struct llm_outcome out = { 0 };
    int r = llm_ask_of(body, http_exchange_body_arena(req->exchange), &ask, e);

    if (r == 0)
        r = llm_chat_whole(req, &(struct llm_chat){ .provider = body->provider, .ask = &ask }, &out, e);
    if (r == 0)
        write_response(&res->json, &out);
    return r;
}

/* ---- POST /sdk/llm/chat/stream ---- */

static int chat_stream(struct request *req, struct response *res, struct err *e)
{
    const char *last_id = http_header(&req->exchange->request, "last-event-id");
    const char *wish = http_header(&req->exchange->request, "x-hearth-resumable");
    const struct llm_ask_body *body = req->body;
    struct arena *a = http_exchange_body_arena(req->exchange);
    struct llm_chat chat = { .provider = body->provider, .ask = ARENA_NEW(a, struct llm_ask), .form = &llm_form_sdk };
    int r;

    if (last_id && *last_id)
        return llm_chat_resume(req, res, last_id, e);
    chat.is_resumable = wish && (strcmp(wish, "1") == 0 || strcmp(wish, "true") == 0);
    r = llm_ask_of(body, a, chat.ask, e);
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

/* first: the default's own model, or NULL. */
static void write_entry(struct request *req, struct json_writer *w, struct llm_seat *seat, bool is_active, const char *first)
{
    struct llm_models models = { 0 };
    int r = llm_seat_models(seat, req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL);

    json_begin_object(w);
    json_add_string(w, "provider", seat->account.name);
    json_begin_array_as(w, "models");
    if (first)
        write_model(w, first, first);
    for (size_t i = 0; r == 0 && i < models.n; i++)
        if (!first || strcmp(first, models.items[i].id) != 0)
            write_model(w, models.items[i].id, models.items[i].name);
    json_end(w);
    json_add_bool(w, "active", is_active);
    json_end(w);
}

static int write_entries(struct request *req, struct json_writer *w, const char *name, struct err *e)
{
    struct provider_default def = { 0 };
    size_t n;
    struct llm_seat **seats = llm_accounts_list(req->api->llm_accounts, req->arena, &n);
    int r = provider_default_of(req, PROVIDER_CHAT, &def, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        bool is_active = def.provider && strcmp(def.provider, seats[i]->account.name) == 0;

        if (seats[i]->account.preset->can_chat)
            write_entry(req, w, seats[i], is_active, is_active ? def.model : NULL);
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
    { .method = HTTP_POST, .path = "/sdk/llm/chat", .permission = PERM_LLM_CHAT, .kind = ROUTE_LONG, .is_sdk = true,
      ROUTE_BODY(llm_ask_fields, struct llm_ask_body), .max_body = LIMIT_BODY_CHAT, .answer = chat_answer, .handler = chat,
      .summary = "Ask a language model and get the whole answer", .tag = "LLM" },
    { .method = HTTP_POST, .path = "/sdk/llm/chat/stream", .permission = PERM_LLM_CHAT, .kind = ROUTE_RELAY, .is_sdk = true,
      ROUTE_BODY(llm_ask_fields, struct llm_ask_body), .max_body = LIMIT_BODY_CHAT, .answer_type = "text/event-stream", .handler = chat_stream,
      .summary = "Ask a language model and get the answer as it comes", .tag = "LLM" },
    { .method = HTTP_GET, .path = "/sdk/llm/providers", .permission = PERM_LLM_PROVIDERS, .kind = ROUTE_LONG, .is_sdk = true,
      .answer = providers_answer, .handler = list_providers, .summary = "Configured providers of every kind", .tag = "LLM" },
    { .method = HTTP_GET, .path = "/sdk/llm/providers/chat", .permission = PERM_LLM_PROVIDERS, .kind = ROUTE_LONG, .is_sdk = true,
      .answer = chat_providers_answer, .handler = list_chat_providers, .summary = "Configured providers of language models", .tag = "LLM" },
    ROUTE_END,
};
