/* Chats, whole and streamed, and errors in OpenAI's form (platform.openai.com/docs/api-reference/chat). */
#pragma once

#include "api/route.h"
#include "llm/form.h"

extern const struct field v1_openai_completion_shape[];
extern const struct error_form v1_openai_error;

extern const struct field v1_openai_usage_shape[];
void v1_openai_write_usage(struct json_writer *w, const struct llm_usage *usage);

struct v1_openai_state {
    bool wants_usage;
}; /* of a stream: t->state of struct llm_progress */
extern const struct llm_form v1_openai_form;
