/* The prompts of model agents: the variables in their instructions.
 *
 * In instructions, {date}, {time}, {time_zone}, {workspace}, {user} and {app} are replaced; every other text in braces
 * stays as it is written. A variable without a value becomes "none". Pure functions, any thread; results in the arena.
 *
 *     r = agent_prompt_fill(a, agent.instructions, &(struct agent_prompt_values){ .workspace = "Sales" }, &text, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct agent_prompt_values {
    int64_t now_s;                      /* seconds since 1970; 0: now */
    const char *workspace, *user, *app; /* names as people see them; NULL: none. Control characters are escaped */
};
/* text NULL: "". Values are not searched for variables again. -E2BIG TOO_LARGE above LIMIT_INSTRUCTIONS_BYTES. */
int agent_prompt_fill(struct arena *a, const char *text, const struct agent_prompt_values *v, char **ret,
                      struct err *e) MUST_CHECK;
