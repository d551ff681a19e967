/* JSON answers from protocols that cannot guarantee them: an instruction requests JSON, then the answer is checked
 * (issue: response_format). Any thread.
 *
 *     planned = llm_format_plan(acc, &request, arena, &must_check);   ...   if (must_check) r = llm_format_check(&rule,
 * &text, e);
 */
#pragma once

#include "base/json_schema.h"
#include "llm/llm.h"

/* What an answer is checked against. */
struct llm_format_rule {
    enum llm_format format;
    const struct json_schema *schema; /* of LLM_FORMAT_SCHEMA */
};

/* The request as this account can serve it: unchanged, or with an instruction as its first message. */
struct llm_request llm_format_plan(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                                   bool *ret_must_check);
/* Does the schema meet the rules of services for strict schemas: no object takes members beyond its named properties,
 * and all of these are required? */
bool llm_format_is_strict(struct json_value schema);
/* Is the text the requested JSON? Surrounding blanks and a code fence are removed from *text. -EIO LLM_ERROR says what
 * is wrong. */
int llm_format_check(const struct llm_format_rule *rule, struct slice *text, struct err *e) MUST_CHECK;
/* Copies the request's rule into the arena: the check runs after the request has ended. -EINVAL VALIDATION_ERROR when
 * the request's schema cannot be used. */
int llm_format_rule_copy(struct arena *a, const struct llm_request *request, struct llm_format_rule *ret,
                         struct err *e) MUST_CHECK;
