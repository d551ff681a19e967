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
    *answer = (struct llm_answer){ 0 };
}

static int too_large(struct llm_answer *answer)
{
    return err_set(err_place(&answer->e), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The model's answer is larger than the %d bytes or the %d tool calls allowed.",
                   LIMIT_LLM_ANSWER, LIMIT_TOOL_CALLS);
}

static int add_text(void *arg, struct slice text)
{
    struct llm_answer *answer = arg;

    buf_add_slice(&answer->text, text);
    return answer->text.overflowed ? too_large(answer) : 0;
}

static int add_reasoning(void *arg, struct slice text)
{
    struct llm_answer *answer = arg;

    buf_add_slice(&answer->reasoning, text);
    return answer->reasoning.overflowed ? too_large(answer) : 0;
}

/* Calls up to index are there afterwards. */
static void make_room(struct llm_answer *answer, size_t index)
{
    if (!answer->tools)
        answer->tools = xcalloc(LIMIT_TOOL_CALLS, sizeof(*answer->tools));
    while (answer->n_tools <= index)
        buf_init(&answer->tools[answer->n_tools++].arguments, LIMIT_LLM_ANSWER);
}

int llm_answer_add_tool(struct llm_answer *answer, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct llm_answer_tool *tool;

    if (index >= LIMIT_TOOL_CALLS)
        return too_large(answer);
    make_room(answer, index);
    tool = &answer->tools[index];
    if (id && !tool->id)
        tool->id = xstrdup(id);
    if (name && !tool->name)
        tool->name = xstrdup(name);
    buf_add_slice(&tool->arguments, arguments);
    return tool->arguments.overflowed ? too_large(answer) : 0;
}

static int add_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    return llm_answer_add_tool(arg, index, id, name, arguments);
}

void llm_answer_end(struct llm_answer *answer, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    answer->why = why;
    answer->has_ended = true;
    answer->has_usage = usage && (usage->prompt_tokens > 0 || usage->completion_tokens > 0);    /* some tell zeros */
    if (answer->has_usage)
        answer->usage = *usage;
    if (model && *model && !answer->model)
        answer->model = xstrdup(model);
}

static int on_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    llm_answer_end(arg, why, usage, model);
    return 0;
}

struct llm_sink llm_answer_sink(struct llm_answer *answer)
{
    return (struct llm_sink){ .on_text = add_text, .on_reasoning = add_reasoning, .on_tool = add_tool, .on_end = on_end, .arg = answer };
}

/* ---- usage by estimate ---- */

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

int64_t llm_prompt_tokens(const struct llm_ask *ask)
{
    int64_t n = 0;

    for (size_t i = 0; i < ask->n_messages; i++)
        n += tokens_of_message(&ask->messages[i]);
    return n;
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

void llm_answer_write_tools(const struct llm_answer *answer, struct json_writer *w, const char *name)
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
        json_end(w);
    }
    json_end(w);
}
