/* The body of POST /v1/messages (docs.anthropic.com/en/api/messages) as the neutral request.
 *
 * The tables define the shape of the body; v1_anthropic_request() checks what tables cannot express about blocks and
 * reports all violations together. A user's message may become several: results of tools are separate messages.
 * Everything is in the arena.
 *
 *     r = v1_anthropic_request(req->body, req->arena, &request, e);
 */
#pragma once

#include "llm/llm.h"

struct v1_choice_body {
    const char *type, *name;
};
struct v1_output_body {
    const char *effort;
    struct json_value format;
};

struct v1_messages_body {
    const char *model;
    int64_t max_tokens;
    struct field_list messages, tools;
    struct json_value instructions; /* `system` */
    struct json_value thinking;
    struct v1_output_body output;
    struct json_value output_format; /* the former name of output_config.format */
    struct v1_choice_body tool_choice;
    struct field_strings stop_sequences;
    double temperature, top_p;
    bool has_temperature, has_top_p, is_streamed;
};

extern const struct field v1_messages_fields[]; /* max_tokens required */
extern const struct field v1_count_fields[];    /* for count_tokens: no fields about the answer */

/* Does the body name a document or an image by its address, so that the service may have to fetch it? */
bool v1_anthropic_names_addresses(const struct v1_messages_body *body);
/* -EINVAL VALIDATION_ERROR. The model's name is not resolved. */
int v1_anthropic_request(const struct v1_messages_body *body, struct arena *a, struct llm_request *ret,
                         struct err *e) MUST_CHECK;
