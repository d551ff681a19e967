#include "api/compat/v1_response.h"

#include "api/compat/v1.h"
#include "api/compat/v1_responses_body.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

enum { ID_DIGITS = V1_KEPT_ID_SIZE - 1 };

/* ---- shapes ---- */

static const struct field part_shape[] = {
    SHAPE_STRING("type"),
    SHAPE_STRING("text"),
    SHAPE_LIST("annotations", NULL, .flags = FIELD_OPTIONAL),
    SHAPE_LIST("logprobs", NULL, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field item_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("type", .help = "message, function_call, reasoning"),
    SHAPE_STRING("status", .flags = FIELD_OPTIONAL, .help = "completed, incomplete"),
    SHAPE_STRING("role", .flags = FIELD_OPTIONAL),
    SHAPE_LIST("content", part_shape, .flags = FIELD_OPTIONAL),
    SHAPE_LIST("summary", part_shape, .flags = FIELD_OPTIONAL),
    SHAPE_STRING("encrypted_content", .flags = FIELD_OPTIONAL, .help = "to be sent back as it is"),
    SHAPE_STRING("call_id", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("name", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("arguments", .flags = FIELD_OPTIONAL, .help = "JSON text"),
    SHAPE_OBJECT("extra_content", NULL, .flags = FIELD_OPTIONAL, .help = "to be sent back as it is"),
    FIELD_END,
};

static const struct field fault_shape[] = { SHAPE_STRING("code"), SHAPE_STRING("message"), FIELD_END };
static const struct field incomplete_shape[] = { SHAPE_STRING("reason", .help = "max_output_tokens, content_filter"),
                                                 FIELD_END };
static const struct field details_in_shape[] = { SHAPE_INT("cached_tokens"), FIELD_END };
static const struct field details_out_shape[] = { SHAPE_INT("reasoning_tokens"), FIELD_END };

static const struct field usage_shape[] = {
    SHAPE_INT("input_tokens"),
    SHAPE_OBJECT("input_tokens_details", details_in_shape),
    SHAPE_INT("output_tokens"),
    SHAPE_OBJECT("output_tokens_details", details_out_shape),
    SHAPE_INT("total_tokens"),
    SHAPE_BOOL("estimated", .flags = FIELD_OPTIONAL, .help = "the provider did not count"),
    FIELD_END,
};

const struct field v1_response_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("object"),
    SHAPE_INT("created_at", .help = "seconds since 1970"),
    SHAPE_STRING("status", .help = "completed, incomplete; in events also in_progress, failed"),
    SHAPE_BOOL("background"),
    SHAPE_OBJECT("error", fault_shape, .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("incomplete_details", incomplete_shape, .flags = FIELD_NULLABLE),
    SHAPE_STRING("model"),
    SHAPE_LIST("output", item_shape),
    SHAPE_BOOL("store"),
    SHAPE_STRING("truncation"),
    SHAPE_STRING("instructions", .flags = FIELD_NULLABLE),
    SHAPE_INT("max_output_tokens", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("metadata", NULL),
    SHAPE_BOOL("parallel_tool_calls"),
    SHAPE_STRING("previous_response_id", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("reasoning", NULL),
    SHAPE_DOUBLE("temperature", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("text", NULL),
    SHAPE_ANY("tool_choice"),
    SHAPE_LIST("tools", NULL),
    SHAPE_DOUBLE("top_p", .flags = FIELD_NULLABLE),
    SHAPE_STRING("user", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("usage", usage_shape, .flags = FIELD_NULLABLE),
    FIELD_END,
};

/* ---- one answer in progress ---- */

/* The members of the request that the answer repeats; `otherwise` stands for a member that is absent or too long. */
static const struct {
    const char *name, *otherwise;
} repeated[V1_REPEATS] = {
    { "instructions", "null" },
    { "max_output_tokens", "null" },
    { "metadata", "{}" },
    { "parallel_tool_calls", "true" },
    { "previous_response_id", "null" },
    { "reasoning", "{\"effort\":null,\"summary\":null}" },
    { "temperature", "null" },
    { "text", "{\"format\":{\"type\":\"text\"}}" },
    { "tool_choice", "\"auto\"" },
    { "tools", "[]" },
    { "top_p", "null" },
    { "user", "null" },
};

static const char *repeat(struct arena *a, struct json_value body, size_t i)
{
    struct json_value value = json_get(body, repeated[i].name);
    const char *text = NULL;

    if (strcmp(repeated[i].name, "text") == 0 && json_is_absent(json_get(value, "format")))
        return repeated[i].otherwise;
    if (!json_is_absent(value))
        text = json_to_str(a, value);
    return text && strlen(text) <= LIMIT_RESPONSE_REPEATS ? text : repeated[i].otherwise;
}

/* Only the repeated members stay in memory while the answer is in progress. */
static void copy_repeats(struct v1_response *r, struct json_value body)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(repeated); i++)
        r->repeats[i] = arena_strdup(r->arena, repeat(scratch, body, i));
}

struct v1_response *v1_response_new(const struct v1_response_start *start)
{
    struct v1_response *r = xcalloc(1, sizeof(*r));

    r->arena = arena_new_sized(1024);
    copy_repeats(r, start->body);
    r->kept = start->kept;
    r->caller = arena_strdup(r->arena, start->caller);
    r->previous = start->previous;
    r->input = start->input;
    r->n_input = start->input ? strlen(start->input) : 0;
    r->n_input_values = v1_kept_values((struct slice){ start->input, r->n_input });
    llm_answer_init(&r->own);
    buf_init(&r->escaped, LIMIT_STREAM_PUSH);
    r->answer = &r->own;
    return r;
}

struct v1_response *v1_response_free(struct v1_response *r)
{
    if (!r)
        return NULL;
    if (r->kept)
        v1_kept_unref(r->kept, r->previous);
    llm_answer_clear(&r->own);
    buf_clear(&r->escaped);
    free(r->items);
    free(r->input);
    arena_free(r->arena);
    free(r);
    return NULL;
}

void v1_response_begin(struct v1_response *r, const char *uuid, int64_t created_ms, const char *model)
{
    size_t n = 0;

    for (const char *p = uuid; *p && n < ID_DIGITS; p++)
        if (*p != '-')
            r->id[n++] = *p;
    r->id[n] = '\0';
    r->created_ms = created_ms;
    r->model = model;
}

/* ---- ids ---- */

static bool is_digits(const char *p)
{
    return strspn(p, "0123456789abcdef") >= ID_DIGITS;
}

struct slice v1_response_id(const char *id)
{
    static const char head[] = "resp_";
    const char *digits = id + strlen(head);

    if (strncmp(id, head, strlen(head)) != 0 || !is_digits(digits) || digits[ID_DIGITS])
        return (struct slice){ 0 };
    return (struct slice){ digits, ID_DIGITS };
}

bool v1_response_item_place(const char *id, struct slice *ret_response, size_t *ret_number)
{
    const char *digits = strchr(id, '_'), *number;
    char *end;

    if (!digits || !is_digits(digits + 1) || digits[1 + ID_DIGITS] != '_')
        return false;
    number = digits + 2 + ID_DIGITS;
    if (*number < '0' || *number > '9' || strlen(number) > 9)
        return false;
    *ret_response = (struct slice){ digits + 1, ID_DIGITS };
    *ret_number = strtoul(number, &end, 10);
    return *end == '\0';
}

enum llm_piece v1_item_kind(const struct v1_response *r, size_t item)
{
    return r->answer->pieces[r->items[item].piece].kind;
}

const char *v1_item_id(const struct v1_response *r, size_t item, char out[V1_ITEM_ID_SIZE])
{
    static const char *const heads[] = {
        [LLM_PIECE_THOUGHT] = "rs", [LLM_PIECE_BLOCK] = "msg", [LLM_PIECE_CALL] = "fc", [LLM_PIECE_HIDDEN] = "rs"
    };

    snprintf(out, V1_ITEM_ID_SIZE, "%s_%s_%zu", heads[v1_item_kind(r, item)], r->id, item);
    return out;
}

/* ---- items ---- */

/* The next piece of the answer: an item of its own, or the signature of the thought before it. True: a new item. */
bool v1_response_take_piece(struct v1_response *r)
{
    size_t n = r->n_items, at = r->n_seen++;
    const struct llm_answer_piece *piece = &r->answer->pieces[at];
    struct v1_item *last = n > 0 ? &r->items[n - 1] : NULL;

    if (piece->kind == LLM_PIECE_HIDDEN && last && last->piece + 1 == at &&
        v1_item_kind(r, n - 1) == LLM_PIECE_THOUGHT && piece[-1].n_signature == 0) {
        last->signature = at;
        return false;
    }
    if (!r->items || (n & (n - 1)) == 0) /* a power of two is full */
        r->items = xrealloc(r->items, MAX(2 * n, (size_t)1) * sizeof(*r->items));
    r->items[r->n_items++] = (struct v1_item){ .piece = at, .signature = at };
    if (piece->kind == LLM_PIECE_CALL && piece->at < ARRAY_SIZE(r->item_of_call))
        r->item_of_call[piece->at] = (uint16_t)r->n_items;
    return true;
}

void v1_response_write_part(struct json_writer *w, const char *name, const char *type, struct v1_text text)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", type);
    v1_text_write(w, "text", text);
    if (strcmp(type, "output_text") == 0) {
        json_begin_array_as(w, "annotations");
        json_end(w);
        json_begin_array_as(w, "logprobs");
        json_end(w);
    }
    json_end(w);
}

struct v1_text v1_item_text(const struct v1_response *r, size_t item)
{
    if (r->escaped_item == item + 1 && !r->escaped.overflowed)
        return (struct v1_text){ buf_slice(&r->escaped), true };
    return (struct v1_text){ llm_answer_text(r->answer, &r->answer->pieces[r->items[item].piece]), false };
}

void v1_text_write(struct json_writer *w, const char *name, struct v1_text text)
{
    if (text.is_escaped)
        json_add_escaped(w, name, text.text);
    else
        json_add_slice(w, name, text.text);
}

void v1_item_escape(struct v1_response *r, size_t item, struct slice part)
{
    if (r->escaped_item != item + 1)
        buf_clear(&r->escaped);
    r->escaped_item = item + 1;
    json_escape(&r->escaped, part);
}

void v1_item_forget_escaped(struct v1_response *r, size_t item)
{
    if (r->escaped_item != item + 1)
        return;
    buf_clear(&r->escaped);
    r->escaped_item = 0;
}

const struct llm_answer_tool *v1_item_tool(const struct v1_response *r, size_t item)
{
    return &r->answer->tools[r->answer->pieces[r->items[item].piece].at];
}

static void write_message(struct json_writer *w, const struct v1_response *r, size_t item, bool is_begun)
{
    json_add_string(w, "role", "assistant");
    json_begin_array_as(w, "content");
    if (!is_begun)
        v1_response_write_part(w, NULL, "output_text", v1_item_text(r, item));
    json_end(w);
}

static void write_signature(struct json_writer *w, const struct v1_response *r, const struct llm_answer_piece *piece)
{
    struct slice signature = llm_answer_signature(r->answer, piece);
    struct buf text;

    if (signature.n == 0)
        return;
    buf_init(&text, LIMIT_LLM_ANSWER + KIB(1));
    buf_add_str(&text, piece->kind == LLM_PIECE_HIDDEN ? V1_SIGNATURE_HIDDEN : V1_SIGNATURE_SIGNED);
    buf_add_slice(&text, signature);
    json_add_slice(w, "encrypted_content", buf_slice(&text));
    buf_clear(&text);
}

static void write_reasoning(struct json_writer *w, const struct v1_response *r, size_t item, bool is_begun)
{
    json_begin_array_as(w, "summary");
    if (!is_begun && v1_item_kind(r, item) == LLM_PIECE_THOUGHT && v1_item_text(r, item).text.n > 0)
        v1_response_write_part(w, NULL, "summary_text", v1_item_text(r, item));
    json_end(w);
    if (!is_begun)
        write_signature(w, r, &r->answer->pieces[r->items[item].signature]);
}

static void write_extra(struct json_writer *w, const struct v1_response *r, const struct llm_answer_tool *tool)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct buf *signatures = &r->answer->signatures;

    if (tool->n_extra > 0 && tool->extra_at + tool->n_extra <= signatures->n)
        json_add_raw(w, "extra_content", arena_strndup(a, buf_str(signatures) + tool->extra_at, tool->n_extra));
}

static void write_call(struct json_writer *w, const struct v1_response *r, size_t item, bool is_begun)
{
    const struct llm_answer_tool *tool = v1_item_tool(r, item);
    char id[V1_ITEM_ID_SIZE];

    json_add_string(w, "call_id", tool->id && *tool->id ? tool->id : v1_item_id(r, item, id));
    json_add_string(w, "name", tool->name ? tool->name : "");
    json_add_slice(w, "arguments", is_begun ? SLICE_LIT("") : buf_slice(&tool->arguments));
    if (!is_begun)
        write_extra(w, r, tool);
}

/* is_begun: the item as a stream first sends it, without content. */
void v1_response_write_item(struct json_writer *w, const char *name, const struct v1_response *r, size_t item,
                            bool is_begun)
{
    static const char *const types[] = { [LLM_PIECE_THOUGHT] = "reasoning",
                                         [LLM_PIECE_BLOCK] = "message",
                                         [LLM_PIECE_CALL] = "function_call",
                                         [LLM_PIECE_HIDDEN] = "reasoning" };
    enum llm_piece kind = v1_item_kind(r, item);
    bool is_cut = r->answer->has_ended && item + 1 == r->n_items &&
                  (r->answer->why == LLM_FINISH_LENGTH || r->answer->why == LLM_FINISH_FILTER);
    char id[V1_ITEM_ID_SIZE];

    json_begin_object_as(w, name);
    json_add_string(w, "id", v1_item_id(r, item, id));
    json_add_string(w, "type", types[kind]);
    if (kind == LLM_PIECE_BLOCK || kind == LLM_PIECE_CALL)
        json_add_string(w, "status", is_begun ? "in_progress" : is_cut ? "incomplete" : "completed");
    if (kind == LLM_PIECE_BLOCK)
        write_message(w, r, item, is_begun);
    else if (kind == LLM_PIECE_CALL)
        write_call(w, r, item, is_begun);
    else
        write_reasoning(w, r, item, is_begun);
    json_end(w);
}

/* ---- the answer as an object ---- */

const char *v1_response_why_incomplete(const struct v1_response *r)
{
    return r->answer->why == LLM_FINISH_LENGTH   ? "max_output_tokens"
           : r->answer->why == LLM_FINISH_FILTER ? "content_filter"
                                                 : NULL;
}

static const char *status_of(const struct v1_response *r, enum v1_stage stage)
{
    if (stage == V1_IN_PROGRESS)
        return "in_progress";
    return stage == V1_FAILED ? "failed" : v1_response_why_incomplete(r) ? "incomplete" : "completed";
}

static void write_details(struct json_writer *w, const char *name, const char *member)
{
    json_begin_object_as(w, name);
    json_add_int(w, member, 0);
    json_end(w);
}

static void write_usage(struct json_writer *w, const struct llm_usage *usage)
{
    json_begin_object_as(w, "usage");
    json_add_int(w, "input_tokens", usage->prompt_tokens);
    write_details(w, "input_tokens_details", "cached_tokens");
    json_add_int(w, "output_tokens", usage->completion_tokens);
    write_details(w, "output_tokens_details", "reasoning_tokens");
    json_add_int(w, "total_tokens", usage->prompt_tokens + usage->completion_tokens);
    if (usage->is_estimated)
        json_add_bool(w, "estimated", true);
    json_end(w);
}

static void write_fault(struct json_writer *w, const struct err *e)
{
    if (!e) {
        json_add_null(w, "error");
        return;
    }
    json_begin_object_as(w, "error");
    json_add_string(w, "code", "server_error");
    json_add_string(w, "message", v1_error_text(NULL, e));
    json_end(w);
}

static void write_incomplete(struct json_writer *w, const char *reason)
{
    if (!reason) {
        json_add_null(w, "incomplete_details");
        return;
    }
    json_begin_object_as(w, "incomplete_details");
    json_add_string(w, "reason", reason);
    json_end(w);
}

static void write_head(struct json_writer *w, const struct v1_response *r, enum v1_stage stage, const struct err *e)
{
    char id[V1_KEPT_ID_SIZE + 8];

    snprintf(id, sizeof(id), "resp_%s", r->id);
    json_add_string(w, "id", id);
    json_add_string(w, "object", "response");
    json_add_int(w, "created_at", r->created_ms / 1000);
    json_add_string(w, "status", status_of(r, stage));
    json_add_bool(w, "background", false);
    write_fault(w, e);
    write_incomplete(w, stage == V1_ENDED ? v1_response_why_incomplete(r) : NULL);
    json_add_string(w, "model", r->model);
}

void v1_response_write_members(struct json_writer *w, const struct v1_response *r, enum v1_stage stage,
                               const struct err *e)
{
    write_head(w, r, stage, e);
    json_begin_array_as(w, "output");
    for (size_t i = 0; i < r->n_items; i++)
        v1_response_write_item(w, NULL, r, i, false);
    json_end(w);
    json_add_bool(w, "store", r->kept != NULL);
    json_add_string(w, "truncation", "disabled");
    for (size_t i = 0; i < ARRAY_SIZE(repeated); i++)
        json_add_raw(w, repeated[i].name, r->repeats[i]);
    if (stage == V1_ENDED)
        write_usage(w, &r->answer->usage);
    else
        json_add_null(w, "usage");
}

/* Prints the whole object, as it is sent and kept; false: the object is too large. */
bool v1_response_print(const struct v1_response *r, struct buf *out)
{
    struct json_writer w;

    buf_init(out, LIMIT_STREAM_PUSH);
    json_write_init(&w, out);
    json_begin_object(&w);
    v1_response_write_members(&w, r, V1_ENDED, NULL);
    json_end(&w);
    return !out->overflowed;
}

/* Takes ownership of the text. */
void v1_response_keep(struct v1_response *r, struct buf *text)
{
    struct v1_kept_new what = {
        .caller = r->caller, .id = r->id, .input = r->input, .n_input = r->n_input, .n_values = r->n_input_values
    };

    if (r->kept && r->input && !text->overflowed) {
        what.response = buf_take(text);
        what.previous = r->previous;
        r->previous = NULL;
        r->input = NULL;
        v1_kept_add(r->kept, &what);
    }
    buf_clear(text);
}

void v1_response_write(struct json_writer *w, struct v1_response *r, const struct llm_progress *t)
{
    struct buf text;

    v1_response_begin(r, t->uuid, t->began_wall_ms, t->model);
    r->answer = t->answer;
    while (r->n_seen < r->answer->n_pieces)
        v1_response_take_piece(r);
    if (r->kept) {
        (void)!v1_response_print(r, &text);
        v1_response_keep(r, &text);
    }
    v1_response_write_members(w, r, V1_ENDED, NULL);
    r->answer = &r->own; /* the borrowed answer ends with the request */
}
