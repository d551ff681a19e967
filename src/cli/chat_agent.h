/* The other end of `hearth chat --agent`: a session with an agent, its messages and the events of its turns.
 *
 *     r = chat_agent_begin(cli, &agent, e);
 *     r = chat_agent_write(text, &body, e);          POST to chat_agent_path()
 *     r = chat_agent_event(&agent, event, &answer, e);     for each event of the stream
 *     chat_agent_end(&agent);
 */
#pragma once

#include "cli/approval.h"
#include "cli/client.h"
#include "cli/command.h"

struct chat_agent {
    struct cli *cli;
    const char *session_id; /* in cli's arena; NULL: not begun */
    struct approval_terminal approvals;
    bool has_text; /* of the running turn: a part of the answer was shown */
};

/* Takes --agent, --workspace and --thread. */
int chat_agent_begin(struct cli *cli, struct chat_agent *ret, struct err *e) MUST_CHECK;
const char *chat_agent_path(struct chat_agent *agent, bool is_streamed);
int chat_agent_write(const char *message, struct buf *out, struct err *e) MUST_CHECK;
/* Shows the event: text on standard output and in answer, thoughts on standard error; asks what the turn waits for in
 * the terminal. Negative: ends the stream. */
int chat_agent_event(struct chat_agent *agent, const struct client_event *event, struct buf *answer,
                     struct err *e) MUST_CHECK;
/* The thread stays. */
void chat_agent_end(struct chat_agent *agent);
