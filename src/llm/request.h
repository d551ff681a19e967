/* The body of a chat as callers write it (OpenAI's names, decision D8), turned into the neutral request.
 *
 * llm_request_fields is the route's table; llm_request_of() checks what a table cannot; both report every violation.
 * Everything is allocated in the arena.
 *
 *     r = llm_request_of(body, arena, &request, e);
 */
#pragma once

#include "llm/llm.h"

struct llm_message_body {
    const char *role, *name, *tool_call_id, *reasoning, *reasoning_content;
    struct json_value content;
    bool is_error;
    struct field_list tool_calls, thinking_blocks;
};
struct llm_tool_function_body {
    const char *name, *description;
    struct json_value parameters;
    bool is_strict;
};
struct llm_tool_body {
    struct llm_tool_function_body function;
};

struct llm_request_body {
    struct field_list messages, tools;
    const char *provider, *model;
    double temperature, top_p;
    bool has_temperature, has_top_p, has_max_completion_tokens;
    int64_t max_tokens, max_completion_tokens;
    struct json_value stop, tool_choice, response_format;
    const char *effort; /* in the table of OpenAI's form only */
};

extern const struct field llm_request_fields[];
extern const struct field llm_message_fields[], llm_tool_fields[]; /* for other tables with the same fields */
/* Does a message name a file or an image by address, so that the request may have to fetch it? For a route's
 * needs_long. Of a content with more than LIMIT_BLOCKS blocks, which is refused, no block is read. */
bool llm_messages_name_addresses(const struct field_list *messages);
bool llm_content_names_address(struct json_value content);
/* -EINVAL VALIDATION_ERROR for invalid messages, blocks, tools and formats. */
int llm_request_of(const struct llm_request_body *body, struct arena *a, struct llm_request *ret,
                   struct err *e) MUST_CHECK;
/* The blocks of one message's content, a text or an array; path: its name in errors. */
int llm_request_blocks(struct arena *a, struct json_value content, const char *path, struct llm_message *ret,
                       struct err *e) MUST_CHECK;
/* The tools of a list of struct llm_tool_body. */
void llm_request_tools(struct arena *a, const struct field_list *from, struct llm_request *ret);
