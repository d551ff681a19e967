/* POST /v1/completions, the predecessor of chats (platform.openai.com/docs/api-reference/completions): the prompt
 * becomes a message of the user. */
#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "llm/request.h"

#include <string.h>

/* ---- the body ---- */

struct completions_body {
    struct llm_request_body request;
    struct json_value prompt;
    const char *suffix;
    bool is_streamed, echo;
    struct prompt_stream_options {
        bool include_usage;
    } stream_options;
    int64_t n, best_of;
};

static const struct field stream_options_fields[] = {
    FIELD_BOOL(struct prompt_stream_options, include_usage, "include_usage", .help = "a last chunk with the usage"),
    FIELD_END,
};

static const struct field completions_fields[] = {
    FIELD_ANY(struct completions_body, prompt, "prompt", FIELD_REQUIRED, .help = "a text, or an array of one text"),
    FIELD_STRING(struct completions_body, request.model, "model", .max = 256,
                 .help = "see GET /v1/models; absent or `default`: the default model"),
    FIELD_DOUBLE(struct completions_body, request.temperature, "temperature", .max = 2,
                 .present_offset = offsetof(struct completions_body, request.has_temperature)),
    FIELD_DOUBLE(struct completions_body, request.top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct completions_body, request.has_top_p)),
    FIELD_INT(struct completions_body, request.max_tokens, "max_tokens", .min = 1, .max = 1 << 24),
    FIELD_ANY(struct completions_body, request.stop, "stop",
              .help = "a text, or an array of texts, at which the answer ends"),
    FIELD_BOOL(struct completions_body, echo, "echo", .help = "the prompt stands in front of the answer"),
    FIELD_STRING(struct completions_body, suffix, "suffix", .max = LIMIT_BODY_CHAT, .help = "not taken"),
    FIELD_BOOL(struct completions_body, is_streamed, "stream"),
    FIELD_STRUCT(struct completions_body, stream_options, "stream_options", stream_options_fields),
    FIELD_INT(struct completions_body, n, "n", .min = 1, .max = 1, .def = 1, .help = "one answer a request"),
    FIELD_INT(struct completions_body, best_of, "best_of", .min = 1, .max = 1, .def = 1,
              .help = "one answer a request"),
    FIELD_END,
};

static int read_prompt(struct json_value prompt, const char **ret, struct err *e)
{
    struct json_iter it = json_iter(prompt);
    struct json_value text = prompt;

    if (json_type(prompt) == JSON_ARRAY && (json_length(prompt) != 1 || !json_next(&it, NULL, &text)))
        return err_add_field(e, "prompt", "must be one text a request, not an array of several");
    if (json_type(text) == JSON_INT || json_type(text) == JSON_ARRAY)
        return err_add_field(e, "prompt", "must be a text: tokens are not taken, each model has its own");
    *ret = json_cstr(text);
    return *ret ? 0 : err_add_field(e, "prompt", "must be a text without NUL characters, or an array of one");
}

static int make_request(struct request *req, struct completions_body *body, struct arena *a, struct llm_chat *chat,
                        const char **ret_prompt, struct err *e)
{
    struct llm_message_body message = { .role = "user", .content = body->prompt };
    struct provider_choice whom = { 0 };
    int r = read_prompt(body->prompt, ret_prompt, e), r_request;

    if (body->suffix && *body->suffix)
        r = err_add_field(e, "suffix", "is not taken: the models behind this interface do not fill in");
    body->request.messages = (struct field_list){ &message, 1 };
    r_request = r < 0 ? r : llm_request_of(&body->request, a, chat->request, e);
    if (r_request < 0)
        return r_request;
    r = v1_find_model(req, PROVIDER_CHAT, body->request.model, &whom, e);
    chat->provider = whom.provider;
    chat->request->model = whom.model;
    if (!body->request.has_temperature)
        chat->request->temperature = -1;
    return r;
}

/* ---- the answer ---- */

static const struct field choice_shape[] = {
    SHAPE_STRING("text"),
    SHAPE_INT("index"),
    SHAPE_ANY("logprobs", .flags = FIELD_NULLABLE),
    SHAPE_STRING("finish_reason", .flags = FIELD_NULLABLE, .help = "stop, length, content_filter"),
    FIELD_END,
};

static const struct field completions_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("object"),
    SHAPE_INT("created", .help = "seconds since 1970"),
    SHAPE_STRING("model"),
    SHAPE_LIST("choices", choice_shape),
    SHAPE_OBJECT("usage", v1_openai_usage_shape),
    FIELD_END,
};

static void write_head(struct json_writer *w, const char *uuid, int64_t created_ms, const char *model)
{
    char id[UUID_SIZE + 8];

    snprintf(id, sizeof(id), "cmpl-%s", uuid);
    json_add_string(w, "id", id);
    json_add_string(w, "object", "text_completion");
    json_add_int(w, "created", created_ms / 1000);
    json_add_string(w, "model", model);
    json_begin_array_as(w, "choices");
}

static void write_choice(struct json_writer *w, struct slice text, const char *finish_reason)
{
    json_begin_object(w);
    json_add_slice(w, "text", text);
    json_add_int(w, "index", 0);
    json_add_null(w, "logprobs");
    json_add_string(w, "finish_reason", finish_reason);
    json_end(w);
}

/* echo: the prompt, or "". */
struct completions_state {
    bool wants_usage;
    char echo[];
};

static void begin_chunk(struct json_writer *w, struct buf *out, const struct llm_progress *t)
{
    buf_add_str(out, "data: ");
    json_write_init(w, out);
    json_begin_object(w);
    write_head(w, t->uuid, t->began_wall_ms, t->model);
}

static void end_chunk(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_str(out, "\n\n");
}

static void emit_choice(struct buf *out, const struct llm_progress *t, struct slice text, const char *finish_reason)
{
    struct json_writer w;

    begin_chunk(&w, out, t);
    write_choice(&w, text, finish_reason);
    json_end(&w);
    end_chunk(&w, out);
}

static void emit_begin(struct buf *out, const struct llm_progress *t)
{
    const struct completions_state *state = t->state;

    if (*state->echo)
        emit_choice(out, t, slice_of(state->echo), NULL);
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    emit_choice(out, t, text, NULL);
}

static void emit_end(struct buf *out, const struct llm_progress *t)
{
    const struct completions_state *state = t->state;
    struct json_writer w;

    emit_choice(out, t, SLICE_LIT(""), llm_finish_name(t->answer->why));
    if (state->wants_usage) {
        begin_chunk(&w, out, t);
        json_end(&w);
        v1_openai_write_usage(&w, &t->answer->usage);
        end_chunk(&w, out);
    }
    buf_add_str(out, "data: [DONE]\n\n");
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    v1_openai_form.error(out, t, e);
}

static void write_completion(struct json_writer *w, const struct llm_progress *t)
{
    const struct completions_state *state = t->state;
    struct buf text;

    write_head(w, t->uuid, t->began_wall_ms, t->model);
    buf_init(&text, LIMIT_LLM_ANSWER + LIMIT_BODY_CHAT);
    buf_add_str(&text, state->echo);
    buf_add_slice(&text, buf_slice(&t->answer->text));
    write_choice(w, buf_slice(&text), llm_finish_name(t->answer->why));
    buf_clear(&text);
    json_end(w);
    v1_openai_write_usage(w, &t->answer->usage);
}

static const struct llm_form form = {
    .begin = emit_begin, .text = emit_text, .end = emit_end, .error = emit_error, .whole = write_completion
};

/* ---- the route ---- */

static bool needs_long(const struct request *req)
{
    const struct completions_body *body = req->body;

    return v1_waits(req, PROVIDER_CHAT, body->request.model);
}

static void set_state(struct llm_chat *chat, struct arena *a, const char *echo, bool wants_usage)
{
    size_t n = sizeof(struct completions_state) + strlen(echo) + 1;
    struct completions_state *state = arena_alloc(a, n);

    state->wants_usage = wants_usage;
    memcpy(state->echo, echo, strlen(echo) + 1);
    chat->state = state;
    chat->n_state = n;
}

static int complete(struct request *req, struct response *res, struct err *e)
{
    struct arena *a = http_exchange_body_arena(req->exchange);
    struct completions_body *body = ARENA_NEW(a, struct completions_body);
    struct llm_chat chat = { .request = ARENA_NEW(a, struct llm_request), .form = &form };
    const char *prompt = "";
    int r;

    *body = *(const struct completions_body *)req->body;
    r = make_request(req, body, a, &chat, &prompt, e);
    if (r < 0)
        return r;
    set_state(&chat, a, body->echo ? prompt : "", body->stream_options.include_usage);
    return body->is_streamed ? llm_chat_stream(req, res, &chat, e) : llm_chat_answer(req, res, &chat, e);
}

const struct route v1_completions_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/completions",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(completions_fields, struct completions_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = completions_shape,
      .may_stream = true,
      .error_form = &v1_openai_error,
      .handler = complete,
      .summary = "A text completion in OpenAI's older form",
      .tag = "Compatible" },
    ROUTE_END,
};
