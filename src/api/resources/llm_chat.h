/* The client of a chat (models/chat.h), whatever form it uses: a whole answer or a stream, the x-hearth-* headers, the
 * provider's Retry-After.
 *
 * For handlers, on their worker. The answer comes later, on the loop, and the form writes it: the handler returns the
 * result of these functions and touches nothing more.
 *
 *     struct llm_chat chat = { .provider = body->provider, .request = &request, .form = &llm_form_sdk };
 *     return llm_chat_answer(req, res, &chat, e);
 */
#pragma once

#include "api/route.h"
#include "llm/form.h"
#include "models/chat.h"

struct llm_chat {
    const char *provider;        /* as the caller names it; NULL: chosen here */
    struct llm_request *request; /* in the exchange's body_arena, which ends when the request goes to the upstream;
                                    model NULL: chosen here */
    const struct llm_form *form;
    const void *state;
    size_t n_state;                 /* copied: the form's state of this answer (t->state); NULL: none */
    void (*end_state)(void *state); /* of the copy, once, on any thread, when the chat ends; not when its start failed.
                                       NULL: nothing to do */
    bool is_resumable;              /* for streams */
};

/* form->whole writes the answer. */
int llm_chat_answer(struct request *req, struct response *res, struct llm_chat *chat, struct err *e) MUST_CHECK;
int llm_chat_stream(struct request *req, struct response *res, struct llm_chat *chat, struct err *e) MUST_CHECK;
/* Resumes a stream after the event with this id, as the stream wrote the id. */
int llm_chat_resume(struct request *req, struct response *res, const char *last_event_id, struct err *e) MUST_CHECK;
