#include "llm/answer.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_A_TOKEN = 4, TOKENS_A_MESSAGE = 4, TOKENS_AN_IMAGE = 800 };

void llm_answer_init(struct llm_answer *answer)
{
    *answer = (struct llm_answer){ 0 };
    buf_init(&answer->text, LIMIT_LLM_ANSWER);
    buf_init(&answer->reasoning, LIMIT_LLM_ANSWER);
    buf_init(&answer->signatures, LIMIT_LLM_ANSWER);
}

void llm_answer_clear(struct llm_answer *answer)
{
    for (size_t i = 0; i < answer->n_tools; i++) {
        free(answer->tools[i].id);
        free(answer->tools[i].name);
        buf_clear(&answer->tools[i].arguments);
    }
    free(answer->tools);
    free(answer->model);
    free(answer->e);
    buf_clear(&answer->text);
    buf_clear(&answer->reasoning);
    buf_clear(&answer->signatures);
    free(answer->pieces);
    *answer = (struct llm_answer){ 0 };
}

static int too_large(struct llm_answer *answer)
{
    return err_set(err_place(&answer->e), -EMSGSIZE, "UPSTREAM_TOO_LARGE",
                   "The model's answer is larger than the %d bytes or the %d tool calls allowed.", LIMIT_LLM_ANSWER,
                   LIMIT_TOOL_CALLS);
}

/* ---- pieces ---- */

/* NULL: the answer has too many pieces. */
static struct llm_answer_piece *new_piece(struct llm_answer *answer, enum llm_piece kind, size_t at)
{
    size_t n = answer->n_pieces;

    if (n == LIMIT_ANSWER_PIECES)
        return NULL;
    if (!answer->pieces || (n & (n - 1)) == 0) /* the array is full at each power of two */
        answer->pieces = xrealloc(answer->pieces, MAX(2 * n, (size_t)1) * sizeof(*answer->pieces));
    answer->pieces[n] = (struct llm_answer_piece){ .kind = kind, .at = at };
    return &answer->pieces[answer->n_pieces++];
}

static struct llm_answer_piece *open_piece(struct llm_answer *answer, enum llm_piece kind, size_t at)
{
    struct llm_answer_piece *last = answer->n_pieces > 0 ? &answer->pieces[answer->n_pieces - 1] : NULL;

    return last && last->kind == kind && last->n_signature == 0 ? last : new_piece(answer, kind, at);
}

static int add_to(struct llm_answer *answer, struct buf *to, enum llm_piece kind, struct slice text)
{
    struct llm_answer_piece *piece = open_piece(answer, kind, to->n);

    buf_add_slice(to, text);
    if (!piece || to->overflowed)
        return too_large(answer);
    piece->n += text.n;
    return 0;
}

static int add_text(void *arg, struct slice text)
{
    struct llm_answer *answer = arg;

    return add_to(answer, &answer->text, LLM_PIECE_BLOCK, text);
}

static int add_reasoning(void *arg, struct slice text)
{
    struct llm_answer *answer = arg;

    return add_to(answer, &answer->reasoning, LLM_PIECE_THOUGHT, text);
}

static int add_signature(void *arg, bool is_hidden, struct slice signature)
{
    struct llm_answer *answer = arg;
    struct llm_answer_piece *piece =
        is_hidden ? new_piece(answer, LLM_PIECE_HIDDEN, 0) : open_piece(answer, LLM_PIECE_THOUGHT, answer->reasoning.n);

    if (piece) {
        piece->signature_at = answer->signatures.n;
        piece->n_signature = signature.n;
    }
    buf_add_slice(&answer->signatures, signature);
    return !piece || answer->signatures.overflowed ? too_large(answer) : 0;
}

static struct slice part_of(const struct buf *b, size_t at, size_t n)
{
    at = MIN(at, b->n);
    return (struct slice){ buf_str(b) + at, MIN(n, b->n - at) };
}

struct slice llm_answer_text(const struct llm_answer *answer, const struct llm_answer_piece *piece)
{
    return part_of(piece->kind == LLM_PIECE_BLOCK ? &answer->text : &answer->reasoning, piece->at, piece->n);
}

struct slice llm_answer_signature(const struct llm_answer *answer, const struct llm_answer_piece *piece)
{
    return part_of(&answer->signatures, piece->signature_at, piece->n_signature);
}

/* ---- tool calls and the end ---- */

/* Afterwards calls up to index exist. */
static int make_room(struct llm_answer *answer, size_t index)
{
    if (!answer->tools)
        answer->tools = xcalloc(LIMIT_TOOL_CALLS, sizeof(*answer->tools));
    while (answer->n_tools <= index) {
        if (!new_piece(answer, LLM_PIECE_CALL, answer->n_tools))
            return too_large(answer);
        buf_init(&answer->tools[answer->n_tools++].arguments, LIMIT_LLM_ANSWER);
    }
    return 0;
}

int llm_answer_add_tool(struct llm_answer *answer, size_t index, const char *id, const char *name,
                        struct slice arguments)
{
    struct llm_answer_tool *tool;
    int r = index >= LIMIT_TOOL_CALLS ? too_large(answer) : make_room(answer, index);

    if (r < 0)
        return r;
    if ((id && strlen(id) > LIMIT_TOOL_ID_BYTES) || (name && strlen(name) > LIMIT_TOOL_ID_BYTES) ||
        arguments.n > LIMIT_LLM_ANSWER - answer->n_argument_bytes)
        return too_large(answer);
    answer->n_argument_bytes += arguments.n;
    tool = &answer->tools[index];
    if (id && !tool->id)
        tool->id = xstrdup(id);
    if (name && !tool->name)
        tool->name = xstrdup(name);
    buf_add_slice(&tool->arguments, arguments);
    return 0;
}

int llm_answer_add_extra(struct llm_answer *answer, size_t index, struct slice extra)
{
    if (index >= answer->n_tools)
        return too_large(answer);
    answer->tools[index].extra_at = answer->signatures.n;
    answer->tools[index].n_extra = extra.n;
    buf_add_slice(&answer->signatures, extra);
    return answer->signatures.overflowed ? too_large(answer) : 0;
}

static int add_extra(void *arg, size_t index, struct slice extra)
{
    return llm_answer_add_extra(arg, index, extra);
}

static int add_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    return llm_answer_add_tool(arg, index, id, name, arguments);
}

void llm_answer_end(struct llm_answer *answer, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    answer->why = why;
    answer->has_ended = true;
    answer->has_usage =
        usage && (usage->prompt_tokens > 0 || usage->completion_tokens > 0); /* some upstreams report zeros */
    if (answer->has_usage)
        answer->usage = *usage;
    if (model && *model && !answer->model && strlen(model) <= LIMIT_MODEL_BYTES)
        answer->model = xstrdup(model);
}

static int on_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    llm_answer_end(arg, why, usage, model);
    return 0;
}

struct llm_sink llm_answer_sink(struct llm_answer *answer)
{
    return (struct llm_sink){ .on_text = add_text,
                              .on_reasoning = add_reasoning,
                              .on_tool = add_tool,
                              .on_signature = add_signature,
                              .on_extra = add_extra,
                              .on_end = on_end,
                              .arg = answer };
}

/* ---- usage: sums and estimates ---- */

static int64_t tokens_of(size_t n_bytes)
{
    return (int64_t)((n_bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN);
}

static int64_t tokens_of_message(const struct llm_message *m)
{
    int64_t n = TOKENS_A_MESSAGE;

    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct llm_block *block = &m->blocks[i];

        if (block->kind == LLM_BLOCK_TEXT)
            n += tokens_of(strlen(block->text));
        else
            n += block->kind == LLM_BLOCK_FILE_DATA ? tokens_of(strlen(block->base64) * 3 / 4) : TOKENS_AN_IMAGE;
    }
    for (size_t i = 0; i < m->n_tool_calls; i++)
        n += tokens_of(strlen(m->tool_calls[i].arguments));
    return n;
}

int64_t llm_prompt_tokens(const struct llm_request *request)
{
    int64_t n = 0;

    for (size_t i = 0; i < request->n_messages; i++)
        n += tokens_of_message(&request->messages[i]);
    return n;
}

void llm_usage_add(struct llm_usage *sum, const struct llm_usage *more)
{
    sum->prompt_tokens += MAX(more->prompt_tokens, (int64_t)0);
    sum->completion_tokens += MAX(more->completion_tokens, (int64_t)0);
    sum->is_estimated |= more->is_estimated;
}

void llm_answer_estimate(struct llm_answer *answer, int64_t prompt_tokens, size_t n_answer_bytes)
{
    struct llm_usage *usage = &answer->usage;

    if (!answer->has_usage)
        *usage = (struct llm_usage){ .prompt_tokens = -1, .completion_tokens = -1 };
    usage->is_estimated = usage->prompt_tokens < 0 || usage->completion_tokens < 0;
    for (size_t i = 0; i < answer->n_tools; i++)
        n_answer_bytes += answer->tools[i].arguments.n;
    if (usage->prompt_tokens < 0)
        usage->prompt_tokens = prompt_tokens;
    if (usage->completion_tokens < 0)
        usage->completion_tokens = tokens_of(n_answer_bytes);
}

static void write_extra(const struct llm_answer *answer, struct json_writer *w, const struct llm_answer_tool *tool)
{
    struct slice extra = part_of(&answer->signatures, tool->extra_at, tool->n_extra);
    AUTO(arena_freep) struct arena *a = arena_new();

    if (extra.n > 0)
        json_add_raw(w, "extra_content", arena_slicedup(a, extra));
}

void llm_answer_write_tools(const struct llm_answer *answer, struct json_writer *w, const char *name, bool has_extras)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < answer->n_tools; i++) {
        const struct llm_answer_tool *tool = &answer->tools[i];

        json_begin_object(w);
        json_add_string(w, "id", tool->id ? tool->id : "");
        json_add_string(w, "type", "function");
        json_begin_object_as(w, "function");
        json_add_string(w, "name", tool->name ? tool->name : "");
        json_add_string(w, "arguments", buf_str(&tool->arguments));
        json_end(w);
        if (has_extras)
            write_extra(answer, w, tool);
        json_end(w);
    }
    json_end(w);
}

void llm_write_arguments(struct json_writer *w, const char *name, struct slice arguments, struct arena *a)
{
    struct json_value value = { 0 };
    int r = json_parse(a, arguments, &value, NULL);

    if (r == 0 && json_type(value) == JSON_OBJECT)
        json_add_value(w, name, value);
    else
        json_add_raw(w, name, "{}");
}
