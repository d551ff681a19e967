/* Chats in this interface's own form (specification, "LLM objects" and "Server-Sent Events"; decision D8). Any thread.
 */
#pragma once

#include "base/fields.h"
#include "llm/form.h"

extern const struct llm_form llm_form_sdk;
/* `function` of a tool call in an answer, in every form that has one. */
extern const struct field llm_function_shape[];

/* `metrics`: tokens, duration in seconds, output tokens a second; `estimated` when the provider did not count. */
void llm_write_metrics(struct json_writer *w, const struct llm_answer *answer, double duration_s);
