/* The stand-in: a text with rules and, behind a NUL, a schema. Every answer must be one that the reader of OpenAI's
 * chats reads to its end, whole and streamed with the same words. */
#include "base/utf8.h"
#include "llm/answer.h"
#include "stand_in/rules.h"

#include <assert.h>

static void answer(struct arena *a, const struct llm_request *request, struct llm_answer *ret)
{
    struct llm_sink sink = llm_answer_sink(ret);
    struct http_call_request http = { 0 };
    struct llm_reader *reader = llm_stand_in.reader(a, &sink);
    int r = llm_stand_in.request(NULL, request, a, &http, NULL);

    assert(r == 0 && http.inside->piece_ms >= 0 && http.inside->piece_ms <= LIMIT_STAND_IN_WAIT_MS);
    if (http.inside->status != 200 || http.inside->is_cut)
        return;
    for (size_t i = 0; r == 0 && i < http.inside->n_pieces; i++)
        r = request->is_streamed ? llm_stand_in.on_bytes(reader, http.inside->pieces[i], NULL)
                                 : llm_stand_in.on_whole(reader, http.inside->pieces[i], NULL);
    if (r == 0 && request->is_streamed)
        r = llm_stand_in.on_close(reader, NULL);
    assert(r == 0 && ret->has_ended);
}

static void compare(const struct llm_request *request)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request streamed = *request;
    struct llm_answer one, other;

    streamed.is_streamed = true;
    llm_answer_init(&one);
    llm_answer_init(&other);
    answer(a, request, &one);
    answer(a, &streamed, &other);
    assert(slice_eq(buf_slice(&one.text), buf_slice(&other.text)));
    assert(slice_eq(buf_slice(&one.reasoning), buf_slice(&other.reasoning)));
    assert(one.n_tools == other.n_tools && one.why == other.why);
    assert(one.usage.completion_tokens == other.usage.completion_tokens);
    for (size_t i = 0; i < one.n_tools; i++)
        assert(slice_eq(buf_slice(&one.tools[i].arguments), buf_slice(&other.tools[i].arguments)));
    llm_answer_clear(&one);
    llm_answer_clear(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t n = nul ? (size_t)(nul - (const char *)data) : size;
    struct slice rest = { nul ? nul + 1 : NULL, nul ? size - n - 1 : 0 };
    struct llm_block block = { LLM_BLOCK_TEXT, .text = arena_strndup(a, (const char *)data, n) };
    struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    struct llm_tool tool = { .name = "f" };
    struct llm_request request = { .messages = &message, .n_messages = 1, .tools = &tool, .n_tools = 1, .model = "m" };

    if (!utf8_is_valid(slice_of(block.text))) /* texts of requests are UTF-8 */
        return 0;
    if (json_parse(a, rest, &tool.parameters, NULL) == 0) {
        request.format = LLM_FORMAT_SCHEMA;
        request.schema = tool.parameters;
    }
    request.max_tokens = (int64_t)(n % 7 ? 0 : n);
    compare(&request);
    return 0;
}
