/* A protocol under test: its answers fed in pieces of every size, its requests as text.
 *
 *     check_stream(&llm_ollama, stream, "text|thoughts|tools|why|usage|model", 0);
 */
#pragma once

#include "base/limits.h"
#include "llm/answer.h"
#include "llm/protocols/wire.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* An id that the reader makes up has another value each time. */
static inline const char *id_received(const char *id)
{
    return strncmp(id, "call_", 5) == 0 && strlen(id) == 41 ? "made" : id;
}

/* "text|thoughts|id name arguments,...|why|prompt+completion|model", with - for values that were not reported. */
static inline char *progress(struct arena *a, const struct llm_answer *answer)
{
    const char *tools = "", *usage = "-";

    for (size_t i = 0; i < answer->n_tools; i++)
        tools = arena_printf(a, "%s%s%s %s %s", tools, i ? "," : "", id_received(answer->tools[i].id),
                             answer->tools[i].name, buf_str(&answer->tools[i].arguments));
    if (answer->has_usage)
        usage = arena_printf(a, "%d+%d", (int)answer->usage.prompt_tokens, (int)answer->usage.completion_tokens);
    return arena_printf(a, "%s|%s|%s|%s|%s|%s", buf_str(&answer->text), buf_str(&answer->reasoning), tools,
                        answer->has_ended ? llm_finish_name(answer->why) : "-", usage,
                        answer->model ? answer->model : "-");
}

static inline int feed(const struct llm_protocol *p, const char *text, size_t piece, struct arena *a,
                       struct llm_answer *answer, struct err *e)
{
    struct llm_sink sink = llm_answer_sink(answer);
    struct llm_reader *reader = p->reader(a, &sink);
    size_t n = strlen(text);
    int r = 0;

    for (size_t at = 0; at < n && r == 0; at += piece)
        r = p->on_bytes(reader, (struct slice){ text + at, MIN(piece, n - at) }, e);
    return r == 0 ? p->on_close(reader, e) : r;
}

/* wanted is the result for every size of pieces; with an error, its code follows. */
static inline void check_stream(const struct llm_protocol *p, const char *text, const char *wanted, int r,
                                const char *code)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 64, 4096 };

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_answer answer;
        struct err e = { 0 };

        llm_answer_init(&answer);
        assert_int_equal(feed(p, text, pieces[i], a, &answer, &e), r);
        assert_string_equal(progress(a, &answer), wanted);
        assert_string_equal(e.code, code ? code : "");
        llm_answer_clear(&answer);
    }
}

static inline void check_whole(const struct llm_protocol *p, const char *text, const char *wanted, int r,
                               const char *code)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_answer answer;
    struct err e = { 0 };
    struct llm_sink sink;

    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    assert_int_equal(p->on_whole(p->reader(a, &sink), slice_of(text), &e), r);
    assert_string_equal(progress(a, &answer), wanted);
    assert_string_equal(e.code, code ? code : "");
    llm_answer_clear(&answer);
}

/* "thought hm (signature)", "text a", "hidden (data)", "call 0", in the order in which they were reported. */
static inline char *pieces_received(struct arena *a, const struct llm_answer *answer)
{
    static const char *const kinds[] = { "thought", "text", "call", "hidden" };
    char *all = arena_strdup(a, "");

    for (size_t i = 0; i < answer->n_pieces; i++) {
        const struct llm_answer_piece *piece = &answer->pieces[i];
        struct slice text = llm_answer_text(answer, piece), signature = llm_answer_signature(answer, piece);

        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", kinds[piece->kind]);
        if (piece->kind == LLM_PIECE_CALL)
            all = arena_printf(a, "%s %zu", all, piece->at);
        else if (text.n > 0)
            all = arena_printf(a, "%s %.*s", all, (int)text.n, text.p);
        if (signature.n > 0)
            all = arena_printf(a, "%s (%.*s)", all, (int)signature.n, signature.p);
    }
    return all;
}

/* The same pieces from a stream, for every way of cutting it, and from a whole answer. */
static inline void check_pieces(const struct llm_protocol *p, const char *stream, const char *whole, const char *wanted)
{
    static const size_t pieces[] = { 1, 7, 4096, 0 /* whole */ };

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_answer answer;
        struct llm_sink sink;
        struct err e = { 0 };

        llm_answer_init(&answer);
        sink = llm_answer_sink(&answer);
        if (pieces[i])
            assert_int_equal(feed(p, stream, pieces[i], a, &answer, &e), 0);
        else
            assert_int_equal(p->on_whole(p->reader(a, &sink), slice_of(whole), &e), 0);
        assert_string_equal(pieces_received(a, &answer), wanted);
        llm_answer_clear(&answer);
    }
}

static inline struct json_value json_of(struct arena *a, const char *text)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    return v;
}

/* A request with everything: system, image, file, a tool call, its result. */
static inline struct llm_request full_request(struct arena *a)
{
    static const struct llm_block rules[] = { { LLM_BLOCK_TEXT, .text = "Be brief." } };
    static const struct llm_block user[] = {
        { LLM_BLOCK_TEXT, .text = "Look:" },
        { LLM_BLOCK_IMAGE_DATA, .media_type = "image/png", .base64 = "QUJD" },
    };
    static const struct llm_tool_call calls[] = { { "c1", "weather", "{\"city\":\"Bern\"}" }, { "c2", "time", "{}" } };
    static const struct llm_block result1[] = { { LLM_BLOCK_TEXT, .text = "rain" } },
                                  result2[] = { { LLM_BLOCK_TEXT, .text = "noon" } };
    static const struct llm_message messages[] = {
        { .role = LLM_SYSTEM, .blocks = rules, .n_blocks = 1 },
        { .role = LLM_USER, .blocks = user, .n_blocks = 2 },
        { .role = LLM_ASSISTANT, .tool_calls = calls, .n_tool_calls = 2 },
        { .role = LLM_TOOL, .blocks = result1, .n_blocks = 1, .tool_call_id = "c1" },
        { .role = LLM_TOOL, .blocks = result2, .n_blocks = 1, .tool_call_id = "c2" },
    };
    static const char *const stop[] = { "END" };
    struct llm_tool *tools = arena_array(a, 2, sizeof(*tools));

    tools[0] = (struct llm_tool){ "weather", "Tells it", json_of(a, "{\"type\":\"object\"}"), false };
    tools[1] = (struct llm_tool){ .name = "time" };
    return (struct llm_request){ .messages = messages,
                                 .n_messages = 5,
                                 .tools = tools,
                                 .n_tools = 2,
                                 .model = "m",
                                 .temperature = 0.5,
                                 .max_tokens = 100,
                                 .stop = { stop, 1 },
                                 .is_streamed = true };
}

static inline const char *body_of(struct arena *a, const char *preset, const struct llm_request *request,
                                  struct http_call_request *ret)
{
    const struct llm_preset *row = llm_preset_find(preset);
    const struct llm_account acc = { .name = preset, .preset = row, .base_url = row->base_url, .api_key = "k" };

    assert_int_equal(row->protocol->request(&acc, request, a, ret, NULL), 0);
    return ret->body.p;
}

static inline const char *header_value(const struct http_call_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %s", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("%s in %s", part, text);
}
