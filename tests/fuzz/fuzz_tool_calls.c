/* Calls that a model writes as text, and the results of tools: foreign bytes from both sides of the tool loop. */
#include "agents/loop_private.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_call(const struct llm_tool_call *call)
{
    assert(call->id && *call->id && call->name && call->arguments);
}

static void read_call(struct arena *a, const char *text)
{
    const struct llm_block block = { .kind = LLM_BLOCK_TEXT, .text = text };
    struct llm_message m = { .role = LLM_ASSISTANT, .blocks = &block, .n_blocks = 1 };

    if (!loop_spoken_read(a, &m))
        return;
    assert(m.n_tool_calls <= LIMIT_TOOL_CALLS);
    for (size_t i = 0; i < m.n_tool_calls; i++)
        check_call(&m.tool_calls[i]);
}

static void read_result(struct arena *a, struct slice text)
{
    struct json_value content = { 0 };
    struct loop_result result = { 0 };

    if (json_parse(a, text, &content, NULL) < 0)
        return;
    loop_result_of(a, &(struct mcp_result){ .content = content, .structured = content }, &result);
    assert(result.n_blocks >= 1 && result.n_blocks <= 1 + LIMIT_TOOL_RESULT_IMAGES);
    assert(strlen(result.blocks[0].text) <= LIMIT_TOOL_RESULT_BYTES + 200);
    assert(utf8_is_valid(slice_of(result.blocks[0].text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice text = { (const char *)data, size };

    if (utf8_is_valid(text) && !memchr(data, '\0', size))
        read_call(a, arena_slicedup(a, text));
    read_result(a, text);
    return 0;
}
