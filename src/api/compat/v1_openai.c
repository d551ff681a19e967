/* POST /v1/chat/completions (platform.openai.com/docs/api-reference/chat/create). */
#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "llm/request.h"

struct completion_body {
    struct llm_request_body request;
    bool is_streamed;
    struct stream_options {
        bool include_usage;
    } stream_options;
    int64_t n;
};

static const struct field stream_options_fields[] = {
    FIELD_BOOL(struct stream_options, include_usage, "include_usage", .help = "a last chunk with the usage"),
    FIELD_END,
};

static const struct field completion_fields[] = {
    FIELD_LIST(struct completion_body, request.messages, "messages", llm_message_fields, struct llm_message_body,
               FIELD_REQUIRED, .min = 1, .max = LIMIT_MESSAGES),
    FIELD_STRING(struct completion_body, request.model, "model", .max = 256,
                 .help = "see GET /v1/models; absent or `default`: the default model"),
    FIELD_DOUBLE(struct completion_body, request.temperature, "temperature", .max = 2,
                 .present_offset = offsetof(struct completion_body, request.has_temperature)),
    FIELD_DOUBLE(struct completion_body, request.top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct completion_body, request.has_top_p)),
    FIELD_INT(struct completion_body, request.max_tokens, "max_tokens", .min = 1, .max = 1 << 24),
    FIELD_INT(struct completion_body, request.max_completion_tokens, "max_completion_tokens", .min = 1, .max = 1 << 24,
              .present_offset = offsetof(struct completion_body, request.has_max_completion_tokens),
              .help = "another name of max_tokens"),
    FIELD_ANY(struct completion_body, request.stop, "stop",
              .help = "a text, or an array of texts, at which the answer ends"),
    FIELD_LIST(struct completion_body, request.tools, "tools", llm_tool_fields, struct llm_tool_body,
               .max = LIMIT_TOOLS),
    FIELD_ANY(struct completion_body, request.tool_choice, "tool_choice",
              .help = "auto, none, required, or {type, function: {name}}"),
    FIELD_OBJECT(struct completion_body, request.response_format, "response_format",
                 .help = "{type: text | json_object | json_schema, json_schema: {name, schema}}"),
    FIELD_STRING(struct completion_body, request.effort, "reasoning_effort", .max = LIMIT_NAME_CHARS,
                 .help = "none, minimal, low, medium, high, ..."),
    FIELD_BOOL(struct completion_body, is_streamed, "stream"),
    FIELD_STRUCT(struct completion_body, stream_options, "stream_options", stream_options_fields),
    FIELD_INT(struct completion_body, n, "n", .min = 1, .max = 1, .def = 1, .help = "one answer a request"),
    FIELD_END,
};

static bool needs_long(const struct request *req)
{
    const struct completion_body *body = req->body;

    return llm_messages_name_addresses(&body->request.messages) || v1_waits(req, PROVIDER_CHAT, body->request.model);
}

static int make_request(struct request *req, const struct completion_body *body, struct llm_chat *chat, struct err *e)
{
    struct provider_choice whom = { 0 };
    int r = llm_request_of(&body->request, http_exchange_body_arena(req->exchange), chat->request, e);

    if (r == 0)
        r = v1_find_model(req, PROVIDER_CHAT, body->request.model, &whom, e);
    chat->provider = whom.provider;
    chat->request->model = whom.model;
    if (!body->request.has_temperature)
        chat->request->temperature = -1;
    return r;
}

static int complete(struct request *req, struct response *res, struct err *e)
{
    const struct completion_body *body = req->body;
    const struct v1_openai_state state = { body->stream_options.include_usage };
    struct llm_request *request = ARENA_NEW(http_exchange_body_arena(req->exchange), struct llm_request);
    struct llm_chat chat = { .request = request, .form = &v1_openai_form, .state = &state, .n_state = sizeof(state) };
    int r = make_request(req, body, &chat, e);

    if (r < 0)
        return r;
    return body->is_streamed ? llm_chat_stream(req, res, &chat, e) : llm_chat_answer(req, res, &chat, e);
}

const struct route v1_openai_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/chat/completions",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .tries_loop = true,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(completion_fields, struct completion_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = v1_openai_completion_shape,
      .may_stream = true,
      .error_form = &v1_openai_error,
      .handler = complete,
      .summary = "A chat in OpenAI's form",
      .tag = "Compatible" },
    ROUTE_END,
};
