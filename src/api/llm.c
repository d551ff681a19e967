/* Specification, "LLM"; decision D8. */
#include "api/api.h"
#include "api/embed.h"
#include "api/llm_form.h"
#include "api/routes.h"
#include "base/clock.h"
#include "llm/ask.h"
#include "llm/call.h"

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

static const struct field function_shape[] = { SHAPE_STRING("name"), SHAPE_STRING("arguments", .help = "JSON text"), FIELD_END };
static const struct field tool_call_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("type"), SHAPE_OBJECT("function", function_shape), FIELD_END };

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

/* ---- what all chats have in common ---- */

static void add_time_header(struct http_exchange *x, const char *name, int64_t us)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f", (double)MAX(us, (int64_t)0) / 1e3);
    http_response_header(x, name, text);
}

/* queue: from the head of the request to its handler; overhead: this service's own part of the rest. */
static void add_headers(struct http_exchange *x, const char *provider, int64_t handled_us, int64_t overhead_us)
{
    http_response_header(x, "x-hearth-provider", provider);
    add_time_header(x, "x-hearth-overhead-ms", overhead_us);
    add_time_header(x, "x-hearth-queue-ms", handled_us - x->request.arrived_us);
}

/* A provider's Retry-After goes on to the caller. */
static void keep_retry_after(struct http_exchange *x, const struct err *e, int64_t retry_after_ms)
{
    char text[32];

    if (retry_after_ms <= 0 || strcmp(e->code, "RATE_LIMIT") != 0)
        return;
    snprintf(text, sizeof(text), "%lld", (long long)((retry_after_ms + 999) / 1000));
    http_response_header(x, "retry-after", text);
}

static int make_plan(struct request *req, struct llm_ask *ask, bool is_streamed, struct arena *a, struct llm_plan *ret, struct err *e)
{
    const struct llm_ask_body *body = req->body;
    int r = llm_ask_of(body, req->arena, ask, e);

    ask->is_streamed = is_streamed;
    return r < 0 ? r : llm_plan_make(req->api->llm_accounts, body->provider, ask, a, &req->exchange->is_gone, ret, e);
}

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
        llm_answer_write_tools(answer, w, "tool_calls");
    json_end(w);
}

static int chat(struct request *req, struct response *res, struct err *e)
{
    int64_t handled_us = clock_mono_us();
    struct llm_plan *plan = ARENA_NEW(req->arena, struct llm_plan);
    struct llm_outcome out = { 0 };
    struct llm_ask ask = { 0 };
    int r = make_plan(req, &ask, false, req->arena, plan, e);

    if (r < 0)
        return r;
    r = llm_call(plan, req->api->settings, req->arena, &req->exchange->is_gone, &out, e);
    if (r < 0) {
        keep_retry_after(req->exchange, e, out.retry_after_ms);
        return r;
    }
    write_response(&res->json, &out);
    add_headers(req->exchange, out.provider, handled_us, clock_mono_us() - handled_us - out.upstream_us);
    return 0;
}

/* ---- POST /sdk/llm/chat/stream ---- */

struct streaming {
    struct http_exchange *exchange;
    struct deferred *deferred;
    int64_t handled_us;
};

static struct http_stream *start_stream(void *arg, const struct llm_told *t)
{
    struct streaming *s = arg;

    add_headers(s->exchange, t->provider, s->handled_us, t->began_us - s->handled_us);
    return deferred_events(s->deferred);
}

static void fail_stream(void *arg, int r, const struct err *e, int64_t retry_after_ms)
{
    struct streaming *s = arg;

    keep_retry_after(s->exchange, e, retry_after_ms);
    deferred_fail(s->deferred, r, e);
}

static const struct llm_relay_host host = { start_stream, fail_stream };

static int chat_stream(struct request *req, struct response *res, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_ask *ask = ARENA_NEW(req->arena, struct llm_ask);
    struct llm_plan *plan = ARENA_NEW(a, struct llm_plan);
    struct streaming *s = ARENA_NEW(a, struct streaming);
    int r;

    s->handled_us = clock_mono_us();
    if (!req->api->llm_relays)
        return err_set(e, -ENOTSUP, "NOT_SERVING", "Chats are streamed only while the service runs; start it with `hearth serve`");
    r = make_plan(req, ask, true, a, plan, e);
    if (r < 0)
        return r;
    s->exchange = req->exchange;
    s->deferred = request_defer(req, res);
    llm_relay_start(req->api->llm_relays, &(struct llm_relay_start){ .arena = TAKE(a), .plan = plan, .form = &llm_form_sdk, .host = &host,
                                                                     .host_arg = s, .exchange = s->exchange });
    return 0;
}

/* ---- GET /sdk/llm/providers ---- */

static void write_entries(struct request *req, struct json_writer *w, const char *name)
{
    size_t n;
    struct llm_seat **seats = llm_accounts_list(req->api->llm_accounts, req->arena, &n);

    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        struct llm_models models = { 0 };
        int r = llm_seat_models(seats[i], req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL);

        json_begin_object(w);
        json_add_string(w, "provider", seats[i]->account.name);
        json_begin_array_as(w, "models");
        for (size_t k = 0; r == 0 && k < models.n; k++) {
            json_begin_object(w);
            json_add_string(w, "id", models.items[k].id);
            json_add_string(w, "name", models.items[k].name);
            json_end(w);
        }
        json_end(w);
        json_add_bool(w, "active", i == 0);
        json_end(w);
    }
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    write_entries(req, &res->json, "llm");
    embed_write_providers(req, &res->json, "embedding");
    return 0;
}

static int list_chat_providers(struct request *req, struct response *res, struct err *e)
{
    write_entries(req, &res->json, "providers");
    return 0;
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
