/* One relay between relay.c (what the upstream says) and relay_client.c (what the client gets, leaves and comes back to). Private to src/llm.
 *
 * A relay belongs to the loop thread from its begin on and frees itself when client, upstream and keeping have all ended.
 */
#pragma once

#include "llm/attempts.h"
#include "llm/relay.h"
#include "llm/ring.h"

struct llm_relays {
    struct loop *loop;                  /* borrowed */
    struct settings *settings;          /* borrowed */
    struct http_client *client;         /* owned; NULL: closed */
    struct relay *first;                /* running ones */
    struct buf spare;                   /* memory for the next relay's `out`; that of most is empty most of the time */
    atomic_size_t n_refs;               /* the owner's, and one a relay */
    size_t n_kept;                      /* relays without a client */
    bool is_closing;
};

struct relay {
    struct llm_relays *owner;
    struct relay *next, *previous;
    struct llm_relay_start start;       /* arena owned */
    struct llm_attempts attempts;
    struct llm_told told;
    struct llm_answer answer;
    size_t n_text_bytes;

    /* the client; exchange NULL: it has its answer, or has left */
    struct http_exchange *exchange;
    struct http_stream *stream;         /* a reference; NULL before the first delta */
    struct buf out;                     /* events on their way */
    bool has_begun;                     /* the first delta has been told */
    bool is_over;                       /* the last event is in out, or the failure is told */
    bool is_counted;                    /* the host knows that it has ended */

    /* for a client that comes back */
    struct llm_ring ring;
    struct arena *resume_arena;         /* owned; the present client's, when it came back */
    struct loop_timer *keep_timer;      /* owned */
    bool is_kept;                       /* without a client, until the timer */
    bool is_attaching;                  /* attach() is on the stack */

    /* the present attempt */
    size_t at;                          /* of the plan's picks */
    struct http_fetch *fetch;           /* a reference; NULL: none runs */
    struct arena *attempt_arena;        /* owned; the reader's */
    struct llm_reader *reader;
    struct buf body;                    /* of a refusal, or of an answer that is not streamed */
    int status;
    int64_t retry_after_ms;
    struct err *e;                      /* owned; of the reader; NULL: it has nothing to say */
    bool is_paused;
    struct loop_timer *timer;           /* owned; the wait before the next attempt */
};

static inline const struct llm_planned *relay_planned(const struct relay *r)
{
    return &r->start.plan->of[r->at];
}

static inline const struct llm_account *relay_account(const struct relay *r)
{
    return &r->start.plan->picks.seats[r->at]->account;
}

/* The client's side and the upstream's both end in their own time: the last thing a callback does. */
void relay_free_when_done(struct relay *r);
void relays_unref(struct llm_relays *relays);
/* Once: what was used, told or by estimate. An upstream that was not asked, or that refused, has used nothing. */
void relay_tell_ended(struct relay *r, bool has_answered, bool is_whole);
/* Nothing was told yet: an ordinary error. */
void relay_fail(struct relay *r, int result, const struct err *e);
void relay_on_gone(struct http_exchange *x, void *arg);
/* Nobody came back. */
void relay_stop_keeping(void *arg);

/* The upstream requests end with the first delta, but for one that an upstream is still reading. */
void relay_forget_asks(struct relay *r);
/* With the first delta. */
void relay_begin_stream(struct relay *r);
/* Before events are written: memory for them. */
void relay_take_out(struct relay *r);
/* Round each event, with where it begins in out. It has an id when it can be asked for again. */
size_t relay_begin_event(struct relay *r);
void relay_end_event(struct relay *r, size_t at);
/* 0: all is with the stream, and after the last event the client is let go; -EAGAIN: the stream is full; -EPIPE: the client has left. */
int relay_flush(struct relay *r);
