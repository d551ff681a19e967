/* Turns of model agents: one message, and what the agent makes of it, in a thread.
 *
 * A turn belongs to the service. It runs on a thread of agents/turn_pool.h, stores each step when it has ended, and
 * keeps its last events for viewers. Many viewers may follow; none of them can delay the turn for longer than
 * TURN_VIEWER_WAIT_MS.
 *
 * Its starter is called twice: on_event once, when the first event is there (on any thread; not when the turn fails
 * before it), and on_end exactly once, on the turn's thread. For a task, whose run is an agent_turn:
 *
 *     r = agent_turn_start(turns, &(struct agent_turn_job){ .caller = &caller, .agent_name = "triage",
 *                                  .thread_id = thread.id, .task_uuid = uuid, .message = prompt },
 *                          &(struct agent_turn_client){ .on_end = ended, .arg = w }, &turn, e);
 *     agent_turn_cancel(turn);  ...  agent_turn_unref(turn);
 */
#pragma once

#include "agents/agents.h"
#include "llm/llm.h"
#include "models/models.h"

enum { TURN_VIEWER_WAIT_MS = 5000 };

struct agent_turns;
struct agent_turn;
struct approvals;
struct builtin_services;
struct http_stream;
struct mcp_host;

struct agent_turns_config { /* all borrowed */
    struct loop *loop;      /* NULL without a service: no turn can start */
    struct store *store;
    struct settings *settings;
    struct agents *agents;
    const struct models *models;
    struct approvals *approvals;             /* agents/approvals.h; NULL: no tool that needs one is called */
    struct mcp_host *host;                   /* mcp/host.h; NULL: no tools of servers */
    const struct builtin_services *services; /* agents/builtin.h */
    const char *data_dir;
};

int agent_turns_open(const struct agent_turns_config *c, struct agent_turns **ret, struct err *e) MUST_CHECK;
/* The service is stopping: no turn begins any more, and those of sessions are cancelled. */
void agent_turns_leave(struct agent_turns *turns);
/* Also those of tasks; they have ended, as interrupted, when this returns. */
void agent_turns_finish(struct agent_turns *turns);
void agent_turns_end_streams(struct agent_turns *turns); /* loop thread; all viewers' streams end */
struct agent_turns *agent_turns_close(struct agent_turns *turns);
/* Frees the events of turns that ended minutes ago; called now and then. */
void agent_turns_forget_old(struct agent_turns *turns);

struct agent_turn_job {
    const struct caller *caller; /* copied, like all below; whose grants and limits count */
    const char *agent_name;      /* an agent of kind model */
    int64_t thread_id;
    const char *session_id; /* NULL: not of a session. One turn at a time: -EBUSY SESSION_BUSY */
    const char *task_uuid;  /* NULL: not of a task */
    bool sees_thread;       /* of a task: the whole thread is its history; else only its own earlier attempts */
    const char *app_id;     /* whose prompt variables and rows; NULL: none */
    const char *message;    /* what the person, app or task says; at most LIMIT_AGENT_MESSAGE bytes */
    double timeout_s;       /* 0: the agent's own */
    /* Turns of the thread from this id on are removed when this one is stored: a message is edited, or answered
     * anew. 0: none. */
    int64_t replaces_turn;
};

struct agent_turn_end {
    const char *turn_id; /* UUID */
    const char *why;     /* answered, max_steps, repeated_call, token_budget, timeout, cancelled, failed, interrupted */
    const char *text;    /* the last answer; "" when there is none */
    const char *whole_text; /* all that the agent said: the last answer, and what came before calls of tools */
    const char *const *thoughts;
    size_t n_thoughts;
    const char *blocks; /* JSON array of {dataType, data}; NULL: none */
    const char *const *tools_used;
    size_t n_tools_used;
    const char *provider, *model; /* NULL: none has answered */
    struct llm_usage usage;
    int64_t n_steps, n_messages; /* n_messages: of the thread now */
    int r;                       /* negative: the turn failed with `error`; an answer may be missing */
    const struct err *error;
};

/* `end` lives during the call, and as long as the turn is referenced. */
struct agent_turn_client {
    void (*on_event)(void *arg, struct agent_turn *turn); /* NULL: not told */
    void (*on_end)(void *arg, const struct agent_turn_end *end);
    void *arg;
};

/* Stores the turn and lets it begin. Both calls of the client may come before this returns. -EBUSY SESSION_BUSY;
 * -ENOENT AGENT_NOT_FOUND, THREAD_NOT_FOUND; -EINVAL VALIDATION_ERROR for an agent that is a process; -EAGAIN
 * TOO_MANY_TURNS when LIMIT_TURNS_WAITING wait; -ECANCELED SHUTTING_DOWN. ret holds a reference. */
int agent_turn_start(struct agent_turns *turns, const struct agent_turn_job *job,
                     const struct agent_turn_client *client, struct agent_turn **ret, struct err *e) MUST_CHECK;
/* The same on this thread, for a thread that may wait as long as the turn takes; is_gone cancels it. ret's texts are
 * in the arena. A turn that ended without an answer returns 0: ret->why, ret->r and ret->error say more. */
int agent_turn_run_blocking(struct agent_turns *turns, const struct agent_turn_job *job, const atomic_bool *is_gone,
                            struct arena *a, struct agent_turn_end *ret, struct err *e) MUST_CHECK;
/* Any thread. The turn ends soon, with why `cancelled`. */
void agent_turn_cancel(struct agent_turn *turn);
struct agent_turn *agent_turn_ref(struct agent_turn *turn);
struct agent_turn *agent_turn_unref(struct agent_turn *turn);
const char *agent_turn_uuid(const struct agent_turn *turn);

/* The turn of a session that runs or waits; NULL: none. A reference. */
struct agent_turn *agent_turns_running(struct agent_turns *turns, const char *session_id) MUST_CHECK;
/* Does a turn of the thread run or wait? */
bool agent_turns_thread_is_busy(struct agent_turns *turns, int64_t thread_id);

/* ---- viewers ---- */

struct agent_view {
    struct http_stream *stream; /* taken */
    const char *last_event_id;  /* of the client's header; NULL: from the start of the turn that runs, if one does */
    bool cancels;               /* the turn is cancelled when this viewer leaves */
};
/* Sends the turn's events from its first one; the stream ends with the turn. */
void agent_turn_show(struct agent_turn *turn, const struct agent_view *view);
/* Sends the events of the session's turns, this one and later ones, until the viewer leaves or the session ends. First
 * comes {"type":"session","state":"running"|"idle"}, before each turn {"type":"turnStarted","turn_id"}, and
 * {"type":"resync"} when events are not kept any more. */
void agent_turns_follow(struct agent_turns *turns, const char *session_id, const struct agent_view *view);
/* The session has ended: its viewers' streams end, its turn is cancelled. */
void agent_turns_end_session(struct agent_turns *turns, const char *session_id);
