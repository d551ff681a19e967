/* The body of POST /v1/responses as the neutral request (platform.openai.com/docs/api-reference/responses/create).
 *
 * The table checks single fields; v1_responses_request() checks the rest: the input (api/compat/v1_responses_items.h),
 * tools, formats. All violations are reported. The result is in the arena and points into the JSON of the body and of
 * the thread.
 *
 *     r = v1_responses_request(body, &source, arena, &request, e);
 */
#pragma once

#include "api/compat/v1_responses_items.h"

struct v1_format_body {
    const char *type, *name, *description;
    struct json_value schema;
    bool is_strict, says_strict;
};
struct v1_responses_body {
    const char *model, *instructions, *previous_response_id;
    struct json_value input, tool_choice, metadata, conversation, prompt;
    struct field_list tools;
    int64_t max_output_tokens;
    double temperature, top_p;
    bool has_temperature, has_top_p, is_streamed, store, is_background;
    struct v1_text_body {
        struct v1_format_body format;
    } text;
    struct v1_reasoning_body {
        const char *effort;
    } reasoning;
};
extern const struct field v1_responses_fields[];

int v1_responses_request(const struct v1_responses_body *body, const struct v1_items *before, struct arena *a,
                         struct llm_request *ret, struct err *e) MUST_CHECK;
