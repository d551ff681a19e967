/* A streamed chat without a thread: upstream bytes in, events of the caller's form out, all on the loop (architecture, section 3).
 *
 * A worker makes the plan and starts the relay, which owns it from then on. Before the first delta a failure is tried again or told through
 * host->fail as an ordinary error; after it through form->error. A client that leaves cancels the upstream; a slow one pauses it. A stream with
 * a scope goes on for a while (setting llm.resume_s) without its client, each event has an `id:`, and llm_relay_resume() goes on behind one of them.
 *
 *     r = llm_relay_start(relays, &(struct llm_relay_start){ .plan = plan, .arena = TAKE(arena), .form = &form, ... });
 */
#pragma once

#include "http/http.h"
#include "llm/answer.h"
#include "llm/plan.h"

/* What is known of the answer while it is told. */
struct llm_told {
    char uuid[UUID_SIZE];
    const char *provider, *model;       /* of the account asked; the upstream's own name of the model once it is known */
    const struct llm_answer *answer;    /* tools so far; usage and why at the end. Its texts are empty unless they must be checked, or the form keeps thoughts. */
    int64_t prompt_tokens;              /* by estimate, before the upstream counts */
    double duration_s;                  /* of the whole answer, at its end */
    int64_t began_wall_ms;
    int64_t began_us;                   /* clock_mono_us() when the upstream was asked */
    int64_t lost_us;                    /* that attempts before it waited for theirs */
    void *state;                        /* the form's own */
};

/* How an answer is told to the client: each writes whole Server-Sent Events. NULL: nothing is told. */
struct llm_form {
    void (*begin)(struct buf *out, const struct llm_told *t);
    void (*text)(struct buf *out, const struct llm_told *t, struct slice text);
    void (*reasoning)(struct buf *out, const struct llm_told *t, struct slice text);
    void (*tool)(struct buf *out, const struct llm_told *t, size_t index, const char *id, const char *name, struct slice arguments);
    void (*seal)(struct buf *out, const struct llm_told *t, bool is_hidden, struct slice seal);         /* as a sink's on_seal */
    void (*extra)(struct buf *out, const struct llm_told *t, size_t index, struct slice extra);         /* as a sink's on_extra */
    void (*end)(struct buf *out, const struct llm_told *t);
    void (*error)(struct buf *out, const struct llm_told *t, const struct err *e);
    bool keeps_thoughts;                /* t->answer has all thoughts at the end */
};

/* Who answers the exchange. Loop thread; exactly one of start and fail is called. */
struct llm_relay_host {
    /* Request and exchange's arena end with the return. */
    struct http_stream *(*start)(void *arg, const struct llm_told *t);
    void (*fail)(void *arg, int r, const struct err *e, int64_t retry_after_ms);
    /* Once a started relay, also when its client has left, with the arg of its start: t->answer->usage as told by the upstream, or by estimate so
     * far; zeros when nobody answered. t->provider NULL: nobody was asked. The exchange may be gone. NULL: not told. */
    void (*ended)(void *arg, const struct llm_told *t, bool is_whole);
};

struct llm_relays;

struct llm_relay_start {
    struct arena *arena;                /* given away: the plan and all it points at */
    const struct llm_plan *plan;        /* in the arena */
    const struct llm_form *form;
    void *state;                        /* in the arena: t->state */
    const struct llm_relay_host *host;
    void *host_arg;
    struct http_exchange *exchange;
    const char *scope;                  /* in the arena: who may resume it, if the form writes one event a call; NULL: nobody */
};

struct llm_resume {
    struct arena *arena;                /* given away: host_arg and the strings */
    const char *uuid, *scope;
    int64_t after;                      /* number of the last event seen */
    const struct llm_relay_host *host;  /* fail() with -ENOENT STREAM_GONE when it is not there any more */
    void *host_arg;
    struct http_exchange *exchange;
};

int llm_relays_new(struct loop *l, struct settings *settings, struct llm_relays **ret, struct err *e) MUST_CHECK;  /* loop thread, or before it runs */
struct llm_relays *llm_relays_free(struct llm_relays *relays);  /* after the server was stopped; loop thread, or after it ended */
/* Any thread. Cannot fail: what goes wrong comes through the host. */
void llm_relay_start(struct llm_relays *relays, const struct llm_relay_start *start);
void llm_relay_resume(struct llm_relays *relays, const struct llm_resume *how);
