/* Hearth as an MCP server: what the sessions, streams and running calls of /mcp share (docs/mcp-server.md).
 *
 * Two eras of the protocol are served at one address. Handshake era (2024-11-05 to 2025-11-25): `initialize` makes a
 * session, which belongs to its caller. Stateless era (2026-07-28): each request carries what it needs. One mcp_api for
 * each process; any thread, except where the loop is named.
 *
 *     r = mcp_api_session_new(mcp, &start, id, e);
 *     if (mcp_api_session_use(mcp, owner, id, &version)) ...
 */
#pragma once

#include "api/api.h"
#include "api/route.h"
#include "base/json_rpc.h"
#include "base/uuid.h"

enum mcp_api_version {
    MCP_API_2024_11_05,
    MCP_API_2025_03_26,
    MCP_API_2025_06_18,
    MCP_API_2025_11_25,
    MCP_API_2026_07_28, /* the only stateless one */
    N_MCP_API_VERSIONS,
    MCP_API_LATEST_HANDSHAKE = MCP_API_2025_11_25
};

/* Codes of the protocol beside those of base/json_rpc.h. */
enum {
    MCP_API_REFUSED = -32000,
    MCP_API_NO_SESSION = -32001,
    MCP_API_NO_RESOURCE = -32002,
    MCP_API_HEADER_MISMATCH = -32020,
    MCP_API_UNSUPPORTED_VERSION = -32022
};

#define MCP_API_TASK_URI "hearth://tasks/"
#define MCP_API_THREAD_URI "hearth://threads/"

extern const char *const mcp_api_versions[]; /* by enum mcp_api_version; NULL-ended */
/* N_MCP_API_VERSIONS for an unknown one. */
enum mcp_api_version mcp_api_version_of(const char *text);

/* What the client of a session answers when it is asked. */
enum mcp_api_ability { MCP_API_SAMPLING, MCP_API_ELICITATION, N_MCP_API_ABILITIES };

struct mcp_api;
struct http_stream;

struct mcp_api *mcp_api_open(struct api *api) MUST_CHECK;
struct mcp_api *mcp_api_close(struct mcp_api *m); /* after the loop has ended */
/* Ends every stream. Loop thread. */
void mcp_api_end_streams(struct mcp_api *m);

/* ---- changes, from any thread; never wait ---- */

void mcp_api_task_changed(struct mcp_api *m, const char *task_uuid, const char *status);
void mcp_api_tools_changed(struct mcp_api *m);

/* ---- sessions of the handshake era ---- */

/* Who may use a session: kind and data scope of the caller; in the arena. */
const char *mcp_api_owner(struct arena *a, const struct caller *caller);

/* -EAGAIN OVERLOADED when LIMIT_MCP_SESSIONS are open. */
int mcp_api_session_new(struct mcp_api *m, const char *owner, enum mcp_api_version version, char ret_id[UUID_SIZE],
                        struct err *e) MUST_CHECK;
/* False: there is none of this id, it was unused for too long, or it is another caller's. */
bool mcp_api_session_use(struct mcp_api *m, const char *owner, const char *id, enum mcp_api_version *ret_version);
bool mcp_api_session_end(struct mcp_api *m, const char *owner, const char *id);
/* level: 0 debug to 7 emergency. */
void mcp_api_session_set_level(struct mcp_api *m, const char *id, int level);
/* Follows (or no longer follows) the resource. -E2BIG TOO_MANY_SUBSCRIPTIONS. */
int mcp_api_session_follow(struct mcp_api *m, const char *id, const char *uri, bool is_on, struct err *e) MUST_CHECK;

/* abilities: a bit for each. */
void mcp_api_session_set_abilities(struct mcp_api *m, const char *id, unsigned abilities);
unsigned mcp_api_session_abilities(struct mcp_api *m, const char *id);
/* From now on the session is told each status of the task, until its end; the oldest of LIMIT_MCP_SUBSCRIPTIONS makes
 * room. */
void mcp_api_session_watch_task(struct mcp_api *m, const char *id, const char *task_uuid, const char *created_at);

/* ---- streams of notifications ---- */

struct mcp_api_filter {
    const char *const *uris; /* resources whose changes are sent; copied */
    size_t n_uris;
    bool has_tools; /* tools/list_changed is sent */
};
/* Takes the place of the one stream that a session may have: false when it is taken. */
bool mcp_api_session_take_stream(struct mcp_api *m, const char *id);
/* The stream belongs to m from here on. session_id NULL: a stream of the stateless era that follows `filter`, with the
 * id of its request. */
void mcp_api_add_stream(struct mcp_api *m, struct http_stream *stream, const char *session_id,
                        const struct json_rpc_id *id, const struct mcp_api_filter *filter);

/* ---- running calls, so that notifications/cancelled and a client that leaves end them ---- */

struct mcp_api_running { /* on the stack of the worker; zeroed */
    atomic_bool is_cancelled, is_woken;
    atomic_bool *_Atomic also; /* a flag of the work that runs inside; NULL: none */
    const char *owner, *session_id;
    const struct json_rpc_id *id;
    const char *task;           /* whose changes wake the call; NULL: none. Under the lock */
    struct http_stream *stream; /* of the answer; NULL: none */
    uint64_t number;            /* none other has it */
    unsigned place;             /* of the condition that it waits on */
    unsigned n_users;           /* threads that send its client requests; under the lock */
    bool is_ending;             /* under the lock */
    struct mcp_api_running *next;
};
void mcp_api_running_begin(struct mcp_api *m, struct mcp_api_running *r);
void mcp_api_running_attach(struct mcp_api *m, struct mcp_api_running *r, atomic_bool *also);
/* Ends the requests that are being sent to its client. */
void mcp_api_running_end(struct mcp_api *m, struct mcp_api_running *r);
/* The call's name for others (struct mcp_caller). */
enum { RUNNING_NAME_SIZE = 32 };
void mcp_api_running_name(const struct mcp_api_running *r, char ret[RUNNING_NAME_SIZE]);
/* Asks the client that made this call, from any thread that may wait. Like mcp_api_request_client(); -ENOTSUP
 * CLIENT_CANNOT also when no such call runs. */
int mcp_api_request_caller(struct mcp_api *m, const char *name, enum mcp_api_ability ability, struct json_value params,
                           struct arena *a, struct json_value *ret, struct err *e) MUST_CHECK;
/* From now on a change of this task wakes the call: also one that comes before mcp_api_running_wait(). */
void mcp_api_running_expect(struct mcp_api *m, struct mcp_api_running *r, const char *task_uuid);
/* Waits until the task has changed, the call is cancelled, or until_us of clock_mono_us(). */
void mcp_api_running_wait(struct mcp_api *m, struct mcp_api_running *r, int64_t until_us);
/* A client's answer to a request that a call of this session sent; another one is dropped. */
void mcp_api_answered(struct mcp_api *m, const char *owner, const char *session_id, const struct json_rpc_frame *frame);
/* The call of this id, if it runs. */
void mcp_api_cancel(struct mcp_api *m, const char *owner, const char *session_id, const struct json_rpc_id *id);
/* For the loop as well: takes no lock, so that no worker holds up the loop. The call may notice up to a second later.
 */
void mcp_api_cancel_running(struct mcp_api *m, struct mcp_api_running *r);
