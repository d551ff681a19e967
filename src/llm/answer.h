/* One whole answer, gathered from a protocol's reader: text, thoughts, tool calls, the reason of its end, its usage.
 *
 * Embedded in its owner. Each part is bounded by LIMIT_LLM_ANSWER, calls by LIMIT_TOOL_CALLS, changes between text,
 * thoughts and calls by LIMIT_ANSWER_PIECES: beyond these limits the sink returns -EMSGSIZE with `e` set.
 *
 *     llm_answer_init(&answer);  sink = llm_answer_sink(&answer);  ...  llm_answer_estimate(&answer, tokens, n);
 */
#pragma once

#include "llm/llm.h"

struct llm_answer_tool {
    char *id, *name;
    struct buf arguments;
    size_t extra_at, n_extra; /* in `signatures`; n_extra 0: none */
};                            /* owned */

/* A run of text, a run of thoughts, or one tool call. */
struct llm_answer_piece {
    enum llm_piece kind;
    size_t at, n;                     /* bytes of `text` or `reasoning`; at: index of a tool call */
    size_t signature_at, n_signature; /* of a thought, in `signatures`; n_signature 0: none */
};

struct llm_answer {
    struct buf text, reasoning, signatures;
    struct llm_answer_piece *pieces;
    size_t n_pieces; /* owned; in the order of the answer */
    struct llm_answer_tool *tools;
    size_t n_tools;          /* owned */
    size_t n_argument_bytes; /* of all tools */
    enum llm_finish why;
    struct llm_usage usage;
    char *model; /* owned; NULL: the upstream does not report the model */
    bool has_usage, has_ended;
    struct err *e; /* owned; NULL: none */
};

void llm_answer_init(struct llm_answer *answer);
void llm_answer_clear(struct llm_answer *answer);
struct llm_sink llm_answer_sink(struct llm_answer *answer);

/* For other sinks, which keep only parts of the answer. 0 or -EMSGSIZE UPSTREAM_TOO_LARGE in *answer->e. */
int llm_answer_add_tool(struct llm_answer *answer, size_t index, const char *id, const char *name,
                        struct slice arguments) MUST_CHECK;
int llm_answer_add_extra(struct llm_answer *answer, size_t index, struct slice extra) MUST_CHECK;
void llm_answer_end(struct llm_answer *answer, enum llm_finish why, const struct llm_usage *usage, const char *model);

/* The text of a piece that is no call, and its signature. The text leaves out what a format check cut away. */
struct slice llm_answer_text(const struct llm_answer *answer, const struct llm_answer_piece *piece);
struct slice llm_answer_signature(const struct llm_answer *answer, const struct llm_answer_piece *piece);

/* Estimates the usage that the upstream did not report: about four bytes of text a token. n_answer_bytes: text and
 * thoughts. */
int64_t llm_prompt_tokens(const struct llm_request *request);
/* A count that was not reported (below 0) adds nothing. */
void llm_usage_add(struct llm_usage *sum, const struct llm_usage *more);
void llm_answer_estimate(struct llm_answer *answer, int64_t prompt_tokens, size_t n_answer_bytes);
/* [{id, type, function: {name, arguments}}], OpenAI's form; has_extras: calls that carry an extra get extra_content. */
void llm_answer_write_tools(const struct llm_answer *answer, struct json_writer *w, const char *name, bool has_extras);
/* The arguments of a tool call as an object. Models sometimes write other JSON or none: {} then. The value is parsed in
 * the arena. */
void llm_write_arguments(struct json_writer *w, const char *name, struct slice arguments, struct arena *a);
