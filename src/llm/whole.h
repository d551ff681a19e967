/* A whole chat: a turn (llm/turn.h) whose answer is gathered, and passed on as it comes to a tap, if there is one. No
 * thread waits for it.
 *
 *     llm_whole_start(turns, &(struct llm_whole_start){ .arena = TAKE(a), .plan = plan, .done = done, .arg = x },
 * &x->whole); done(): whole->progress, whole->answer ...  llm_whole_free(whole)
 */
#pragma once

#include "llm/form.h"
#include "llm/turn.h"

struct llm_whole;

struct llm_whole_start {
    struct arena *arena; /* given away: the plan and everything it points at */
    const struct llm_plan *plan;
    /* Called once, on the loop thread; from then on the owner of arg owns the chat and frees it. r 0: progress and
     * answer are complete. */
    void (*done)(void *arg, struct llm_whole *whole, int r, const struct err *e);
    void *arg;
    void *state; /* the form's: progress.state */
    /* Receives every delta after it was gathered; stays until done. Its functions may be NULL; a negative ends the chat
     * with -ECANCELED. After the first delta a failure is final. NULL: none. */
    const struct llm_sink *tap;
    struct budget_holder *holder; /* borrowed; charged for a large answer; NULL: no charge */
};

struct llm_whole {
    struct llm_progress progress; /* provider NULL: no attempt was made */
    struct llm_answer answer;
    struct llm_usage lost;  /* of earlier attempts, whose answers were read but not usable */
    int64_t upstream_us;    /* time spent with upstreams, also on failure */
    int64_t retry_after_ms; /* on failure: the upstream's Retry-After; 0: none */

    bool is_tapped; /* a delta was passed on; private, as the members below */
    struct llm_turn turn;
    struct llm_whole_start start; /* arena owned */
};

/* Loop thread. *ret is set before anything else happens; done may come inside. */
void llm_whole_start(struct llm_turns *turns, const struct llm_whole_start *start, struct llm_whole **ret);
void llm_whole_cancel(struct llm_whole *whole);            /* loop thread; done comes with -ECANCELED, never inside */
struct llm_whole *llm_whole_free(struct llm_whole *whole); /* after done; any thread */
/* Of all attempts, as reported by the upstream or estimated. */
struct llm_usage llm_whole_usage(const struct llm_whole *whole);
