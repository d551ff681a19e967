/* What every chat has in common, in whatever form its client asks: provider and model, plan, call or relay, what was used, the x-hearth-*
 * headers, a provider's Retry-After kept.
 *
 * For handlers, on their worker. A stream's end comes later, on the loop.
 *
 *     r = llm_chat_whole(req, &(struct llm_chat){ .provider = body->provider, .ask = &ask }, &out, e);      out.answer->text
 */
#pragma once

#include "api/route.h"
#include "llm/call.h"
#include "llm/relay.h"

struct llm_chat {
    const char *provider;               /* as the caller says it; NULL: chosen */
    struct llm_ask *ask;                /* in the exchange's body_arena, which ends when the upstream is asked; model NULL: chosen */
    const struct llm_form *form;        /* of a stream, as the rest */
    const void *state; size_t n_state;  /* copied: what the form knows of this stream (t->state); NULL: nothing */
    bool is_resumable;
};

int llm_chat_whole(struct request *req, struct llm_chat *chat, struct llm_outcome *ret, struct err *e) MUST_CHECK;
int llm_chat_stream(struct request *req, struct response *res, struct llm_chat *chat, struct err *e) MUST_CHECK;
/* Goes on behind the event of this id, as the stream wrote it. */
int llm_chat_resume(struct request *req, struct response *res, const char *last_event_id, struct err *e) MUST_CHECK;
