/* One relay, shared by relay.c (the upstream's side) and relay_client.c (the client's side: it receives, leaves and
 * comes back). Private to src/llm.
 *
 * A relay belongs to the loop thread from its begin on and frees itself when client, turn and keeping have all ended.
 * While a worker reads an answer that came in one piece, nothing has been sent to the client yet: the sink writes
 * `answer` and `out`, and the loop touches neither.
 */
#pragma once

#include "llm/relay.h"
#include "llm/ring.h"

struct llm_relays {
    struct loop *loop;         /* borrowed */
    struct settings *settings; /* borrowed */
    struct llm_turns *turns;   /* borrowed; NULL: closed */
    struct llm_relay *first;   /* running ones */
    struct buf spare;          /* memory for the next relay's `out`, which is usually empty */
    atomic_size_t n_refs;      /* the owner's, and one for each relay */
    size_t n_kept;             /* relays without a client */
    bool is_closing;
};

struct llm_relay {
    struct llm_relays *owner;
    struct llm_relay *next, *previous;
    struct llm_relay_start start; /* arena owned */
    struct llm_turn turn;
    bool has_turn; /* the turn has started and not ended */
    struct llm_progress progress;
    struct llm_answer answer;
    size_t n_text_bytes;

    /* the client */
    const struct llm_client *client;
    void *client_arg;
    bool has_client; /* false: the client has its whole answer, or has left */
    bool is_open;    /* its stream has begun and not ended */
    struct buf out;  /* events not yet passed on */
    bool has_events; /* the first delta is written */
    bool has_begun;  /* the stream was opened */
    struct buf last; /* the last events, while a worker prints them */
    bool is_printing;
    bool is_over;    /* the last event is in `out`, or the failure was reported */
    bool is_counted; /* client->ended was called */

    /* for a client that comes back */
    struct llm_ring ring;
    struct arena *resume_arena;    /* owned; the present client's, after a resume */
    struct loop_timer *keep_timer; /* owned */
    bool is_kept;                  /* runs without a client until keep_timer fires */
    bool is_attaching;             /* attach() is on the stack */
};

/* Frees the relay once both the client's and the upstream's side have ended: the last call of a callback. */
void relay_free_when_done(struct llm_relay *r);
void relays_unref(struct llm_relays *relays);
/* Calls client->ended once, with the usage as reported or estimated. An upstream that got no request, or refused it,
 * has used nothing. */
void relay_notify_ended(struct llm_relay *r, bool has_answered, bool is_whole);
/* Reports an ordinary error; only while nothing was sent to the client. */
void relay_fail(struct llm_relay *r, int result, const struct err *e);
/* No client came back in time. */
void relay_stop_keeping(void *arg);

/* Frees the upstream requests once the first delta has come and no upstream still reads its request. */
void relay_free_requests(struct llm_relay *r);
/* Called with the first delta. */
void relay_open_client(struct llm_relay *r);
/* Gets memory for `out`, before events are written. */
void relay_take_out(struct llm_relay *r);
/* Writes an event's id when the stream may be resumed. */
void relay_write_id(const struct llm_relay *r, struct buf *out);
/* Called before and after each event; at: where the event begins in `out`. An event has an id when the stream may be
 * resumed. */
size_t relay_begin_event(struct llm_relay *r);
void relay_end_event(struct llm_relay *r, size_t at);
/* 0: everything was passed on, and after the last event the client is dropped; -EAGAIN: the client's buffer is full;
 * -EPIPE: the client has left. */
int relay_flush(struct llm_relay *r);
