/* The body of POST /v1/messages (docs.anthropic.com/en/api/messages) turned into the neutral ask.
 *
 * The tables say the shape of the body; what they cannot say of blocks is told by v1_anthropic_ask(), every violation at once. A user's message
 * may become several: results of tools are messages of their own. Everything lands in the arena.
 *
 *     r = v1_anthropic_ask(req->body, req->arena, &ask, e);
 */
#pragma once

#include "llm/llm.h"

struct v1_choice_body { const char *type, *name; };
struct v1_output_body { const char *effort; };

struct v1_messages_body {
    const char *model;
    int64_t max_tokens;
    struct field_list messages, tools;
    struct json_value instructions;       /* `system` */
    struct json_value thinking;
    struct v1_output_body output;
    struct v1_choice_body tool_choice;
    struct field_strings stop_sequences;
    double temperature, top_p;
    bool has_temperature, has_top_p, is_streamed;
};

extern const struct field v1_messages_fields[];         /* max_tokens required */
extern const struct field v1_count_fields[];            /* of count_tokens: nothing about the answer */

/* -EINVAL VALIDATION_ERROR. The model stands as it was said. */
int v1_anthropic_ask(const struct v1_messages_body *body, struct arena *a, struct llm_ask *ret, struct err *e) MUST_CHECK;
