/* One chat for a caller: prepared on a worker, then answered on the loop; no thread waits for the answer. Every chat,
 * with or without an HTTP request, passes through chat_prepare() before its request to an upstream, and is counted
 * once.
 *
 * A prepared chat must be started with chat_start(); or, by the owner of a relay, with llm_relay_start() (llm/relay.h),
 * which gets `arena` and `plan`, and whose client->ended calls chat_count(). Everything lies in the chat's own arena,
 * which ends with the chat.
 *
 *     r = chat_prepare(call, &(struct chat_job){ .request = &request }, &chat, e);
 *     chat_start(chat, &(struct chat_client){ .done = done, .arg = x });
 *     ...  done(): buf_slice(&whole->answer.text) ...  llm_whole_free(whole)
 */
#pragma once

#include "llm/whole.h"
#include "models/models.h"

struct chat_job {
    const char *provider;        /* as the caller names it; NULL: chosen here */
    struct llm_request *request; /* model NULL: chosen here; is_streamed: the deltas come as they are made */
    struct arena *arena;         /* the request's, receives fetched files; may end after chat_prepare() */
};

struct chat;

struct chat_client {
    /* Called once, on the loop thread. r 0: whole->progress and whole->answer are complete. The receiver frees whole
     * with llm_whole_free(), on any thread, and the chat with it; whole NULL: no request was sent, and the chat ends
     * when this returns. Errors as those of docs/errors.md: -ECANCELED SHUTTING_DOWN when the chat was cancelled. */
    void (*done)(void *arg, struct llm_whole *whole, int r, const struct err *e);
    /* On the loop thread: from now on a client that leaves calls chat_cancel(); chat NULL: no longer. NULL: the call's
     * cancel flag is looked at every CHAT_LOOK_MS. */
    void (*watch)(void *arg, struct chat *chat);
    const struct llm_sink *sink; /* as llm_whole_start.tap; NULL: only the whole answer */
    void *arg;
    void *state; /* a form's: whole->progress.state */
};

enum { CHAT_LOOK_MS = 50 };

struct chat {
    const struct models *models;
    struct arena *arena; /* owned */
    const struct llm_plan *plan;
    const atomic_bool *is_gone;   /* borrowed, like the holder: both stay until the chat ends */
    struct budget_holder *holder; /* pays for a large answer */
    int64_t handled_us;           /* clock_mono_us() when preparing began */

    /* private */
    struct meter_ticket ticket;
    struct chat_client client;
    struct llm_whole *whole;
    struct loop_timer *look; /* owned */
};

/* -ENOTSUP NOT_SERVING without a service. */
int chat_need_service(const struct models *models, struct err *e) MUST_CHECK;
/* Would preparing the chat wait for a provider? It then belongs in the long pool, like a request with
 * llm_has_addresses() (llm/fetch.h). */
bool chat_waits(const struct models_call *call, const char *provider, const char *model);
/* Checks grant and limits, chooses provider and model, fetches files, makes the plan; blocks a worker. On the loop, for
 * a developer key without an app: from memory, or -ENEEDSWORKER. Errors as
 * chat_need_service(); -EPERM as models_permit(); -EBUSY RATE_LIMIT; -EINVAL PROVIDER_UNAVAILABLE,
 * INVALID_MODEL, FILE_NOT_FETCHED; -ENODEV, -EAGAIN PROVIDER_UNAVAILABLE; -ECANCELED SHUTTING_DOWN. */
int chat_prepare(struct models_call *call, const struct chat_job *job, struct chat **ret, struct err *e) MUST_CHECK;
/* Any thread; takes the chat. On the loop the chat begins, and may end, inside. */
void chat_start(struct chat *chat, const struct chat_client *client);
void chat_cancel(struct chat *chat); /* loop thread; done comes with -ECANCELED, never inside */
/* Counts a chat that a relay has answered; once, any thread. provider NULL: no request was sent. */
void chat_count(struct chat *chat, const char *provider, const char *model, const struct llm_usage *used,
                bool is_whole);
