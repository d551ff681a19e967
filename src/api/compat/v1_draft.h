/* The messages of a neutral request while a body of /v1/messages or /v1/responses is read. Every list is in the arena.
 *
 * A list that is full doubles and leaves its old memory unused; n_expected is the length that a list gets at its first
 * element. One thread.
 *
 *     v1_draft_begin(&turn, arena, n_expected);  v1_draft_add_block(&turn, block);  ...
 *     v1_draft_add_message(&draft, v1_draft_message(&turn, LLM_USER));
 */
#pragma once

#include "llm/llm.h"

struct v1_draft {
    struct arena *a;   /* borrowed */
    size_t n_expected; /* 0: unknown */
    struct llm_message *messages;
    size_t n;
};
void v1_draft_add_message(struct v1_draft *d, struct llm_message message);

/* One message: its pieces and their order. */
struct v1_draft_turn {
    struct arena *a; /* borrowed */
    size_t n_expected;
    struct llm_block *blocks;
    size_t n_blocks;
    struct llm_tool_call *calls;
    size_t n_calls;
    struct llm_thought *thoughts;
    size_t n_thoughts;
    unsigned char *order;
    size_t n_order;
};
void v1_draft_begin(struct v1_draft_turn *t, struct arena *a, size_t n_expected);
void v1_draft_add_block(struct v1_draft_turn *t, struct llm_block block);
void v1_draft_add_call(struct v1_draft_turn *t, struct llm_tool_call call);
void v1_draft_add_thought(struct v1_draft_turn *t, struct llm_thought thought);
struct llm_message v1_draft_message(const struct v1_draft_turn *t, enum llm_role role);
