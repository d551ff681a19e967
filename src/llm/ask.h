/* The body of a chat as callers write it (OpenAI's words, decision D8), turned into the neutral ask.
 *
 * llm_ask_fields is the route's table; llm_ask_of() says what a table cannot; both find every violation. Everything lands in the arena.
 *
 *     r = llm_ask_of(body, arena, &ask, e);
 */
#pragma once

#include "llm/llm.h"

struct llm_message_body {
    const char *role, *name, *tool_call_id, *reasoning, *reasoning_content;
    struct json_value content;
    struct field_list tool_calls, thinking_blocks;
};
struct llm_tool_function_body { const char *name, *description; struct json_value parameters; bool is_strict; };
struct llm_tool_body { struct llm_tool_function_body function; };

struct llm_ask_body {
    struct field_list messages, tools;
    const char *provider, *model;
    double temperature, top_p;
    bool has_temperature, has_top_p, has_max_completion_tokens;
    int64_t max_tokens, max_completion_tokens;
    struct json_value stop, tool_choice, response_format;
    const char *effort;                 /* in the table of OpenAI's form only */
};

extern const struct field llm_ask_fields[];
extern const struct field llm_message_fields[], llm_tool_fields[];      /* for other tables of the same words */
/* -EINVAL VALIDATION_ERROR for messages, blocks, tools and formats that are not as they must be. */
int llm_ask_of(const struct llm_ask_body *body, struct arena *a, struct llm_ask *ret, struct err *e) MUST_CHECK;
