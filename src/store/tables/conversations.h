/* Conversations of agents (tables agent_sessions, turns, messages, thread_summaries): what a thread holds.
 *
 * A turn is one message of a person, an app or a task, and what an agent made of it, step by step: each message is
 * stored when its step has ended, so that a killed service loses no step. A session is an app's or key's handle on a
 * thread; it ends when it is idle, the thread stays. Any thread; row texts live in the arena.
 *
 *     r = store_turns_begin(store, &turn, &user_message, 0, &turn.id, e);
 *     r = store_messages_add(store, &step, e);  ...  r = store_turns_end(store, turn.id, &end, e);
 */
#pragma once

#include "store/store.h"

struct agent_session_row {
    const char *id;    /* a UUID */
    const char *scope; /* the owner's data scope (identity/identity.h) */
    int64_t thread_id;
    const char *agent_name;
    const char *created_at, *used_at; /* set by the store */
};

/* How a turn stands; the words of the column `state`. */
#define TURN_RUNNING "running"
#define TURN_ENDED "ended"
#define TURN_INTERRUPTED "interrupted"

struct turn_row {
    int64_t id;
    const char *uuid;
    int64_t thread_id;
    const char *session_id, *task_uuid; /* NULL: not of a session, not of a task */
    const char *scope, *who;            /* the caller's data scope and name (struct caller, actor) */
    const char *agent_name;
    const char *state;
    const char *why;                /* why it ended: answered, max_steps, ...; NULL: it runs */
    const char *error_code, *error; /* NULL: none */
    int64_t n_steps;
    const char *provider, *model; /* NULL: none has answered */
    int64_t prompt_tokens, completion_tokens;
    bool is_estimated;
    const char *cut;               /* JSON: what of the history was left out or shortened; NULL: nothing */
    const char *thoughts, *blocks; /* JSON arrays: sentences, and rich blocks {dataType, data}; NULL: none */
    const char *started_at, *ended_at;
};

struct message_row {
    int64_t id, turn_id;
    const char *role;    /* user, assistant, tool */
    const char *message; /* JSON, as agents/message.h writes it */
    const char *tool_name;
    bool is_error;
    int64_t took_ms;
    const char *provider, *model;
    int64_t prompt_tokens, completion_tokens; /* 0: not of an assistant */
    const char *created_at;
};

struct summary_row {
    int64_t through_turn; /* the newest turn that the text stands for */
    int64_t n_turns;
    const char *text; /* NULL: there is none */
};

/* --- sessions --- */

int store_agent_sessions_insert(struct store *s, const struct agent_session_row *row, struct err *e) MUST_CHECK;
/* The session of this owner, used after that time. -ENOENT SESSION_NOT_FOUND. */
int store_agent_sessions_get(struct store *s, struct arena *a, const char *id, const char *scope,
                             const char *used_after, struct agent_session_row *ret, struct err *e) MUST_CHECK;
int store_agent_sessions_touch(struct store *s, const char *id, struct err *e) MUST_CHECK;
int store_agent_sessions_remove(struct store *s, const char *id, const char *scope, struct err *e) MUST_CHECK;
/* Removes sessions not used since that time, and the empty threads that were made for them. */
int store_agent_sessions_expire(struct store *s, const char *used_before, int64_t *ret_n, struct err *e) MUST_CHECK;

/* --- turns --- */

/* Stores the turn as running, with its first message, in one transaction. replaces: this turn and the later ones of the
 * thread go, with their messages and a summary that stands for one of them; a turn that runs stays; 0: none goes.
 * -ENOENT THREAD_NOT_FOUND; -EDQUOT THREAD_FULL beyond LIMIT_THREAD_TURNS. */
int store_turns_begin(struct store *s, const struct turn_row *turn, const struct message_row *first, int64_t replaces,
                      int64_t *ret_id, struct err *e) MUST_CHECK;
/* The row's why, error, n_steps, provider, model, usage, cut, thoughts and blocks; state: TURN_ENDED or
 * TURN_INTERRUPTED. */
int store_turns_end(struct store *s, const struct turn_row *end, struct err *e) MUST_CHECK;
/* At the start of the service: turns of a killed service are interrupted. */
int store_turns_recover(struct store *s, int64_t *ret_n, struct err *e) MUST_CHECK;
int store_turns_get(struct store *s, struct arena *a, const char *uuid, struct turn_row *ret, struct err *e) MUST_CHECK;

struct turns_list_request {
    int64_t thread_id;
    const char *task_uuid; /* only turns of this task; NULL: all */
    int64_t after;         /* only turns with a larger id; 0: all */
    int64_t before;        /* only turns with a smaller id; 0: all */
    int64_t limit;         /* 0: LIMIT_LIST_DEFAULT */
    bool newest_first;     /* else oldest first */
};
int store_turns_list(struct store *s, struct arena *a, const struct turns_list_request *request, struct turn_row **ret,
                     size_t *ret_n, struct err *e) MUST_CHECK;
/* The newest turn of the thread; -ENOENT TURN_NOT_FOUND. */
int store_turns_newest(struct store *s, struct arena *a, int64_t thread_id, struct turn_row *ret,
                       struct err *e) MUST_CHECK;

/* A thread of conversations with its place. */
struct conversation_row {
    int64_t thread_id;
    const char *workspace_slug, *thread_slug, *name, *created_at;
};
/* Threads in which this data scope has turns (scope NULL: anyone), newest first. limit 0: LIMIT_LIST_DEFAULT. */
int store_conversations_list(struct store *s, struct arena *a, const char *scope, int64_t limit, int64_t offset,
                             struct conversation_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* -ENOENT THREAD_NOT_FOUND, also when the scope has no turn in it. */
int store_conversations_get(struct store *s, struct arena *a, const char *scope, const char *workspace_slug,
                            const char *thread_slug, struct conversation_row *ret, struct err *e) MUST_CHECK;

/* --- messages --- */

int store_messages_add(struct store *s, const struct message_row *row, struct err *e) MUST_CHECK;
/* Of one turn, in order. */
int store_messages_of_turn(struct store *s, struct arena *a, int64_t turn_id, struct message_row **ret, size_t *ret_n,
                           struct err *e) MUST_CHECK;
int store_messages_count(struct store *s, int64_t thread_id, int64_t *ret, struct err *e) MUST_CHECK;

/* --- the kept summary of a thread's oldest turns --- */

/* ret->text NULL: there is none. */
int store_summaries_get(struct store *s, struct arena *a, int64_t thread_id, struct summary_row *ret,
                        struct err *e) MUST_CHECK;
int store_summaries_put(struct store *s, int64_t thread_id, const struct summary_row *row, struct err *e) MUST_CHECK;
