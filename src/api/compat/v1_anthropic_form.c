#include "api/compat/v1_anthropic_form.h"

#include "api/compat/v1.h"

#include <string.h>

/* ---- shapes ---- */

static const struct field block_shape[] = {
    SHAPE_STRING("type", .help = "text, thinking, redacted_thinking, tool_use"),
    SHAPE_STRING("text", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("thinking", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("signature", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("data", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("id", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("name", .flags = FIELD_OPTIONAL),
    SHAPE_OBJECT("input", NULL, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field usage_shape[] = {
    SHAPE_INT("input_tokens"),
    SHAPE_INT("output_tokens"),
    SHAPE_BOOL("estimated", .flags = FIELD_OPTIONAL, .help = "the provider did not count"),
    FIELD_END,
};

const struct field v1_anthropic_message_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("type"),
    SHAPE_STRING("role"),
    SHAPE_STRING("model"),
    SHAPE_LIST("content", block_shape),
    SHAPE_STRING("stop_reason", .help = "end_turn, max_tokens, tool_use, refusal"),
    SHAPE_STRING("stop_sequence", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("usage", usage_shape),
    FIELD_END,
};

/* ---- whole ---- */

static const char *stop_reason(enum llm_finish why)
{
    static const char *const reasons[] = {
        [LLM_FINISH_STOP] = "end_turn",
        [LLM_FINISH_LENGTH] = "max_tokens",
        [LLM_FINISH_TOOLS] = "tool_use",
        [LLM_FINISH_FILTER] = "refusal",
    };

    return reasons[why];
}

static void write_head(struct json_writer *w, const char *uuid, const char *model)
{
    char id[UUID_SIZE + 8];

    snprintf(id, sizeof(id), "msg_%s", uuid);
    json_add_string(w, "id", id);
    json_add_string(w, "type", "message");
    json_add_string(w, "role", "assistant");
    json_add_string(w, "model", model);
}

static void write_usage(struct json_writer *w, const struct llm_usage *usage)
{
    json_begin_object_as(w, "usage");
    json_add_int(w, "input_tokens", usage->prompt_tokens);
    json_add_int(w, "output_tokens", usage->completion_tokens);
    if (usage->is_estimated)
        json_add_bool(w, "estimated", true);
    json_end(w);
}

/* A whole block, or the beginning of a block in a stream: then its content is empty. Thoughts without a signature get
 * an empty one: the member is required, and clients that send it back lose nothing. */
static void write_text_block(struct json_writer *w, const char *name, const char *type, struct slice text,
                             struct slice signature)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", type);
    json_add_slice(w, type, text); /* "text" and "thinking" are also the members' names */
    if (strcmp(type, "thinking") == 0)
        json_add_slice(w, "signature", signature);
    json_end(w);
}

static void write_hidden_block(struct json_writer *w, const char *name, struct slice data)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", "redacted_thinking");
    json_add_slice(w, "data", data);
    json_end(w);
}

static void begin_tool_block(struct json_writer *w, const char *name, const char *id, const char *tool)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", "tool_use");
    json_add_string(w, "id", id ? id : "");
    json_add_string(w, "name", tool ? tool : "");
}

static void write_tool_block(struct json_writer *w, const struct llm_answer_tool *tool)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    begin_tool_block(w, NULL, tool->id, tool->name);
    llm_write_arguments(w, "input", buf_slice(&tool->arguments), a);
    json_end(w);
}

static void write_piece(struct json_writer *w, const struct llm_answer *answer, const struct llm_answer_piece *piece)
{
    const struct slice signature = llm_answer_signature(answer, piece);

    switch (piece->kind) {
    case LLM_PIECE_THOUGHT:
        write_text_block(w, NULL, "thinking", llm_answer_text(answer, piece), signature);
        break;
    case LLM_PIECE_HIDDEN:
        write_hidden_block(w, NULL, signature);
        break;
    case LLM_PIECE_BLOCK:
        write_text_block(w, NULL, "text", llm_answer_text(answer, piece), signature);
        break;
    case LLM_PIECE_CALL:
        write_tool_block(w, &answer->tools[piece->at]);
        break;
    }
}

static void write_message(struct json_writer *w, const struct llm_progress *t)
{
    const struct llm_answer *answer = t->answer;

    write_head(w, t->uuid, t->model);
    json_begin_array_as(w, "content");
    for (size_t i = 0; i < answer->n_pieces; i++)
        write_piece(w, answer, &answer->pieces[i]);
    json_end(w);
    json_add_string(w, "stop_reason", stop_reason(answer->why));
    json_add_null(w, "stop_sequence");
    write_usage(w, &answer->usage);
}

/* ---- streamed: named events, one block after the other ---- */

static void begin_event(struct json_writer *w, struct buf *out, const char *type)
{
    buf_printf(out, "event: %s\ndata: ", type);
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, "type", type);
}

static void end_event(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_str(out, "\n\n");
}

static void emit_begin(struct buf *out, const struct llm_progress *t)
{
    const struct llm_usage usage = { .prompt_tokens = t->prompt_tokens };
    struct json_writer w;

    begin_event(&w, out, "message_start");
    json_begin_object_as(&w, "message");
    write_head(&w, t->uuid, t->model);
    json_begin_array_as(&w, "content");
    json_end(&w);
    json_add_null(&w, "stop_reason");
    json_add_null(&w, "stop_sequence");
    write_usage(&w, &usage); /* an estimate; message_delta has the counted numbers */
    json_end(&w);
    end_event(&w, out);
    begin_event(&w, out, "ping");
    end_event(&w, out);
}

static void begin_block_event(struct json_writer *w, struct buf *out, const char *type, int64_t index)
{
    begin_event(w, out, type);
    json_add_int(w, "index", index);
}

static void close_block(struct buf *out, struct v1_anthropic_state *s)
{
    struct json_writer w;

    if (s->open == V1_BLOCK_NONE)
        return;
    begin_block_event(&w, out, "content_block_stop", s->n_blocks - 1);
    end_event(&w, out);
    s->open = V1_BLOCK_NONE;
}

static void open_text(struct buf *out, struct v1_anthropic_state *s, enum v1_anthropic_block kind, const char *type)
{
    struct json_writer w;

    if (s->open == kind)
        return;
    close_block(out, s);
    begin_block_event(&w, out, "content_block_start", s->n_blocks++);
    write_text_block(&w, "content_block", type, SLICE_LIT(""), SLICE_LIT(""));
    end_event(&w, out);
    s->open = kind;
}

static void open_tool(struct buf *out, struct v1_anthropic_state *s, size_t index, const char *id, const char *name)
{
    struct json_writer w;

    close_block(out, s);
    begin_block_event(&w, out, "content_block_start", s->n_blocks++);
    begin_tool_block(&w, "content_block", id, name);
    json_add_raw(&w, "input", "{}");
    json_end(&w);
    end_event(&w, out);
    s->open = V1_BLOCK_TOOL;
    s->block_of[index] = s->n_blocks;
}

static void emit_delta(struct buf *out, int64_t block, const char *type, const char *member, struct slice text)
{
    struct json_writer w;

    if (text.n == 0)
        return;
    begin_block_event(&w, out, "content_block_delta", block);
    json_begin_object_as(&w, "delta");
    json_add_string(&w, "type", type);
    json_add_slice(&w, member, text);
    json_end(&w);
    end_event(&w, out);
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct v1_anthropic_state *s = t->state;

    open_text(out, s, V1_BLOCK_TEXT, "text");
    emit_delta(out, s->n_blocks - 1, "text_delta", "text", text);
}

static void emit_reasoning(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct v1_anthropic_state *s = t->state;

    open_text(out, s, V1_BLOCK_THINKING, "thinking");
    emit_delta(out, s->n_blocks - 1, "thinking_delta", "thinking", text);
}

static void emit_tool(struct buf *out, const struct llm_progress *t, size_t index, const char *id, const char *name,
                      struct slice arguments)
{
    struct v1_anthropic_state *s = t->state;

    if (s->block_of[index] == 0)
        open_tool(out, s, index, id, name);
    emit_delta(out, s->block_of[index] - 1, "input_json_delta", "partial_json", arguments);
}

static void emit_hidden(struct buf *out, struct v1_anthropic_state *s, struct slice data)
{
    struct json_writer w;

    close_block(out, s);
    begin_block_event(&w, out, "content_block_start", s->n_blocks++);
    write_hidden_block(&w, "content_block", data);
    end_event(&w, out);
    s->open = V1_BLOCK_THINKING;
    close_block(out, s);
}

/* A signature ends its block, including a block whose text the model does not reveal. */
static void emit_signature(struct buf *out, const struct llm_progress *t, bool is_hidden, struct slice signature)
{
    struct v1_anthropic_state *s = t->state;

    if (is_hidden) {
        emit_hidden(out, s, signature);
        return;
    }
    open_text(out, s, V1_BLOCK_THINKING, "thinking");
    emit_delta(out, s->n_blocks - 1, "signature_delta", "signature", signature);
    close_block(out, s);
}

static void emit_end(struct buf *out, const struct llm_progress *t)
{
    struct json_writer w;

    close_block(out, t->state);
    begin_event(&w, out, "message_delta");
    json_begin_object_as(&w, "delta");
    json_add_string(&w, "stop_reason", stop_reason(t->answer->why));
    json_add_null(&w, "stop_sequence");
    json_end(&w);
    write_usage(&w, &t->answer->usage);
    end_event(&w, out);
    begin_event(&w, out, "message_stop");
    end_event(&w, out);
}

/* ---- errors ---- */

static const struct field fault_shape[] = { SHAPE_STRING("type"), SHAPE_STRING("message"), V1_ERROR_DETAILS,
                                            FIELD_END };
static const struct field error_shape[] = {
    SHAPE_STRING("type"),
    SHAPE_OBJECT("error", fault_shape),
    SHAPE_STRING("request_id", .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {
        { 401, "authentication_error" }, { 403, "permission_error" }, { 404, "not_found_error" },
        { 413, "request_too_large" },    { 429, "rate_limit_error" }, { 503, "overloaded_error" },
        { 504, "timeout_error" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].status == status)
            return types[i].type;
    return status < 500 ? "invalid_request_error" : "api_error";
}

static void write_fault(struct json_writer *w, const struct http_exchange *x, int status, const struct err *e)
{
    json_begin_object_as(w, "error");
    json_add_string(w, "type", type_of(status));
    json_add_string(w, "message", v1_error_text(x, e));
    v1_write_error_details(w, e);
    json_end(w);
}

void v1_anthropic_add_id(struct http_exchange *x)
{
    for (size_t i = 0; i < x->response.n_headers; i++)
        if (strcmp(x->response.headers[i].name, "request-id") == 0)
            return;
    http_response_header(x, "request-id", x->request.id);
}

static int write_error(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    status = v1_error_status(status, e);
    json_add_string(w, "type", "error");
    write_fault(w, x, status, e);
    json_add_string(w, "request_id", x->request.id);
    v1_anthropic_add_id(x);
    return status;
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    struct json_writer w;

    begin_event(&w, out, "error");
    write_fault(&w, NULL, 500, e);
    end_event(&w, out);
}

const struct error_form v1_anthropic_error = { .name = "AnthropicError", .answer = error_shape, .write = write_error };

const struct llm_form v1_anthropic_form = {
    .begin = emit_begin,
    .text = emit_text,
    .reasoning = emit_reasoning,
    .tool = emit_tool,
    .signature = emit_signature,
    .end = emit_end,
    .error = emit_error,
    .whole = write_message,
};
