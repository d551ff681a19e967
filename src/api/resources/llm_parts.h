/* Shared by llm_chat.c (the request), llm_stream.c (a client that reads a stream) and llm_answer.c (a client that waits
 * for the whole answer). Private to those files.
 *
 * Each of the two client structs takes the exchange from its handler and ends with it, on the loop. It is in the arena
 * that the relay or chat owns.
 */
#pragma once

#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "llm/relay.h"

struct chat_stream;
/* chat NULL: of a stream that a client resumes, which is counted already. */
struct chat_stream *chat_stream_new(struct request *req, struct arena *a, const struct llm_form *form,
                                    struct chat *chat);
/* Takes the exchange: afterwards only the client and the loop touch it. */
void chat_stream_defer(struct chat_stream *s, struct request *req, struct response *res);
extern const struct llm_client chat_stream_client; /* for a struct chat_stream */

/* Call on a worker. Takes chat and exchange. */
void chat_answer_start(struct request *req, struct response *res, struct chat *chat, const struct llm_form *form,
                       void *state);
