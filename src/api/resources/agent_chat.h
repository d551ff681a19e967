/* Requests that begin a turn: a client that waits for the answer, or follows its stream. No thread waits for a turn.
 *
 *     return agent_chat_start(req, res, &(struct agent_chat_how){ &job, is_streamed, is_detached });
 */
#pragma once

#include "agents/turns.h"
#include "api/route.h"

extern const struct field agent_chat_answer[]; /* {response: {id, session_id, text, thoughts, message_count, ...}} */
extern const struct field agent_event_shape[]; /* one event of a stream */

struct agent_chat_how {
    const struct agent_turn_job *job;
    bool is_streamed;
    bool is_detached; /* a client that leaves does not cancel the turn */
};
/* Takes the exchange: errors are the request's answer, or an event of its stream. Returns 0. */
int agent_chat_start(struct request *req, struct response *res, const struct agent_chat_how *how);
/* Takes the exchange for the session's stream, from the header Last-Event-ID on. */
void agent_chat_follow(struct request *req, struct response *res, struct agent_turns *turns, const char *session_id);
