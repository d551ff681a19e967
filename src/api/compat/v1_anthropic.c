/* POST /v1/messages and its count_tokens (docs.anthropic.com/en/api/messages). */
#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_anthropic_body.h"
#include "api/compat/v1_anthropic_form.h"
#include "base/limits.h"

static const struct field count_shape[] = {
    SHAPE_INT("input_tokens"),
    SHAPE_BOOL("estimated", .help = "always: about four bytes of text a token, whatever the model"),
    FIELD_END,
};

static bool needs_long(const struct request *req)
{
    const struct v1_messages_body *body = req->body;

    return v1_anthropic_names_addresses(body) || v1_waits(req, PROVIDER_CHAT, body->model);
}

static int answer_message(struct request *req, struct response *res, struct err *e)
{
    const struct v1_messages_body *body = req->body;
    const struct v1_anthropic_state state = { 0 };
    struct arena *a = http_exchange_body_arena(req->exchange);
    struct llm_chat chat = { .request = ARENA_NEW(a, struct llm_request),
                             .form = &v1_anthropic_form,
                             .state = &state,
                             .n_state = sizeof(state) };
    struct provider_choice whom = { 0 };
    int r = v1_anthropic_request(body, a, chat.request, e);

    if (r == 0)
        r = v1_find_model(req, PROVIDER_CHAT, body->model, &whom, e);
    if (r < 0)
        return r;
    chat.provider = whom.provider;
    chat.request->model = whom.model;
    v1_anthropic_add_id(req->exchange);
    return body->is_streamed ? llm_chat_stream(req, res, &chat, e) : llm_chat_answer(req, res, &chat, e);
}

static int count_tokens(struct request *req, struct response *res, struct err *e)
{
    struct llm_request request = { 0 };
    int r = v1_anthropic_request(req->body, req->arena, &request, e);

    if (r < 0)
        return r;
    v1_anthropic_add_id(req->exchange);
    json_add_int(&res->json, "input_tokens", llm_prompt_tokens(&request));
    json_add_bool(&res->json, "estimated", true);
    return 0;
}

const struct route v1_anthropic_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/messages",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .tries_loop = true,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(v1_messages_fields, struct v1_messages_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = v1_anthropic_message_shape,
      .may_stream = true,
      .error_form = &v1_anthropic_error,
      .handler = answer_message,
      .summary = "A chat in Anthropic's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/v1/messages/count_tokens",
      .permission = PERM_LLM_CHAT,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(v1_count_fields, struct v1_messages_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = count_shape,
      .error_form = &v1_anthropic_error,
      .handler = count_tokens,
      .summary = "How many tokens a chat has, by estimate",
      .tag = "Compatible" },
    ROUTE_END,
};
