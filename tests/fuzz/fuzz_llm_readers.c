/* Answers of upstreams to each protocol's reader. The first byte chooses the protocol and how the bytes are split: splitting must not
 * change what is read. The same bytes are read as a whole answer, as a list of models and as a refusal too. */
#include "llm/answer.h"

#include <assert.h>

static const struct llm_protocol *const protocols[] = { &llm_openai_chat, &llm_openai_responses, &llm_anthropic_messages, &llm_ollama };

static int read_stream(const struct llm_protocol *p, struct slice text, size_t piece, struct llm_answer *answer)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_sink sink;
    struct llm_reader *reader;
    int r = 0;

    llm_answer_init(answer);
    sink = llm_answer_sink(answer);
    reader = p->reader(a, &sink);
    for (size_t at = 0; at < text.n && r == 0; at += piece)
        r = p->on_bytes(reader, (struct slice){ text.p + at, MIN(piece, text.n - at) }, NULL);
    return r == 0 ? p->on_close(reader, NULL) : r;
}

static void compare(const struct llm_protocol *p, struct slice text, size_t piece)
{
    struct llm_answer split, whole;
    int r = read_stream(p, text, piece, &split);

    assert(r == read_stream(p, text, text.n, &whole));
    assert(slice_eq(buf_slice(&split.text), buf_slice(&whole.text)) && slice_eq(buf_slice(&split.reasoning), buf_slice(&whole.reasoning)));
    assert(split.n_tools == whole.n_tools && split.has_ended == whole.has_ended && (r < 0 || whole.has_ended));
    llm_answer_clear(&split);
    llm_answer_clear(&whole);
}

static void read_rest(const struct llm_protocol *p, struct slice text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_account acc = { .name = "x", .preset = llm_presets };
    struct llm_models models = { 0 };
    struct llm_answer answer;
    struct llm_sink sink;
    struct err e = { 0 };
    int r;

    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    r = p->on_whole(p->reader(a, &sink), text, &e);
    assert(r <= 0 && (r < 0 || answer.has_ended));
    llm_answer_clear(&answer);
    r = p->on_models(text, a, &models, &e);
    assert(r < 0 || models.n == 0 || models.items[0].id[0]);
    assert(llm_refusal(&acc, 400 + (int)(text.n % 200), text, &e) < 0 && e.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data + 1, size - 1 };

    if (size < 2)
        return 0;
    compare(protocols[data[0] % ARRAY_SIZE(protocols)], text, (size_t)data[0] / ARRAY_SIZE(protocols) + 1);
    read_rest(protocols[data[0] % ARRAY_SIZE(protocols)], text);
    return 0;
}
