/* Chats in this interface's own form (specification, "LLM objects" and "Server-Sent Events"; decision D8). Any thread. */
#pragma once

#include "llm/relay.h"

extern const struct llm_form llm_form_sdk;

/* `metrics`: tokens, duration in seconds, output tokens a second; `estimated` when the provider did not count. */
void llm_write_metrics(struct json_writer *w, const struct llm_answer *answer, double duration_s);
