/* How thinking is requested from Anthropic's models: with the fields of its own clients (request->thinking,
 * request->output_effort), or from the effort that OpenAI's clients send (docs.claude.com, "Extended thinking",
 * "Adaptive thinking", "Effort"). Private to src/llm. Any thread.
 *
 * With thinking the service refuses a temperature, a forced tool, and a tool call of this turn whose thoughts are lost.
 */
#pragma once

#include "llm/llm.h"

/* The thinking that request->effort leads to; LLM_THINKS_NOT: none is requested. */
enum llm_thinking anthropic_thinking(const struct llm_request *request);
/* The limit of the whole answer including thoughts; every request must have one. */
int64_t anthropic_max_tokens(const struct llm_request *request);
void anthropic_add_thinking(struct json_writer *w, const struct llm_request *request);
