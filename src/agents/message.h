/* Messages of models as JSON text, for the store and for routes that show a conversation.
 *
 * {"role", "content": text or blocks, "tool_calls": [{id, name, arguments, extra}], "tool_call_id", "name", "is_error",
 * "reasoning", "thoughts": [{text, signature}], "order": [0..3]}; a block is {type: text | image | file, ...}. Members
 * without a value are left out. What agent_message_print() writes, agent_message_read() reads back unchanged. Pure
 * functions, any thread.
 *
 *     agent_message_print(&out, &message);
 *     r = agent_message_read(arena, row.message, &message, e);
 */
#pragma once

#include "llm/llm.h"

void agent_message_print(struct buf *out, const struct llm_message *message);
/* Texts are in the arena. -EINVAL INVALID_JSON. */
int agent_message_read(struct arena *a, const char *text, struct llm_message *ret, struct err *e) MUST_CHECK;
/* A message of one text. */
struct llm_message agent_message_of(struct arena *a, enum llm_role role, const char *text);
/* The texts of the message's blocks, one after the other. */
char *agent_message_text(struct arena *a, const struct llm_message *message);
/* An image block of MCP {type, mimeType, data}, when models take it: PNG, JPEG, GIF or WebP, at most
 * LIMIT_TOOL_IMAGE_BYTES of base64. */
bool agent_message_image(struct json_value block, struct llm_block *ret);
const char *agent_role_name(enum llm_role role); /* "system", "user", "assistant", "tool" */
