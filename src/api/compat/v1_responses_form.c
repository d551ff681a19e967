#include "api/compat/v1_responses_form.h"

#include "api/compat/v1.h"
#include "api/compat/v1_response.h"

void v1_responses_end_state(void *state)
{
    struct v1_response **r = state;

    *r = v1_response_free(*r);
}

static struct v1_response *response_of(const struct llm_progress *t)
{
    return *(struct v1_response **)t->state;
}

static void begin_event(struct json_writer *w, struct buf *out, struct v1_response *r, const char *type)
{
    buf_printf(out, "event: %s\ndata: ", type);
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, "type", type);
    json_add_int(w, "sequence_number", r->n_events++);
}

static void end_event(struct json_writer *w, struct buf *out)
{
    json_end(w);
    buf_add_str(out, "\n\n");
}

static void emit_response(struct buf *out, struct v1_response *r, const char *type, enum v1_stage stage,
                          const struct err *e)
{
    struct json_writer w;

    begin_event(&w, out, r, type);
    json_begin_object_as(&w, "response");
    v1_response_write_members(&w, r, stage, e);
    json_end(&w);
    end_event(&w, out);
}

/* Begins an event about an item. `place`: the member that numbers the item's part; NULL: the event is about the whole
 * item. */
static void begin_item_event(struct json_writer *w, struct buf *out, struct v1_response *r, const char *type,
                             size_t item, const char *place)
{
    char id[V1_ITEM_ID_SIZE];

    begin_event(w, out, r, type);
    json_add_string(w, "item_id", v1_item_id(r, item, id));
    json_add_int(w, "output_index", (int64_t)item);
    if (place)
        json_add_int(w, place, 0);
}

/* The events that carry the text of each kind of item. */
static const struct item_events {
    const char *place, *part, *added, *delta, *done, *part_done;
} tellings[] = {
    [LLM_PIECE_THOUGHT] = { "summary_index", "summary_text", "response.reasoning_summary_part.added",
                            "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
                            "response.reasoning_summary_part.done" },
    [LLM_PIECE_BLOCK] = { "content_index", "output_text", "response.content_part.added", "response.output_text.delta",
                          "response.output_text.done", "response.content_part.done" },
    [LLM_PIECE_CALL] = { .delta = "response.function_call_arguments.delta",
                         .done = "response.function_call_arguments.done" },
    [LLM_PIECE_HIDDEN] = { NULL },
};

static const struct item_events *events_of(const struct v1_response *r, size_t item)
{
    return &tellings[v1_item_kind(r, item)];
}

static void add_logprobs(struct json_writer *w, const struct v1_response *r, size_t item)
{
    if (v1_item_kind(r, item) != LLM_PIECE_BLOCK)
        return;
    json_begin_array_as(w, "logprobs");
    json_end(w);
}

static void emit_part(struct buf *out, struct v1_response *r, size_t item, const char *type, struct v1_text text)
{
    const struct item_events *how = events_of(r, item);
    struct json_writer w;

    begin_item_event(&w, out, r, type, item, how->place);
    v1_response_write_part(&w, "part", how->part, text);
    end_event(&w, out);
}

static void emit_item(struct buf *out, struct v1_response *r, size_t item, const char *type, bool is_begun)
{
    struct json_writer w;

    begin_event(&w, out, r, type);
    json_add_int(&w, "output_index", (int64_t)item);
    v1_response_write_item(&w, "item", r, item, is_begun);
    end_event(&w, out);
}

static void emit_all_text(struct buf *out, struct v1_response *r, size_t item)
{
    const struct item_events *how = events_of(r, item);
    bool is_call = v1_item_kind(r, item) == LLM_PIECE_CALL;
    struct json_writer w;

    begin_item_event(&w, out, r, how->done, item, how->place);
    if (is_call) {
        json_add_string(&w, "name", v1_item_tool(r, item)->name ? v1_item_tool(r, item)->name : "");
        json_add_slice(&w, "arguments", buf_slice(&v1_item_tool(r, item)->arguments));
    } else {
        v1_text_write(&w, "text", v1_item_text(r, item));
    }
    add_logprobs(&w, r, item);
    end_event(&w, out);
    if (how->part_done)
        emit_part(out, r, item, how->part_done, v1_item_text(r, item));
}

static void close_item(struct buf *out, struct v1_response *r, size_t item)
{
    if (r->items[item].is_done)
        return;
    r->items[item].is_done = true;
    if (events_of(r, item)->done)
        emit_all_text(out, r, item);
    emit_item(out, r, item, "response.output_item.done", false);
    v1_item_forget_escaped(r, item);
}

/* The parts of several calls may alternate: calls stay open until the end. */
static void open_items(struct buf *out, struct v1_response *r)
{
    size_t item;

    while (r->n_seen < r->answer->n_pieces) {
        if (!v1_response_take_piece(r))
            continue;
        item = r->n_items - 1;
        if (item > 0 && v1_item_kind(r, item - 1) != LLM_PIECE_CALL)
            close_item(out, r, item - 1);
        emit_item(out, r, item, "response.output_item.added", true);
        if (events_of(r, item)->added)
            emit_part(out, r, item, events_of(r, item)->added, (struct v1_text){ 0 });
    }
}

static void emit_delta(struct buf *out, struct v1_response *r, size_t item, struct slice text)
{
    const struct item_events *how = events_of(r, item);
    struct json_writer w;

    if (text.n == 0)
        return;
    begin_item_event(&w, out, r, how->delta, item, how->place);
    json_add_slice(&w, "delta", text);
    add_logprobs(&w, r, item);
    end_event(&w, out);
    if (v1_item_kind(r, item) != LLM_PIECE_CALL) /* a call ends with the answer, which a worker prints */
        v1_item_escape(r, item, text);
}

static void emit_begin(struct buf *out, const struct llm_progress *t)
{
    struct v1_response *r = response_of(t);

    v1_response_begin(r, t->uuid, t->began_wall_ms, t->model);
    emit_response(out, r, "response.created", V1_IN_PROGRESS, NULL);
    emit_response(out, r, "response.in_progress", V1_IN_PROGRESS, NULL);
}

/* The limits are the same as those of the relay, which ends the answer. */
static bool has_room(struct v1_response *r, int result)
{
    r->is_too_large |= result < 0;
    return !r->is_too_large;
}

static void emit_text(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct v1_response *r = response_of(t);
    struct llm_sink sink = llm_answer_sink(&r->own);

    if (!has_room(r, sink.on_text(sink.arg, text)))
        return;
    open_items(out, r);
    emit_delta(out, r, r->n_items - 1, text);
}

static void emit_reasoning(struct buf *out, const struct llm_progress *t, struct slice text)
{
    struct v1_response *r = response_of(t);
    struct llm_sink sink = llm_answer_sink(&r->own);

    if (!has_room(r, sink.on_reasoning(sink.arg, text)))
        return;
    open_items(out, r);
    emit_delta(out, r, r->n_items - 1, text);
}

static void emit_signature(struct buf *out, const struct llm_progress *t, bool is_hidden, struct slice signature)
{
    struct v1_response *r = response_of(t);
    struct llm_sink sink = llm_answer_sink(&r->own);

    if (has_room(r, sink.on_signature(sink.arg, is_hidden, signature)))
        open_items(out, r);
}

static void emit_tool(struct buf *out, const struct llm_progress *t, size_t index, const char *id, const char *name,
                      struct slice arguments)
{
    struct v1_response *r = response_of(t);
    size_t after;

    if (!has_room(r, llm_answer_add_tool(&r->own, index, id, name, arguments)))
        return;
    open_items(out, r);
    after = r->item_of_call[index];
    if (after > 0)
        emit_delta(out, r, after - 1, arguments);
}

static void emit_extra(struct buf *out, const struct llm_progress *t, size_t index, struct slice extra)
{
    struct v1_response *r = response_of(t);

    has_room(r, llm_answer_add_extra(&r->own, index, extra));
}

static void emit_failed(struct buf *out, struct v1_response *r, const struct err *e)
{
    struct json_writer w;

    begin_event(&w, out, r, "error");
    json_add_string(&w, "code", "server_error");
    json_add_string(&w, "message", v1_error_text(NULL, e));
    json_add_null(&w, "param");
    end_event(&w, out);
    emit_response(out, r, "response.failed", V1_FAILED, e);
}

static void emit_error(struct buf *out, const struct llm_progress *t, const struct err *e)
{
    emit_failed(out, response_of(t), e);
}

static void emit_too_large(struct buf *out, struct v1_response *r)
{
    struct err e = { 0 };

    err_set(&e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The model's answer is larger than is allowed.");
    r->n_items = 0; /* with its items this event would be too large as well */
    emit_failed(out, r, &e);
}

static void emit_end(struct buf *out, const struct llm_progress *t)
{
    struct v1_response *r = response_of(t);
    struct json_writer w;
    struct buf text;

    r->model = t->model;
    r->own.why = t->answer->why;
    r->own.usage = t->answer->usage;
    r->own.has_ended = true;
    for (size_t i = 0; i < r->n_items; i++)
        close_item(out, r, i);
    r->is_too_large |= !v1_response_print(r, &text);
    if (r->is_too_large) {
        buf_clear(&text);
        emit_too_large(out, r);
        return;
    }
    begin_event(&w, out, r, v1_response_why_incomplete(r) ? "response.incomplete" : "response.completed");
    json_add_raw(&w, "response", buf_str(&text));
    end_event(&w, out);
    v1_response_keep(r, &text);
}

/* Text and arguments are in the last events about four times. */
static size_t n_end_bytes(const struct llm_progress *t)
{
    const struct llm_answer *own = &response_of(t)->own;

    return own->text.n + own->reasoning.n + own->signatures.n + own->n_argument_bytes;
}

static void write_whole(struct json_writer *w, const struct llm_progress *t)
{
    v1_response_write(w, response_of(t), t);
}

const struct llm_form v1_responses_form = {
    .begin = emit_begin,
    .text = emit_text,
    .reasoning = emit_reasoning,
    .tool = emit_tool,
    .signature = emit_signature,
    .extra = emit_extra,
    .end = emit_end,
    .n_end_bytes = n_end_bytes,
    .error = emit_error,
    .whole = write_whole,
};
