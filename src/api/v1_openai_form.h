/* Chats, whole and streamed, and errors as OpenAI's clients read them (platform.openai.com/docs/api-reference/chat). */
#pragma once

#include "api/route.h"
#include "llm/call.h"
#include "llm/relay.h"

extern const struct field v1_openai_completion_shape[];
extern const struct error_form v1_openai_error;

/* The members of a completion. */
void v1_openai_write(struct json_writer *w, const struct llm_outcome *out);

struct v1_openai_state { bool wants_usage; };           /* of a stream: told->state */
extern const struct llm_form v1_openai_form;
