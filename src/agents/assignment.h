/* A task as the message of a turn, and the turn's end as the outcome of the task's run.
 *
 * The message is the prompt of the handler or trigger, then the row's data between two lines that the data cannot hold,
 * with a sentence that it is data and no instruction. Pure functions, any thread; results in the arena.
 *
 *     r = agent_assignment_message(a, &(struct agent_assignment){ prompt, activity_json }, &message, e);
 *     ...  agent_assignment_outcome(turn_end, a, &outcome);
 */
#pragma once

#include "agents/process.h"
#include "agents/turns.h"

struct agent_assignment {
    const char *prompt;        /* NULL: none */
    const char *activity_json; /* as for process agents (agents/process.h) */
};

/* -E2BIG TOO_LARGE above LIMIT_AGENT_MESSAGE. */
int agent_assignment_message(struct arena *a, const struct agent_assignment *assignment, char **ret,
                             struct err *e) MUST_CHECK;

/* Of success, result_json is {text, data, tools_used, usage {prompt_tokens, completion_tokens, total_tokens,
 * is_estimated}, provider, model, steps, end}; data only when the whole answer is JSON. A turn succeeds when it was
 * answered, and when the model gave its closing answer after max_steps or repeated calls. log stays NULL. */
void agent_assignment_outcome(const struct agent_turn_end *end, struct arena *a, struct agent_outcome *ret);
