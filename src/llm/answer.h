/* One answer gathered whole from a protocol's reader: text, thoughts, tool calls, why it ended, what it cost.
 *
 * Embedded in its owner. Each part is bounded by LIMIT_LLM_ANSWER, calls by LIMIT_TOOL_CALLS, changes between text, thoughts and calls by
 * LIMIT_ANSWER_PIECES: beyond, the sink says -EMSGSIZE with `e` set.
 *
 *     llm_answer_init(&answer);  sink = llm_answer_sink(&answer);  ...  llm_answer_estimate(&answer, tokens, n);
 */
#pragma once

#include "llm/llm.h"

struct llm_answer_tool { char *id, *name; struct buf arguments; size_t extra_at, n_extra; /* in `seals`; n_extra 0: none */ };   /* owned */

/* What was told in one go. */
struct llm_answer_piece {
    enum llm_piece kind;
    size_t at, n;                       /* bytes of `text` or `reasoning`; at: index of a tool call */
    size_t seal_at, n_seal;             /* of a thought, in `seals`; n_seal 0: none */
};

struct llm_answer {
    struct buf text, reasoning, seals;
    struct llm_answer_piece *pieces; size_t n_pieces;   /* owned; in the order they were told */
    struct llm_answer_tool *tools; size_t n_tools;      /* owned */
    size_t n_argument_bytes;            /* of all tools */
    enum llm_finish why;
    struct llm_usage usage;
    char *model;                        /* owned; NULL: the upstream does not tell */
    bool has_usage, has_ended;
    struct err *e;                      /* owned; NULL: none */
};

void llm_answer_init(struct llm_answer *answer);
void llm_answer_clear(struct llm_answer *answer);
struct llm_sink llm_answer_sink(struct llm_answer *answer);

/* For sinks of others that keep only parts. 0 or -EMSGSIZE UPSTREAM_TOO_LARGE in *answer->e. */
int llm_answer_add_tool(struct llm_answer *answer, size_t index, const char *id, const char *name, struct slice arguments) MUST_CHECK;
int llm_answer_add_extra(struct llm_answer *answer, size_t index, struct slice extra) MUST_CHECK;
void llm_answer_end(struct llm_answer *answer, enum llm_finish why, const struct llm_usage *usage, const char *model);

/* Text of a piece that is no call, and its seal; what a format check cut away is not told. */
struct slice llm_answer_text(const struct llm_answer *answer, const struct llm_answer_piece *piece);
struct slice llm_answer_seal(const struct llm_answer *answer, const struct llm_answer_piece *piece);

/* Usage that the upstream did not tell is counted: about four bytes of text a token. n_answer_bytes: text and thoughts. */
int64_t llm_prompt_tokens(const struct llm_ask *ask);
/* What was not told (below 0) adds nothing. */
void llm_usage_add(struct llm_usage *sum, const struct llm_usage *more);
void llm_answer_estimate(struct llm_answer *answer, int64_t prompt_tokens, size_t n_answer_bytes);
/* [{id, type, function: {name, arguments}}], OpenAI's form; has_extras: with extra_content where there is some. */
void llm_answer_write_tools(const struct llm_answer *answer, struct json_writer *w, const char *name, bool has_extras);
