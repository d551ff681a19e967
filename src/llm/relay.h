/* A streamed chat: a turn (llm/turn.h) in front of a client that reads, leaves and comes back (architecture, section
 * 3).
 *
 * A worker makes the plan and starts the relay, which owns the plan from then on. Before the first delta a failure is
 * retried or reported through client->fail as an ordinary error; after the first delta through form->error. A client
 * that leaves cancels the upstream; a slow one pauses it. A stream with a scope goes on for a while (setting
 * llm.resume_s) without its client, each event has an `id:`, and llm_relay_resume() continues after one of them.
 *
 *     r = llm_relay_start(relays, &(struct llm_relay_start){ .plan = plan, .arena = TAKE(arena), .form = &form, ... });
 */
#pragma once

#include "llm/form.h"
#include "llm/turn.h"

struct llm_relay;

/* The receiver of the stream: functions of the client's owner. All run on the loop thread. Exactly one of open and fail
 * is called. */
struct llm_client {
    bool (*is_gone)(void *arg);
    /* Registers the relay for two calls. llm_relay_on_gone(): once, when the client leaves; it may come inside open.
     * llm_relay_on_room(): there is room again after push returned -EAGAIN; never inside push. relay NULL: no further
     * calls. */
    void (*watch)(void *arg, struct llm_relay *relay);
    /* The stream begins. The client's request may be freed after this returns. */
    void (*open)(void *arg, const struct llm_progress *t);
    /* 0; -EAGAIN: the client's buffer is full, nothing was taken; -EPIPE: the client has left; -E2BIG. */
    int (*push)(void *arg, struct slice bytes);
    void (*close)(void *arg); /* of an open stream: nothing follows; afterwards only ended uses arg */
    void (*fail)(void *arg, int r, const struct err *e, int64_t retry_after_ms);
    /* Called once for each started relay, even after its client has left, with the client_arg of its start:
     * t->answer->usage as reported by the upstream, or an estimate so far; zeros when no upstream answered. t->provider
     * NULL: no request was sent. The client may have left. NULL: no call. */
    void (*ended)(void *arg, const struct llm_progress *t, bool is_whole);
};

/* Events of the client, for the relay that watches it. */
void llm_relay_on_gone(struct llm_relay *r);
void llm_relay_on_room(struct llm_relay *r);

struct llm_relays;

struct llm_relay_start {
    struct arena *arena;         /* given away: the plan and everything it points at */
    const struct llm_plan *plan; /* in the arena */
    const struct llm_form *form;
    void *state; /* in the arena: t->state */
    const struct llm_client *client;
    void *client_arg;
    const char
        *scope; /* in the arena: who may resume the stream, if the form writes one event a call; NULL: nobody may */
};

struct llm_resume {
    struct arena *arena; /* given away: client_arg and the strings */
    const char *uuid, *scope;
    int64_t after;                   /* number of the last event seen */
    const struct llm_client *client; /* fail() with -ENOENT STREAM_GONE when the stream no longer exists */
    void *client_arg;
};

struct llm_relays *llm_relays_new(struct llm_turns *turns /* borrowed */,
                                  struct settings *settings); /* loop thread, or before it runs */
struct llm_relays *llm_relays_free(
    struct llm_relays *relays); /* after the server was stopped, before the turns; loop thread, or after it ended */
/* Any thread. Cannot fail: errors are reported through the client. */
void llm_relay_start(struct llm_relays *relays, const struct llm_relay_start *start);
void llm_relay_resume(struct llm_relays *relays, const struct llm_resume *how);
