#include "api/compat/v1_openai_form.h"

#include "api/resources/llm_form.h"
#include "api/compat/v1.h"

#include <ctype.h>
#include <string.h>

/* ---- shapes ---- */

static const struct field tool_call_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("type"),
                                                SHAPE_OBJECT("function", llm_function_shape),
                                                SHAPE_OBJECT("extra_content", NULL, .flags = FIELD_OPTIONAL),
                                                FIELD_END };

static const struct field thought_shape[] = {
    SHAPE_STRING("type", .help = "thinking, redacted_thinking"),
    SHAPE_STRING("thinking", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("signature", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("data", .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field message_shape[] = {
    SHAPE_STRING("role"),
    SHAPE_STRING("content", .flags = FIELD_NULLABLE),
    SHAPE_STRING("refusal", .flags = FIELD_NULLABLE),
    SHAPE_STRING("reasoning_content", .flags = FIELD_OPTIONAL),
    SHAPE_LIST("thinking_blocks", thought_shape, .flags = FIELD_OPTIONAL, .help = "to be sent back as they are"),
    SHAPE_LIST("tool_calls", tool_call_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field choice_shape[] = {
    SHAPE_INT("index"),
    SHAPE_OBJECT("message", message_shape),
    SHAPE_ANY("logprobs", .flags = FIELD_NULLABLE),
    SHAPE_STRING("finish_reason", .help = "stop, length, tool_calls, content_filter"),
    FIELD_END,
};

const struct field v1_openai_usage_shape[] = {
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("completion_tokens"),
    SHAPE_INT("total_tokens"),
    SHAPE_BOOL("estimated", .flags = FIELD_OPTIONAL, .help = "the provider did not count"),
    FIELD_END,
};

const struct field v1_openai_completion_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("object"),
    SHAPE_INT("created", .help = "seconds since 1970"),
    SHAPE_STRING("model"),
    SHAPE_LIST("choices", choice_shape),
    SHAPE_OBJECT("usage", v1_openai_usage_shape),
    FIELD_END,
};

/* ---- whole ---- */

static void write_head(struct json_writer *w, const char *uuid, const char *object, int64_t created_ms,
                       const char *model)
{
    char id[UUID_SIZE + 16];

    snprintf(id, sizeof(id), "chatcmpl-%s", uuid);
    json_add_string(w, "id", id);
    json_add_string(w, "object", object);
    json_add_int(w, "created", created_ms / 1000);
    json_add_string(w, "model", model);
}

void v1_openai_write_usage(struct json_writer *w, const struct llm_usage *usage)
{
    json_begin_object_as(w, "usage");
    json_add_int(w, "prompt_tokens", usage->prompt_tokens);
    json_add_int(w, "completion_tokens", usage->completion_tokens);
    json_add_int(w, "total_tokens", usage->prompt_tokens + usage->completion_tokens);
    if (usage->is_estimated)
        json_add_bool(w, "estimated", true);
    json_end(w);
}

/* Thoughts with the name and form of LiteLLM (docs.litellm.ai/docs/reasoning_content): clients send back all members of
 * an assistant's message. */
static void write_thoughts(struct json_writer *w, const struct llm_answer *answer)
{
    json_begin_array_as(w, "thinking_blocks");
    for (size_t i = 0; i < answer->n_pieces; i++) {
        const struct llm_answer_piece *piece = &answer->pieces[i];
        bool is_hidden = piece->kind == LLM_PIECE_HIDDEN;

        if (piece->n_signature == 0)
            continue;
        json_begin_object(w);
        json_add_string(w, "type", is_hidden ? "redacted_thinking" : "thinking");
        if (!is_hidden)
            json_add_slice(w, "thinking", llm_answer_text(answer, piece));
        json_add_slice(w, is_hidden ? "data" : "signature", llm_answer_signature(answer, piece));
        json_end(w);
    }
    json_end(w);
}

static bool has_signed_thoughts(const struct llm_answer *answer)
{
    for (size_t i = 0; i < answer->n_pieces; i++)
        if (answer->pieces[i].n_signature > 0)
            return true;
    return false;
}

static void write_message(struct json_writer *w, const struct llm_answer *answer)
{
    json_begin_object_as(w, "message");
    json_add_string(w, "role", "assistant");
    if (answer->text.n == 0 && answer->n_tools > 0)
        json_add_null(w, "content");
    else
        json_add_slice(w, "content", buf_slice(&answer->text));
    json_add_null(w, "refusal");
    if (answer->reasoning.n > 0)
        json_add_slice(w, "reasoning_content", buf_slice(&answer->reasoning));
    if (has_signed_thoughts(answer))
        write_thoughts(w, answer);
    if (answer->n_tools > 0)
        llm_answer_write_tools(answer, w, "tool_calls", true);
    json_end(w);
}

static void write_completion(struct json_writer *w, const struct llm_progress *t)
{
    write_head(w, t->uuid, "chat.completion", t->began_wall_ms, t->model);
    json_begin_array_as(w, "choices");
    json_begin_object(w);
    json_add_int(w, "index", 0);
    write_message(w, t->answer);
    json_add_null(w, "logprobs");
    json_add_string(w, "finish_reason", llm_finish_name(t->answer->why));
    json_end(w);
    json_end(w);
    v1_openai_write_usage(w, &t->answer->usage);
}

/* ---- streamed: one chunk per event, without a name ---- */

static void begin_chunk(struct json_writer *w, struct buf *out, const struct llm_progress *t)
{
    buf_add_str(out, "data: ");
    json_write_init(w, out);
    json_begin_object(w);
    write_head(w, t->uuid, "chat.completion.chunk", t->began_wall_ms, t->model);
    json_begin_array_as(w, "choices");
}

static void end_event(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_str(out, "\n\n");
}

static void begin_delta(struct json_writer *w, struct buf *out, const struct llm_progress *t)
{
    begin_chunk(w, out, t);
    json_begin_object(w);
    json_add_int(w, "index", 0);
    json_begin_object_as(w, "delta");
}

static void end_delta(struct json_writer *w, struct buf *out, const char *finish_reason)
{
    json_end(w);
    json_add_null(w, "logprobs");
    json_add_string(w, "finish_reason", finish_reason);
    json_end(w);
    json_end(w);
    end_event(w, out);
}

static void emit_begin(struct buf *out, const struct llm_progress *t)
{
    struct json_writer w;

    begin_delta(&w, out, t);
    json_add_string(&w, "role", "assistant");
    json_add_string(&w, "content", "");
    end_delta(&w, out, NULL);
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct json_writer w;

    begin_delta(&w, out, t);
    json_add_slice(&w, "content", text);
    end_delta(&w, out, NULL);
}

static void emit_reasoning(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct json_writer w;

    begin_delta(&w, out, t);
    json_add_slice(&w, "reasoning_content", text);
    end_delta(&w, out, NULL);
}

/* Only the first part of a call has name, id and type. */
static void emit_tool(struct buf *out, const struct llm_progress *t, size_t index, const char *id, const char *name,
                      struct slice arguments)
{
    struct json_writer w;

    begin_delta(&w, out, t);
    json_begin_array_as(&w, "tool_calls");
    json_begin_object(&w);
    json_add_int(&w, "index", (int64_t)index);
    if (id)
        json_add_string(&w, "id", id);
    if (name)
        json_add_string(&w, "type", "function");
    json_begin_object_as(&w, "function");
    if (name)
        json_add_string(&w, "name", name);
    json_add_slice(&w, "arguments", arguments);
    json_end(&w);
    json_end(&w);
    json_end(&w);
    end_delta(&w, out, NULL);
}

/* A separate delta with empty arguments, because clients concatenate the arguments of all deltas unchecked. */
static void emit_extra(struct buf *out, const struct llm_progress *t, size_t index, struct slice extra)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_writer w;

    begin_delta(&w, out, t);
    json_begin_array_as(&w, "tool_calls");
    json_begin_object(&w);
    json_add_int(&w, "index", (int64_t)index);
    json_add_raw(&w, "extra_content", arena_slicedup(a, extra));
    json_begin_object_as(&w, "function");
    json_add_string(&w, "arguments", "");
    json_end(&w);
    json_end(&w);
    json_end(&w);
    end_delta(&w, out, NULL);
}

/* All thoughts in one delta, because clients keep only the last value of a member that they do not know. */
static void emit_thoughts(struct buf *out, const struct llm_progress *t)
{
    struct json_writer w;

    begin_delta(&w, out, t);
    write_thoughts(&w, t->answer);
    end_delta(&w, out, NULL);
}

static void emit_end(struct buf *out, const struct llm_progress *t)
{
    const struct v1_openai_state *state = t->state;
    struct json_writer w;

    if (has_signed_thoughts(t->answer))
        emit_thoughts(out, t);
    begin_delta(&w, out, t);
    end_delta(&w, out, llm_finish_name(t->answer->why));
    if (state->wants_usage) {
        begin_chunk(&w, out, t);
        json_end(&w);
        v1_openai_write_usage(&w, &t->answer->usage);
        end_event(&w, out);
    }
    buf_add_str(out, "data: [DONE]\n\n");
}

/* ---- errors ---- */

static const struct field fault_shape[] = {
    SHAPE_STRING("message"),
    SHAPE_STRING("type"),
    SHAPE_STRING("param", .flags = FIELD_NULLABLE, .help = "the member that breaks its rule"),
    SHAPE_STRING("code"),
    V1_ERROR_DETAILS,
    FIELD_END,
};
static const struct field error_shape[] = { SHAPE_OBJECT("error", fault_shape), FIELD_END };

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {
        { 401, "authentication_error" },
        { 403, "permission_error" },
        { 429, "rate_limit_error" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].status == status)
            return types[i].type;
    return status < 500 ? "invalid_request_error" : "server_error";
}

/* The codes that clients compare with; all other errors get this service's code in lower case. */
static void write_code(struct json_writer *w, int status, const struct err *e)
{
    static const struct {
        const char *code, *theirs;
    } codes[] = {
        { "MISSING_APP_ID", "invalid_api_key" },
        { "INVALID_APP_ID", "invalid_api_key" },
        { "INVALID_MODEL", "model_not_found" },
        { "RATE_LIMIT", "rate_limit_exceeded" },
    };
    char lower[sizeof(e->code)];
    size_t n = 0;

    for (; e->code[n]; n++)
        lower[n] = (char)tolower((unsigned char)e->code[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (strcmp(codes[i].code, e->code) == 0)
            snprintf(lower, sizeof(lower), "%s", codes[i].theirs);
    json_add_string(w, "code",
                    status == 404 && strcmp(e->code, "PROVIDER_UNAVAILABLE") == 0 ? "model_not_found" : lower);
}

static void write_fault(struct json_writer *w, const struct http_exchange *x, int status, const struct err *e)
{
    json_begin_object_as(w, "error");
    json_add_string(w, "message", v1_error_text(x, e));
    json_add_string(w, "type", type_of(status));
    json_add_string(w, "param", e->n_fields > 0 ? e->fields[0].field : NULL);
    write_code(w, status, e);
    v1_write_error_details(w, e);
    json_end(w);
}

static int write_error(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    status = v1_error_status(status, e);
    write_fault(w, x, status, e);
    return status;
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    struct json_writer w;

    buf_add_str(out, "data: ");
    json_write_init(&w, out);
    json_begin_object(&w);
    write_fault(&w, NULL, 500, e);
    end_event(&w, out);
}

const struct error_form v1_openai_error = { .name = "OpenAIError", .answer = error_shape, .write = write_error };

const struct llm_form v1_openai_form = {
    .begin = emit_begin,
    .text = emit_text,
    .reasoning = emit_reasoning,
    .tool = emit_tool,
    .extra = emit_extra,
    .end = emit_end,
    .error = emit_error,
    .whole = write_completion,
    .keeps_thoughts = true,
};
