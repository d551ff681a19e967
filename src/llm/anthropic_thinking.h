/* How Anthropic's models are asked to think: in the words of its own clients (ask->thinking, ask->output_effort), or for the effort that OpenAI's
 * clients name (docs.claude.com, "Extended thinking", "Adaptive thinking", "Effort"). Private to src/llm. Any thread.
 *
 * With an effort the service would refuse a temperature, a tool by force, and a call of this turn whose thoughts are lost.
 */
#pragma once

#include "llm/llm.h"

/* What ask->effort comes to; LLM_THINKS_NOT: nothing is asked for. */
enum llm_thinking anthropic_thinking(const struct llm_ask *ask);
/* The limit of the whole answer, thoughts among it: a request must say one. */
int64_t anthropic_max_tokens(const struct llm_ask *ask);
void anthropic_add_thinking(struct json_writer *w, const struct llm_ask *ask);
