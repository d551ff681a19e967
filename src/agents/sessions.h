/* Sessions: an app's or key's handle on a thread, through which it talks to an agent (specification, "Agent sessions";
 * decision D10).
 *
 * A session that is idle for the setting agents.session_idle_s ends; its thread stays. Another caller's session is not
 * found. Any worker; texts are in the arena.
 *
 *     r = agent_session_create(turns, call, &(struct agent_session_new){ .agent_name = "@agent" }, &session, e);
 *     r = agent_session_get(turns, call, id, &session, e);
 */
#pragma once

#include "agents/turns.h"
#include "store/tables/conversations.h"
#include "store/tables/workspaces.h"

struct agent_session_new {
    const char *workspace_slug; /* NULL: the first workspace */
    const char *thread_slug;    /* NULL: a new thread */
    const char *agent_name;     /* NULL: AGENT_DEFAULT */
};

struct agent_session {
    struct agent_session_row row;
    struct workspace_row workspace;
    struct thread_row thread;
    const char *provider, *model; /* what answers, as configured now; "" when nothing can */
    bool is_busy;                 /* a turn runs or waits */
};

/* -ENOENT WORKSPACE_NOT_FOUND, THREAD_NOT_FOUND, AGENT_NOT_FOUND; -EINVAL VALIDATION_ERROR for an agent that is a
 * process; -EDQUOT TOO_MANY_SESSIONS beyond LIMIT_AGENT_SESSIONS of one caller. */
int agent_session_create(struct agent_turns *turns, const struct models_call *call, const struct agent_session_new *how,
                         struct agent_session *ret, struct err *e) MUST_CHECK;
/* -ENOENT SESSION_NOT_FOUND: not there, expired, or another caller's. */
int agent_session_get(struct agent_turns *turns, const struct models_call *call, const char *id,
                      struct agent_session *ret, struct err *e) MUST_CHECK;
/* Ends the session and cancels its turn. -ENOENT SESSION_NOT_FOUND. */
int agent_session_remove(struct agent_turns *turns, const struct models_call *call, const char *id,
                         struct err *e) MUST_CHECK;
/* Removes idle sessions, and the threads made for them that nobody wrote into. For the upkeep; a session that is idle
 * is not found before that either. */
int agent_sessions_expire(struct agent_turns *turns, struct err *e) MUST_CHECK;
