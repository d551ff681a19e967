/* POST /v1/chat/completions (platform.openai.com/docs/api-reference/chat/create). */
#include "api/api.h"
#include "api/llm_chat.h"
#include "api/routes.h"
#include "api/v1.h"
#include "api/v1_openai_form.h"
#include "llm/ask.h"

struct completion_body {
    struct llm_ask_body ask;
    bool is_streamed;
    struct stream_options { bool include_usage; } stream_options;
    int64_t n;
};

static const struct field stream_options_fields[] = {
    FIELD_BOOL(struct stream_options, include_usage, "include_usage", .help = "a last chunk with the usage"), FIELD_END,
};

static const struct field completion_fields[] = {
    FIELD_LIST(struct completion_body, ask.messages, "messages", llm_message_fields, struct llm_message_body, FIELD_REQUIRED, .min = 1,
               .max = LIMIT_MESSAGES),
    FIELD_STRING(struct completion_body, ask.model, "model", .max = 256, .help = "see GET /v1/models; absent or `default`: the default model"),
    FIELD_DOUBLE(struct completion_body, ask.temperature, "temperature", .max = 2,
                 .present_offset = offsetof(struct completion_body, ask.has_temperature)),
    FIELD_DOUBLE(struct completion_body, ask.top_p, "top_p", .max = 1, .present_offset = offsetof(struct completion_body, ask.has_top_p)),
    FIELD_INT(struct completion_body, ask.max_tokens, "max_tokens", .min = 1, .max = 1 << 24),
    FIELD_INT(struct completion_body, ask.max_completion_tokens, "max_completion_tokens", .min = 1, .max = 1 << 24,
              .present_offset = offsetof(struct completion_body, ask.has_max_completion_tokens), .help = "another name of max_tokens"),
    FIELD_ANY(struct completion_body, ask.stop, "stop", .help = "a text, or an array of texts, at which the answer ends"),
    FIELD_LIST(struct completion_body, ask.tools, "tools", llm_tool_fields, struct llm_tool_body, .max = LIMIT_TOOLS),
    FIELD_ANY(struct completion_body, ask.tool_choice, "tool_choice", .help = "auto, none, required, or {type, function: {name}}"),
    FIELD_OBJECT(struct completion_body, ask.response_format, "response_format",
                 .help = "{type: text | json_object | json_schema, json_schema: {name, schema}}"),
    FIELD_STRING(struct completion_body, ask.effort, "reasoning_effort", .max = LIMIT_NAME_CHARS, .help = "none, minimal, low, medium, high, ..."),
    FIELD_BOOL(struct completion_body, is_streamed, "stream"),
    FIELD_STRUCT(struct completion_body, stream_options, "stream_options", stream_options_fields),
    FIELD_INT(struct completion_body, n, "n", .min = 1, .max = 1, .def = 1, .help = "one answer a request"),
    FIELD_END,
};

static bool needs_long(const struct request *req)
{
    const struct completion_body *body = req->body;

    return !body->is_streamed || v1_waits(req, PROVIDER_CHAT, body->ask.model);
}

static int make_ask(struct request *req, const struct completion_body *body, struct llm_chat *chat, struct err *e)
{
    struct provider_choice whom = { 0 };
    int r = llm_ask_of(&body->ask, http_exchange_body_arena(req->exchange), chat->ask, e);

    if (r == 0)
        r = v1_find_model(req, PROVIDER_CHAT, body->ask.model, &whom, e);
    chat->provider = whom.provider;
    chat->ask->model = whom.model;
    if (!body->ask.has_temperature)
        chat->ask->temperature = -1;
    return r;
}

static int complete(struct request *req, struct response *res, struct err *e)
{
    const struct completion_body *body = req->body;
    const struct v1_openai_state state = { body->stream_options.include_usage };
    struct llm_ask *ask = ARENA_NEW(http_exchange_body_arena(req->exchange), struct llm_ask);
    struct llm_chat chat = { .ask = ask, .form = &v1_openai_form, .state = &state, .n_state = sizeof(state) };
    struct llm_outcome out = { 0 };
    int r = make_ask(req, body, &chat, e);

    if (r < 0)
        return r;
    if (body->is_streamed)
        return llm_chat_stream(req, res, &chat, e);
    r = llm_chat_whole(req, &chat, &out, e);
    if (r == 0)
        v1_openai_write(&res->json, &out);
    return r;
}

const struct route v1_openai_routes[] = {
    { .method = HTTP_POST, .path = "/v1/chat/completions", .permission = PERM_LLM_CHAT, .needs_long = needs_long, .is_sdk = true, .is_bare = true,
      ROUTE_BODY(completion_fields, struct completion_body), .max_body = LIMIT_BODY_CHAT, .answer = v1_openai_completion_shape, .may_stream = true,
      .error_form = &v1_openai_error, .handler = complete, .summary = "A chat in OpenAI's form", .tag = "Compatible" },
    ROUTE_END,
};
