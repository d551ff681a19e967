/* Shared by the files of the client (client*.c, era_*.c). No other file may include it. */
#pragma once

#include "base/json_rpc.h"
#include "base/limits.h"
#include "mcp/era.h"
#include "mcp/peer.h"

#include <pthread.h>

/* The error of a server of the stateless era that does not speak the version it was sent. */
enum { MCP_UNSUPPORTED_VERSION = -32022, MCP_URL_NEEDED = -32042 };

/* Resources that are followed (client_changes.c). */
struct client_followed {
    char *uris[LIMIT_MCP_SUBSCRIPTIONS];     /* owned */
    uint64_t since[LIMIT_MCP_SUBSCRIPTIONS]; /* stateless era: the first generation of the filter that has the uri */
    size_t n;
};

enum listen_state { LISTEN_NONE, LISTEN_SENT, LISTEN_OPEN };

/* The stream of changes in the stateless era (era_stateless.c). */
struct mcp_listening {
    pthread_t thread;
    bool has_thread, is_ending;
    uint64_t wanted, running, acknowledged; /* generations of the filter */
    enum listen_state state;                /* of the request */
    _Atomic int64_t request;                /* its id */
    bool has_gap;                           /* there is no stream, or there was none when the lists could be read */
    atomic_bool is_stale;                   /* the request that runs has an old filter */
    char refusal[200];                      /* of the newest generation; "" */
};

/* What the last list said of a tool that is called in a special way. */
struct client_tool {
    const char *name;
    bool must_be_task;
    struct json_value schema; /* of arguments that are headers too (mcp/http_params.h), or absent */
};

struct mcp_client {
    atomic_uint n_refs;
    struct mcp_peer *peer; /* owned */
    struct mcp_handlers handlers;
    const char *extension; /* NULL: none */
    const struct mcp_era_ops *era;
    struct arena *arena; /* owned; of about, written by begin() only */
    struct mcp_about about;
    bool has_pool;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    bool is_closed;
    char log_level[16]; /* stateless era; "" */
    int64_t log_second;
    int n_logs; /* passed on in that second */
    uint64_t n_task_news;
    struct arena *tools_arena; /* owned; holds tools */
    struct client_tool *tools;
    size_t n_tools;
    struct client_followed followed;
    struct mcp_listening listening;
};

/* One request of a client. */
struct client_request {
    const char *method, *name;
    void (*add_params)(const void *arg, struct json_writer *w); /* NULL: none */
    const void *arg;
    const struct http_call_header *headers; /* arguments that are headers too */
    size_t n_headers;
    struct mcp_peer_task *task; /* that its result may be; NULL: none */
};

/* Sends the request, and in the stateless era answers what the server wants to know first. The result is an object. A
 * JSON-RPC error fails (client_refuse()); with ret_error not NULL it is handed over instead and 1 is returned.
 * ret_n_bytes may be NULL. */
int mcp_client_send(struct mcp_client *c, const struct mcp_call *call, const struct client_request *q,
                    struct json_value *ret, struct json_rpc_error *ret_error, size_t *ret_n_bytes,
                    struct err *e) MUST_CHECK;
/* The failure that a JSON-RPC error is. */
int client_refuse(const char *method, const struct json_rpc_error *error, struct err *e);
int client_bad_answer(const char *method, const char *what, struct err *e);
int client_lacks(const char *what, struct err *e);

/* What a server asks for, in either era; see mcp_peer_events.on_request. */
int client_answer(struct mcp_client *c, const char *method, const struct mcp_server_request *request,
                  struct buf *ret_result, struct err *e) MUST_CHECK;
void client_add_capabilities(const struct mcp_client *c, const char *name, struct json_writer *w);
void client_add_info(const char *name, struct json_writer *w);
/* Fills about from the members `capabilities`, `serverInfo` and `instructions`. version: a literal. */
void client_learn(struct mcp_client *c, const char *version, struct json_value capabilities, struct json_value info,
                  struct json_value instructions);
/* Waits for the end of a task and fetches its result; 1: *ret_error. */
int client_finish_task(struct mcp_client *c, const struct mcp_call *call, struct json_value task,
                       struct json_value *ret, struct json_rpc_error *ret_error, struct err *e) MUST_CHECK;
/* The lock is held. Begins or ends to follow a resource; 1: nothing changes. since: see client_followed. -E2BIG. */
int client_follow(struct mcp_client *c, const char *uri, bool is_on, uint64_t since, struct err *e) MUST_CHECK;
/* The server may have changed its lists, and resources followed since this generation or before, and could not tell:
 * they count as changed. */
void client_report_gap(struct mcp_client *c, uint64_t generation);
void client_forget_followed(struct mcp_client *c);

/* Stateless era: the stream of changes. */
void client_listen_acknowledged(struct mcp_client *c, struct json_value params);
void client_listen_end(struct mcp_client *c);
