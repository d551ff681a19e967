/* Answers of POST /v1/responses as typed, numbered events (platform.openai.com/docs/api-reference/responses-streaming).
 * On the loop. */
#pragma once

#include "llm/form.h"

/* t->state is a struct v1_response **. */
extern const struct llm_form v1_responses_form;
void v1_responses_end_state(void *state); /* for llm_chat.end_state */
