/* JSON answers from protocols that cannot promise them: asked for by instruction, then checked (issue: response_format). Any thread.
 *
 *     r_ask = llm_format_plan(acc, &ask, arena, &must_check);   ...   if (must_check) r = llm_format_check(&rule, &text, e);
 */
#pragma once

#include "llm/llm.h"

/* What an answer is checked against. */
struct llm_format_rule { enum llm_format format; struct json_value schema; };

/* The ask as this account can carry it out: the same, or with an instruction in front. */
struct llm_ask llm_format_plan(const struct llm_account *acc, const struct llm_ask *ask, struct arena *a, bool *ret_must_check);
/* Does the schema keep to what services ask of one they enforce: no object takes members beyond those named, and all named are required? */
bool llm_format_is_strict(struct json_value schema);
/* Is the text the JSON that was asked for? *text loses blanks and a code fence around it. -EIO LLM_ERROR with what is wrong. */
int llm_format_check(const struct llm_format_rule *rule, struct slice *text, struct err *e) MUST_CHECK;
/* The request's rule with an arena of its own: the check comes when the request has ended. */
int llm_format_rule_copy(struct arena *a, const struct llm_ask *ask, struct llm_format_rule *ret, struct err *e) MUST_CHECK;
