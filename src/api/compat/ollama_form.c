#include "api/compat/ollama_form.h"

#include "api/compat/v1.h"
#include "base/clock.h"

#include <string.h>

enum { NS_A_US = 1000 };

/* ---- shapes ---- */

static const struct field function_shape[] = { SHAPE_INT("index"), SHAPE_STRING("name"),
                                               SHAPE_OBJECT("arguments", NULL), FIELD_END };
static const struct field call_shape[] = { SHAPE_STRING("id"), SHAPE_OBJECT("function", function_shape), FIELD_END };

static const struct field message_shape[] = {
    SHAPE_STRING("role"),
    SHAPE_STRING("content"),
    SHAPE_STRING("thinking", .flags = FIELD_OPTIONAL),
    SHAPE_LIST("tool_calls", call_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

/* Times are nanoseconds. */
#define ANSWER_SHAPE(member)                                                                                           \
    SHAPE_STRING("model"), SHAPE_TIME("created_at"), member, SHAPE_BOOL("done"),                                       \
        SHAPE_STRING("done_reason", .help = "stop, length, content_filter; load, unload when nothing was asked"),      \
        SHAPE_INT("total_duration", .flags = FIELD_OPTIONAL, .help = "nanoseconds"),                                   \
        SHAPE_INT("load_duration", .flags = FIELD_OPTIONAL), SHAPE_INT("prompt_eval_count", .flags = FIELD_OPTIONAL),  \
        SHAPE_INT("prompt_eval_duration", .flags = FIELD_OPTIONAL), SHAPE_INT("eval_count", .flags = FIELD_OPTIONAL),  \
        SHAPE_INT("eval_duration", .flags = FIELD_OPTIONAL)

const struct field ollama_chat_shape[] = { ANSWER_SHAPE(SHAPE_OBJECT("message", message_shape)), FIELD_END };

const struct field ollama_generate_shape[] = {
    ANSWER_SHAPE(SHAPE_STRING("response")),
    SHAPE_STRING("thinking", .flags = FIELD_OPTIONAL),
    FIELD_END,
};

/* ---- shared by lines and whole answers ---- */

static void write_head(struct json_writer *w, const char *model)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    json_add_string(w, "model", model);
    json_add_string(w, "created_at", now);
}

static void write_call(struct json_writer *w, struct arena *a, const struct llm_answer_tool *tool, size_t index)
{
    json_begin_object(w);
    json_add_string(w, "id", tool->id ? tool->id : "");
    json_begin_object_as(w, "function");
    json_add_int(w, "index", (int64_t)index);
    json_add_string(w, "name", tool->name ? tool->name : "");
    llm_write_arguments(w, "arguments", buf_slice(&tool->arguments), a);
    json_end(w);
    json_end(w);
}

static void write_calls(struct json_writer *w, struct arena *a, const struct llm_answer *answer)
{
    if (answer->n_tools == 0)
        return;
    json_begin_array_as(w, "tool_calls");
    for (size_t i = 0; i < answer->n_tools; i++)
        write_call(w, a, &answer->tools[i], i);
    json_end(w);
}

/* `calls` NULL: none. A prompt has no place for them. */
static void write_content(struct json_writer *w, const struct ollama_state *state, struct slice text,
                          struct slice thoughts, struct arena *a, const struct llm_answer *calls)
{
    if (!state->is_prompt) {
        json_begin_object_as(w, "message");
        json_add_string(w, "role", "assistant");
    }
    json_add_slice(w, state->is_prompt ? "response" : "content", text);
    if (thoughts.n > 0 && !state->hides_thoughts)
        json_add_slice(w, "thinking", thoughts);
    if (calls && !state->is_prompt)
        write_calls(w, a, calls);
    if (!state->is_prompt)
        json_end(w);
}

static const char *done_reason(enum llm_finish why)
{
    return why == LLM_FINISH_LENGTH ? "length" : why == LLM_FINISH_FILTER ? "content_filter" : "stop";
}

/* Clients divide by eval_duration. Providers do not report how long they loaded the model. */
static void write_done(struct json_writer *w, const struct llm_answer *answer, int64_t total_us, int64_t prompt_us)
{
    json_add_bool(w, "done", true);
    json_add_string(w, "done_reason", done_reason(answer->why));
    json_add_int(w, "total_duration", total_us * NS_A_US);
    json_add_int(w, "load_duration", 0);
    json_add_int(w, "prompt_eval_count", answer->usage.prompt_tokens);
    json_add_int(w, "prompt_eval_duration", prompt_us * NS_A_US);
    json_add_int(w, "eval_count", answer->usage.completion_tokens);
    json_add_int(w, "eval_duration", MAX(total_us - prompt_us, (int64_t)1) * NS_A_US);
}

/* ---- whole ---- */

static void write_answer(struct json_writer *w, const struct llm_progress *t)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    write_head(w, t->model);
    write_content(w, t->state, buf_slice(&t->answer->text), buf_slice(&t->answer->reasoning), a, t->answer);
    write_done(w, t->answer, (int64_t)(t->duration_s * 1e6), 0);
}

void ollama_write_empty(struct json_writer *w, const char *model, const char *reason, bool is_prompt)
{
    const struct ollama_state state = { .is_prompt = is_prompt };

    write_head(w, model);
    write_content(w, &state, SLICE_LIT(""), SLICE_LIT(""), NULL, NULL);
    json_add_bool(w, "done", true);
    json_add_string(w, "done_reason", reason);
}

/* ---- streamed: a line for each delta ---- */

static void begin_line(struct json_writer *w, struct buf *out)
{
    json_write_init(w, out);
    json_begin_object(w);
}

static void end_line(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_char(out, '\n');
}

static void note_first(struct ollama_state *state)
{
    if (!state->first_us)
        state->first_us = clock_mono_us();
}

static void add_delta(struct buf *out, const struct llm_progress *t, struct slice text, struct slice thoughts,
                      const struct llm_answer *calls)
{
    AUTO(arena_freep) struct arena *a = calls ? arena_new() : NULL;
    struct json_writer w;

    begin_line(&w, out);
    write_head(&w, t->model);
    write_content(&w, t->state, text, thoughts, a, calls);
    json_add_bool(&w, "done", false);
    end_line(&w, out);
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    note_first(t->state);
    add_delta(out, t, text, SLICE_LIT(""), NULL);
}

static void emit_reasoning(struct buf *out, const struct llm_progress *t, struct slice text)
{
    const struct ollama_state *state = t->state;

    note_first(t->state);
    if (!state->hides_thoughts)
        add_delta(out, t, SLICE_LIT(""), text, NULL);
}

/* Calls are sent whole, because their arguments are an object. */
static void emit_end(struct buf *out, const struct llm_progress *t)
{
    const struct ollama_state *state = t->state;
    int64_t total_us = (int64_t)(t->duration_s * 1e6), prompt_us = state->first_us ? state->first_us - t->began_us : 0;
    struct json_writer w;

    if (t->answer->n_tools > 0 && !state->is_prompt)
        add_delta(out, t, SLICE_LIT(""), SLICE_LIT(""), t->answer);
    begin_line(&w, out);
    write_head(&w, t->model);
    write_content(&w, state, SLICE_LIT(""), SLICE_LIT(""), NULL, NULL);
    write_done(&w, t->answer, total_us, MIN(MAX(prompt_us, (int64_t)0), total_us));
    end_line(&w, out);
}

/* ---- errors ---- */

static const struct field error_shape[] = { SHAPE_STRING("error"), V1_ERROR_DETAILS, FIELD_END };

static const char *error_text(const struct http_exchange *x, const struct err *e)
{
    bool brings_nothing = x && strcmp(e->code, "MISSING_APP_ID") == 0 && !http_header(&x->request, "authorization") &&
                          !http_header(&x->request, "x-api-key");

    if (brings_nothing)
        return "This needs a developer key of Hearth (`hearth key new` makes one) as Authorization: Bearer, or the id of an app in the header x-app-id. "
               "For programs that can send neither: hearth settings set llm.ollama_open true";
    return v1_error_text(x, e);
}

static int write_error(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    json_add_string(w, "error", error_text(x, e));
    v1_write_error_details(w, e);
    return v1_error_status(status, e);
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    struct json_writer w;

    begin_line(&w, out);
    json_add_string(&w, "error", v1_error_text(NULL, e));
    v1_write_error_details(&w, e);
    end_line(&w, out);
}

const struct error_form ollama_error = { .name = "OllamaError", .answer = error_shape, .write = write_error };

const struct llm_form ollama_form = {
    .content_type = OLLAMA_LINES,
    .text = emit_text,
    .reasoning = emit_reasoning,
    .end = emit_end,
    .error = emit_error,
    .whole = write_answer,
};
