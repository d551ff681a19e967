/* One chat that a thread waits for: for workers of agents and of MCP servers. Routes use chat.h, where no thread waits.
 *
 *     r = chat_run(call, &job, &(struct chat_run){ .wait = &wait }, &whole, e);
 *     if (r == 0) ... buf_slice(&whole->answer.text);
 *     llm_whole_free(whole);
 */
#pragma once

#include "models/chat.h"
#include "net/wait.h"

struct chat_run {
    const struct net_wait *wait;                    /* deadline and cancel; looked at every CHAT_LOOK_MS */
    void (*on_text)(void *arg, struct slice delta); /* on the thread that waits; NULL: only the whole answer */
    void *arg;
};

/* Blocks; the chat has ended when this returns. *ret is the caller's, also on failure; NULL when no request was sent.
 * Errors as chat_prepare(), chat_client.done and net_wait_left(). */
int chat_run(struct models_call *call, const struct chat_job *job, const struct chat_run *run, struct llm_whole **ret,
             struct err *e) MUST_CHECK;
