#include "api/resources/llm_form.h"

const struct field llm_function_shape[] = { SHAPE_STRING("name"), SHAPE_STRING("arguments", .help = "JSON text"),
                                            FIELD_END };

void llm_write_metrics(struct json_writer *w, const struct llm_answer *answer, double duration_s)
{
    const struct llm_usage *usage = &answer->usage;

    json_begin_object_as(w, "metrics");
    json_add_int(w, "prompt_tokens", usage->prompt_tokens);
    json_add_int(w, "completion_tokens", usage->completion_tokens);
    json_add_int(w, "total_tokens", usage->prompt_tokens + usage->completion_tokens);
    json_add_double(w, "duration", duration_s);
    json_add_double(w, "outputTps", duration_s > 0 ? (double)usage->completion_tokens / duration_s : 0);
    if (usage->is_estimated)
        json_add_bool(w, "estimated", true);
    json_end(w);
}

/* ---- whole ---- */

static void write_response(struct json_writer *w, const struct llm_progress *t)
{
    const struct llm_answer *answer = t->answer;

    json_begin_object_as(w, "response");
    json_add_slice(w, "content", buf_slice(&answer->text));
    json_add_string(w, "provider", t->provider);
    json_add_string(w, "model", t->model);
    llm_write_metrics(w, answer, t->duration_s);
    json_add_string(w, "finish_reason", llm_finish_name(answer->why));
    if (answer->reasoning.n > 0)
        json_add_slice(w, "reasoning", buf_slice(&answer->reasoning));
    if (answer->n_tools > 0)
        llm_answer_write_tools(answer, w, "tool_calls", false);
    json_end(w);
}

/* ---- streamed ---- */

static void begin_chunk(struct json_writer *w, struct buf *out, const struct llm_progress *t, struct slice text,
                        bool is_last)
{
    buf_add_str(out, "data: ");
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, "uuid", t->uuid);
    json_add_string(w, "type", "textResponseChunk");
    json_add_slice(w, "textResponse", text);
    json_add_bool(w, "close", is_last);
    json_add_bool(w, "error", false);
}

static void end_chunk(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_str(out, "\n\n");
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct json_writer w;

    begin_chunk(&w, out, t, text, false);
    end_chunk(&w, out);
}

/* Reasoning is separate from textResponse, so clients that only append textResponse miss no text of the answer. */
static void emit_reasoning(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct json_writer w;

    begin_chunk(&w, out, t, SLICE_LIT(""), false);
    json_add_slice(&w, "reasoning", text);
    end_chunk(&w, out);
}

static void emit_end(struct buf *out, const struct llm_progress *t)
{
    struct json_writer w;

    begin_chunk(&w, out, t, SLICE_LIT(""), true);
    llm_write_metrics(&w, t->answer, t->duration_s);
    json_add_string(&w, "provider", t->provider);
    json_add_string(&w, "model", t->model);
    json_add_string(&w, "finish_reason", llm_finish_name(t->answer->why));
    if (t->answer->n_tools > 0)
        llm_answer_write_tools(t->answer, &w, "tool_calls", false);
    end_chunk(&w, out);
    buf_add_str(out, "data: [DONE]\n\n");
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    struct json_writer w;

    buf_add_str(out, "event: error\ndata: ");
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "error", e->text);
    json_add_string(&w, "code", "LLM_STREAM_ERROR");
    end_chunk(&w, out);
}

const struct llm_form llm_form_sdk = {
    .text = emit_text, .reasoning = emit_reasoning, .end = emit_end, .error = emit_error, .whole = write_response
};
