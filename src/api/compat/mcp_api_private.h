/* What the files of mcp_api share. Internal to src/api/compat/mcp_api*.c. */
#pragma once

#include "api/compat/mcp_api.h"
#include "base/clock.h"

#include <pthread.h>

enum { MCP_API_WAKES = 64 };

/* A task that a session began, in the form of revision 2025-11-25. */
struct mcp_api_watched {
    char uuid[UUID_SIZE], created_at[TIME_TEXT_SIZE];
};

/* A request to a client; on the stack of the worker that waits for its answer. */
struct mcp_api_question {
    struct mcp_api_question *next;
    struct mcp_api_running *running;
    enum mcp_api_ability ability;
    int64_t id;
    char *answer; /* owned; the JSON of the result, or the text of the error; NULL: none yet */
    bool is_error;
};

struct mcp_api_session {
    struct mcp_api_session *next;
    char id[UUID_SIZE];
    char *owner;                             /* owned */
    char *followed[LIMIT_MCP_SUBSCRIPTIONS]; /* owned */
    size_t n_followed;
    enum mcp_api_version version;
    int level;
    unsigned abilities;              /* a bit for each enum mcp_api_ability */
    struct mcp_api_watched *watched; /* owned; oldest first; NULL: none yet */
    size_t n_watched;
    bool has_stream;
    int64_t used_ms;
};

struct mcp_api_listener {
    struct mcp_api_listener *next;
    struct mcp_api *mcp;
    struct http_stream *stream; /* owned */
    char session_id[UUID_SIZE]; /* "": of the stateless era, then all below */
    char **uris;                /* owned */
    size_t n_uris;
    bool has_tools;
    struct arena *arena; /* owned; of id */
    struct json_rpc_id id;
};

struct mcp_api {
    struct api *api;                    /* borrowed */
    struct mcp_api_listener *listeners; /* owned; on the loop only */
    atomic_size_t n_listeners;
    pthread_mutex_t lock;                /* guards what follows */
    pthread_cond_t wakes[MCP_API_WAKES]; /* several calls share one, so that each lives as long as m */
    uint64_t n_begun;
    struct mcp_api_session *sessions; /* owned */
    size_t n_sessions;
    struct mcp_api_running *running; /* each on the stack of its worker */
    struct mcp_api_question *questions;
    int64_t n_questions;
};

/* Of mcp_api.c: marks the call as woken, under the lock; a bit for the condition that it waits on. */
uint64_t mcp_api_set_woken(struct mcp_api_running *r);
/* Signals these conditions, after the lock was released. */
void mcp_api_wake(struct mcp_api *m, uint64_t places);

/* Of mcp_api_sessions.c, under the lock. */
struct mcp_api_session *mcp_api_find_session(struct mcp_api *m, const char *id);
bool mcp_api_is_followed(const struct mcp_api_session *s, const char *uri);
void mcp_api_remove_session(struct mcp_api *m, struct mcp_api_session *s);
/* Of mcp_api_streams.c: sends a task's change, or (uuid "") that of the tools, to the streams that want it. */
void mcp_api_publish(struct mcp_api *m, const char *task_uuid, const char *status);
/* The task, if the session is told its status; one that `ends` is forgotten. Under the lock. */
bool mcp_api_is_watched(struct mcp_api_session *s, const char *task_uuid, bool ends, struct mcp_api_watched *ret);
/* Ends the stream of a session that has ended. */
void mcp_api_end_stream_of(struct mcp_api *m, const char *session_id);
