/* Shared by the targets for the protocols' readers: answers of an upstream, cut at places that the bytes themselves
 * choose. Every way of cutting must give the same result; the end is reported once and last; every delta is UTF-8. The
 * same bytes are also read as a whole answer, a list of models and a refusal.
 *
 *     FUZZ_PROTOCOL(llm_ollama)
 */
#pragma once

#include "base/hash.h"
#include "base/utf8.h"
#include "llm/answer.h"

#include <assert.h>

#define FUZZ_PROTOCOL(protocol)                                                                                        \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                                      \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                                       \
    {                                                                                                                  \
        fuzz_protocol(&protocol, (struct slice){ (const char *)data, size });                                          \
        return 0;                                                                                                      \
    }

enum { LARGEST_PIECE = 64 };

struct fuzz_answer {
    struct llm_answer read;
    struct llm_sink to;
    unsigned n_ends;
};

static inline int fuzz_text(void *arg, struct slice text)
{
    struct fuzz_answer *answer = arg;

    assert(answer->n_ends == 0 && text.n > 0 && utf8_is_valid(text));
    return answer->to.on_text(answer->to.arg, text);
}

static inline int fuzz_reasoning(void *arg, struct slice text)
{
    struct fuzz_answer *answer = arg;

    assert(answer->n_ends == 0 && utf8_is_valid(text));
    return answer->to.on_reasoning(answer->to.arg, text);
}

static inline int fuzz_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct fuzz_answer *answer = arg;

    assert(answer->n_ends == 0 && utf8_is_valid(arguments));
    return answer->to.on_tool(answer->to.arg, index, id, name, arguments);
}

static inline int fuzz_signature(void *arg, bool is_hidden, struct slice signature)
{
    struct fuzz_answer *answer = arg;

    assert(answer->n_ends == 0 && signature.n > 0 && utf8_is_valid(signature));
    return answer->to.on_signature(answer->to.arg, is_hidden, signature);
}

static inline int fuzz_extra(void *arg, size_t index, struct slice extra)
{
    struct fuzz_answer *answer = arg;

    assert(answer->n_ends == 0 && index < answer->read.n_tools && utf8_is_valid(extra) && extra.p[0] == '{');
    return answer->to.on_extra(answer->to.arg, index, extra);
}

static inline int fuzz_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct fuzz_answer *answer = arg;

    assert(++answer->n_ends == 1);
    return answer->to.on_end(answer->to.arg, why, usage, model);
}

static inline struct llm_sink fuzz_sink(struct fuzz_answer *answer)
{
    *answer = (struct fuzz_answer){ .n_ends = 0 };
    llm_answer_init(&answer->read);
    answer->to = llm_answer_sink(&answer->read);
    return (struct llm_sink){ fuzz_text, fuzz_reasoning, fuzz_tool, fuzz_signature, fuzz_extra, fuzz_end, answer };
}

/* seed 0: in one piece. */
static inline int fuzz_stream(const struct llm_protocol *p, struct slice text, uint64_t seed,
                              struct fuzz_answer *answer)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_sink sink = fuzz_sink(answer);
    struct llm_reader *reader = p->reader(a, &sink);
    struct err e = { 0 };
    int r = 0;

    for (size_t at = 0, n; at < text.n && r == 0; at += n) {
        seed = seed * 6364136223846793005u + (seed != 0);
        n = seed ? MIN(text.n - at, (size_t)(seed >> 33) % LARGEST_PIECE + 1) : text.n;
        r = p->on_bytes(reader, (struct slice){ text.p + at, n }, &e);
    }
    if (r == 0)
        r = p->on_close(reader, &e);
    assert(r < 0 || answer->n_ends == 1);
    return r;
}

static inline void fuzz_compare(const struct llm_answer *one, const struct llm_answer *other)
{
    assert(slice_eq(buf_slice(&one->text), buf_slice(&other->text)) &&
           slice_eq(buf_slice(&one->reasoning), buf_slice(&other->reasoning)));
    assert(slice_eq(buf_slice(&one->signatures), buf_slice(&other->signatures)) && one->n_pieces == other->n_pieces);
    assert(one->n_tools == other->n_tools && one->has_ended == other->has_ended && one->why == other->why);
    for (size_t i = 0; i < one->n_tools; i++) /* ids may be made up */
        assert(slice_eq(buf_slice(&one->tools[i].arguments), buf_slice(&other->tools[i].arguments)));
}

static inline void fuzz_rest(const struct llm_protocol *p, struct slice text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_account acc = { .name = "x", .preset = llm_presets, .api_key = "secret-of-mine" };
    struct llm_models models = { 0 };
    struct fuzz_answer answer;
    struct llm_sink sink = fuzz_sink(&answer);
    struct err e = { 0 };
    int r = p->on_whole(p->reader(a, &sink), text, &e);

    assert(r <= 0 && (r < 0 || answer.n_ends == 1));
    llm_answer_clear(&answer.read);
    r = p->on_models(text, a, &models, &e);
    assert(r < 0 || models.n == 0 || models.items[0].id[0]);
    assert(llm_refusal(&acc, 400 + (int)(text.n % 200), text, &e) < 0 && e.text[0] && !strstr(e.text, acc.api_key));
}

static inline void fuzz_protocol(const struct llm_protocol *p, struct slice text)
{
    struct fuzz_answer cut, whole;
    int r = fuzz_stream(p, text, hash_fast(text) | 1, &cut);

    assert(r == fuzz_stream(p, text, 0, &whole));
    fuzz_compare(&cut.read, &whole.read);
    llm_answer_clear(&cut.read);
    llm_answer_clear(&whole.read);
    fuzz_rest(p, text);
}
