/* The context of a turn: the messages that the model gets, fitted to its window.
 *
 * Instructions and the newest turn always stay. What does not fit is cut in this order: long results of tools are
 * shortened, oldest first, and marked; then the oldest turns leave, and the model writes a summary of them, which is
 * kept with the thread; then the results of the newest turn are shortened. What was cut is told as JSON for the turn's
 * record. One turn, its thread.
 *
 *     r = context_begin(&context, &messages, &n, e);  ...  r = context_fit(&context, &fit, e);  in agent_loop's on_fit
 */
#pragma once

#include "agents/loop.h"
#include "store/tables/conversations.h"

struct context {
    struct models_call *call; /* its arena holds everything */
    const struct agent_definition *agent;
    const char *instructions; /* with their variables filled in; NULL: none */
    int64_t thread_id, turn_id;
    const char *message;   /* the newest, of the user */
    const char *task_uuid; /* only turns of this task are history, and no summary is; NULL: all of the thread */

    /* private */
    struct summary_row summary;
    const int64_t *turn_ids; /* of the history in the messages, oldest first */
    size_t n_turns;
    size_t n_left; /* of them, that have left */
    bool is_full;  /* the history has LIMIT_CONTEXT_TURNS turns: half of them leave */
    size_t n_shortened;
    int64_t n_bytes_cut, window_tokens, toolbox_tokens; /* tokens: 0, not known yet */
    struct llm_usage used;                              /* by summaries */
    const char *summary_failed;                         /* the error's code; NULL: it did not fail */
    void (*report)(void *arg, const char *sentence);    /* what is done now; NULL: nobody listens */
    void *arg;
};

/* The history of the thread, its instructions and the newest message. Calls of tools whose result is not known, because
 * their turn was interrupted, get one that says so: every call has exactly one result. */
int context_begin(struct context *c, const struct llm_message **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* As agent_loop_events.on_fit. */
int context_fit(struct context *c, struct agent_fit *fit, struct err *e) MUST_CHECK;
/* JSON of what was cut; NULL: nothing. */
const char *context_cut(const struct context *c);
