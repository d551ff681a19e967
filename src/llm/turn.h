/* One chat, on the loop: a turn sends the request to the accounts of a plan one after the other until one answers into
 * a sink. No thread waits.
 *
 * A turn knows no client: relay.h adds one that reads a stream, whole.h gathers the answer. Embedded in its owner,
 * which keeps it until on_end. A worker reads an answer that comes in one large piece, so the sink's functions run on
 * one thread at a time, not always the loop's; everything else runs on the loop thread.
 *
 *     llm_turn_start(turns, &turn, &(struct llm_turn_start){ .plan = plan, .sink = sink, .events = &events, .arg = x
 * });      ...  on_end
 */
#pragma once

#include "llm/attempts.h"
#include "llm/plan.h"

struct pool;
struct budget_holder;
struct llm_turn;
struct llm_turns; /* what all turns of a service share */

/* workers: reads large answers; NULL: the loop does. Loop thread, or before it runs. */
int llm_turns_new(struct loop *l, struct settings *settings, struct pool *workers, struct llm_turns **ret,
                  struct err *e) MUST_CHECK;
/* After the pool has stopped; loop thread, or after it ended. Turns that still run end with -ECANCELED. */
struct llm_turns *llm_turns_free(struct llm_turns *turns);
struct loop *llm_turns_loop(const struct llm_turns *turns);
struct pool *llm_turns_workers(const struct llm_turns *turns); /* NULL: none */

struct llm_turn_events {
    /* A new attempt begins, with another account or the same: discard everything the sink received before. */
    void (*on_attempt)(void *arg);
    /* Before and after bytes are read on the loop. after_read may pass on what the sink received. -EAGAIN: read no more
     * until llm_turn_resume(); another negative ends the attempt. Both may be NULL. */
    void (*before_read)(void *arg);
    int (*after_read)(void *arg);
    /* Of an answer that must be checked, after llm_turn_check(): is the whole answer what was asked for? Any thread,
     * and nothing else of the turn runs meanwhile. A negative fails the attempt. */
    int (*check)(void *arg, struct err *e);
    /* Loop thread: the answer that a worker checked is good; between before_read and after_read. A negative fails the
     * attempt. */
    int (*on_checked)(void *arg);
    /* Called once, last; the owner may free the turn. r 0: the sink received a whole answer. The call may come inside
     * llm_turn_start(). */
    void (*on_end)(void *arg, int r, const struct err *e);
};

struct llm_turn_start {
    const struct llm_plan *plan; /* stays until on_end */
    struct llm_sink sink;        /* copied; its on_end calls llm_turn_answered() */
    const struct llm_turn_events *events;
    void *arg;
    struct budget_holder *holder; /* borrowed; charged for an answer that comes in one large piece; NULL: no charge */
};

enum llm_turn_state { LLM_TURN_ENDED, LLM_TURN_WAITS, LLM_TURN_FETCHES, LLM_TURN_READS /* or checks, on a worker */ };

struct llm_turn {
    /* for the owner to read */
    size_t at;                         /* index into the plan's picks: the present or last account */
    const struct llm_account *account; /* NULL: no attempt was made */
    int64_t began_us;                  /* clock_mono_us() at the start of the attempt */
    int64_t lost_us;                   /* time that earlier attempts took */
    int64_t retry_after_ms;            /* the Retry-After of a refusal; 0: none */

    /* private */
    struct llm_turns *turns; /* a reference */
    struct llm_turn *next, *previous;
    struct llm_turn_start start;
    struct llm_attempts attempts;
    enum llm_turn_state state;
    bool is_cancelled;
    bool is_committed; /* the answer is being passed on: no further attempt */
    bool is_answered;  /* the sink received the end of the answer */
    bool is_checking;  /* a worker checks the answer */
    bool is_paused;
    struct http_fetch *fetch;    /* a reference; NULL: none runs */
    struct arena *attempt_arena; /* owned; the reader's */
    struct llm_reader *reader;
    struct buf body;        /* of a refusal, or of an answer that is not streamed */
    size_t n_bytes, n_paid; /* of an answer */
    int status;
    int result;               /* of reading the answer, so far */
    int check_result;         /* the worker's */
    struct err *check_error;  /* owned; the worker's */
    struct err *e;            /* owned; NULL: no error */
    struct loop_timer *timer; /* owned; the wait before the next attempt */
};

void llm_turn_start(struct llm_turns *turns, struct llm_turn *t, const struct llm_turn_start *start);
void llm_turn_cancel(struct llm_turn *t); /* on_end comes with -ECANCELED, never inside */
void llm_turn_resume(struct llm_turn *t);
/* From now on a failure ends the turn: no further attempt is made. */
void llm_turn_commit(struct llm_turn *t);
bool llm_turn_has_sent(const struct llm_turn *t); /* no upstream still reads its request */

/* For the sink's on_end, when events->check is set. 0: the answer is good, or its plan asks for no check; -EINPROGRESS:
 * a worker checks it, and events->on_checked or the attempt's failure follows; another negative: events->check's. */
int llm_turn_check(struct llm_turn *t) MUST_CHECK;

static inline const struct llm_planned *llm_turn_planned(const struct llm_turn *t)
{
    return &t->start.plan->of[t->at];
}

/* For the sink: the answer has ended; further bytes are ignored. */
static inline void llm_turn_answered(struct llm_turn *t)
{
    t->is_answered = true;
}

/* For the sink: the error to set before it returns a negative. */
static inline struct err *llm_turn_err(struct llm_turn *t)
{
    return err_place(&t->e);
}
