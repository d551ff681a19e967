/* Messages, whole and streamed, and errors in Anthropic's form (docs.anthropic.com/en/api/messages,
 * /messages-streaming). */
#pragma once

#include "api/route.h"
#include "base/limits.h"
#include "llm/form.h"

extern const struct field v1_anthropic_message_shape[];
extern const struct error_form v1_anthropic_error;

/* Adds the header request-id, if it is not set yet. */
void v1_anthropic_add_id(struct http_exchange *x);

enum v1_anthropic_block { V1_BLOCK_NONE, V1_BLOCK_TEXT, V1_BLOCK_THINKING, V1_BLOCK_TOOL };

struct v1_anthropic_state {       /* of a stream: t->state of struct llm_progress */
    enum v1_anthropic_block open; /* the last of n_blocks */
    int64_t n_blocks;
    int64_t block_of[LIMIT_TOOL_CALLS]; /* by index of the tool call; 0: not begun, else the block's index plus one */
};
extern const struct llm_form v1_anthropic_form;
