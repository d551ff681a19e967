/* Messages, whole and streamed, and errors as Anthropic's clients read them (docs.anthropic.com/en/api/messages, /messages-streaming). */
#pragma once

#include "api/route.h"
#include "base/limits.h"
#include "llm/call.h"
#include "llm/relay.h"

extern const struct field v1_anthropic_message_shape[];
extern const struct error_form v1_anthropic_error;

/* The header request-id, once. */
void v1_anthropic_add_id(struct http_exchange *x);
/* The members of a message. */
void v1_anthropic_write(struct json_writer *w, struct arena *a, const struct llm_outcome *out);

enum v1_anthropic_block { V1_BLOCK_NONE, V1_BLOCK_TEXT, V1_BLOCK_THINKING, V1_BLOCK_TOOL };

struct v1_anthropic_state {             /* of a stream: told->state */
    enum v1_anthropic_block open;       /* the last of n_blocks */
    int64_t n_blocks;
    int64_t block_of[LIMIT_TOOL_CALLS]; /* by index of the tool call; 0: not begun, else one more than the block's index */
};
extern const struct llm_form v1_anthropic_form;
