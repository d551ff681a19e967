/* Client of one MCP server: all operations of the protocol, for both of its eras, over any link (mcp/link.h).
 *
 * Handshake era: 2024-10-07 to 2025-11-25 (initialize, then a session). Stateless era: 2026-07-28 (server/discover,
 * every request says its version and capabilities). mcp_client_open() finds out which, unless the caller knows.
 *
 * Reference counted. Any thread but the loop's may call, any number at once; every function blocks its thread until the
 * response is there, the wait is over or the connection ends. No request is ever repeated. Results lie in the call's
 * arena, and so does the JSON they point into.
 *
 *     struct mcp_call call = { .arena = arena, .wait = &wait, .quiet_ms = 60000 };
 *     r = mcp_client_open(link, &config, &wait, &client, &era, e);
 *     r = mcp_client_tools(client, &call, &tools, e);
 *     r = mcp_client_call(client, &call, "echo", arguments, &result, e);
 *     mcp_client_close(client);
 *     client = mcp_client_unref(client);
 *
 * Errors of every operation: -ETIMEDOUT MCP_TIMEOUT, -ECANCELED SHUTTING_DOWN (the caller's flags), -EPIPE MCP_CLOSED
 * (the connection ended; the text says why), -EIO MCP_SERVER_ERROR (a JSON-RPC error; the extra member `mcp_code` has
 * its number), -EOPNOTSUPP MCP_NOT_SUPPORTED (the server did not announce it), -EPROTO MCP_BAD_ANSWER (a result without
 * the members that the protocol demands), -E2BIG MCP_TOO_LARGE, and those of send() in link.h.
 */
#pragma once

#include "base/json.h"
#include "base/json_write.h"
#include "base/pool.h"
#include "mcp/link.h"

struct mcp_client;

enum mcp_era { MCP_ERA_UNKNOWN, MCP_ERA_HANDSHAKE, MCP_ERA_STATELESS };
enum mcp_list { MCP_LIST_TOOLS, MCP_LIST_PROMPTS, MCP_LIST_RESOURCES };

/* ---- what a server may ask of us, and tell us ---- */

/* For whom a call is made: of whom its server may ask something, and at whose expense. Copied where it must outlive the
 * call. */
struct caller;
struct mcp_caller {
    const char *name;         /* calls of the same piece of work have the same, others another */
    const struct caller *who; /* whose grants, limits and usage count; NULL: nobody's, so a server gets no model */
    const char *agent, *session_id, *task_uuid; /* NULL: none */
};

struct mcp_server_request {
    struct json_value params; /* of the server's request */
    struct arena *arena;      /* ends with the question */
    /* Ends with the connection, at a cancel by the server, when the caller's last call fails, and after
     * LIMIT_MCP_REQUEST_MS. */
    const struct net_wait *wait;
    const struct mcp_caller *caller; /* `caller` of the call that the question belongs to; NULL: it is not known */
};

/* Each of the first three blocks a thread of `pool`, in the stateless era the thread of the call itself. A negative
 * result becomes the JSON-RPC error -32603, -EPERM the code -1 (a person said no). NULL: the capability is not
 * announced, and a request is refused with -32601. */
struct mcp_handlers {
    /* Adds the members of the array `roots`: objects {"uri":"file:///...","name"}. */
    int (*roots)(void *arg, const struct mcp_server_request *request, struct json_writer *w, struct err *e);
    /* sampling/createMessage, without tools, which are not announced: writes the result, an object {role, content,
     * model, stopReason}. */
    int (*sample)(void *arg, const struct mcp_server_request *request, struct buf *ret_result, struct err *e);
    /* elicitation/create: params.mode is absent or "form" (requestedSchema), or "url" (url, elicitationId). Writes the
     * result, an object {action: accept|decline|cancel, content?}. */
    int (*elicit)(void *arg, const struct mcp_server_request *request, struct buf *ret_result, struct err *e);

    /* The following come on a thread of the connection and must not wait. */
    /* list_changed, and after a time in which the server could not tell of changes; may come often: the receiver
     * debounces. */
    void (*changed)(void *arg, enum mcp_list what);
    void (*updated)(void *arg, const char *uri); /* a resource that mcp_client_subscribe() follows; the same holds */
    void (*logged)(void *arg, struct json_value params); /* notifications/message {level, logger?, data} */
    void (*closed)(void *arg, const struct err *why);    /* once, when the connection has ended, also by close() */
    void *arg;
};

/* ---- opening ---- */

struct mcp_client_config {
    enum mcp_era era;                    /* the verdict of an earlier connection; UNKNOWN: found out now */
    const struct mcp_handlers *handlers; /* copied; NULL: none */
    struct pool *pool;     /* borrowed; runs what a server asks. NULL: requests of the server are refused */
    const char *extension; /* of MCP, in use with this server, which is told so; borrowed, outlives the client; NULL */
    int64_t probe_ms;      /* how long server/discover may take before the server counts as one of the handshake era;
                              0: LIMIT_MCP_PROBE_MS */
};

/* Finds out the era (server/discover; a result or the error -32022 means stateless, any other error or silence means
 * handshake) and shakes hands. Takes the link in every case; when it fails the link is closed. *ret_era is the verdict
 * as far as it is known, also on failure: keep it for the next time. -EAGAIN MCP_ERA_RETRY: the server ended at the
 * probe; *ret_era is HANDSHAKE, and a second connection with this verdict may succeed. -EPROTO MCP_VERSION: the server
 * speaks no version that this client knows. */
int mcp_client_open(struct mcp_link *link, const struct mcp_client_config *c, const struct net_wait *wait,
                    struct mcp_client **ret, enum mcp_era *ret_era, struct err *e) MUST_CHECK;
/* Ends the connection; calls in flight fail. Any number of times; blocks until no event is running or will come. */
void mcp_client_close(struct mcp_client *c);
bool mcp_client_is_open(const struct mcp_client *c);
struct mcp_client *mcp_client_ref(struct mcp_client *c);
struct mcp_client *mcp_client_unref(struct mcp_client *c); /* the last one closes; NULL is fine; returns NULL */

/* What the server said of itself; constant after the opening, lives as long as the client. */
struct mcp_about {
    enum mcp_era era;
    const char *version;                                      /* "2025-11-25" */
    const char *name, *title, *server_version, *instructions; /* NULL: not said */
    bool has_tools, has_prompts, has_resources, has_subscriptions, has_completions, has_logging, has_tasks;
    bool has_changing_tools, has_changing_prompts, has_changing_resources; /* listChanged */
};
const struct mcp_about *mcp_client_about(const struct mcp_client *c);

/* What came in and belonged to nothing; for health, logs and tests. */
struct mcp_counts {
    uint64_t n_frames;
    uint64_t n_bad;     /* no JSON-RPC frame */
    uint64_t n_unasked; /* responses with an id that no call waits for: late, doubled or invented */
    uint64_t n_refused; /* requests of the server that were refused because too many of them waited */
};
void mcp_client_counts(const struct mcp_client *c, struct mcp_counts *ret);

/* ---- calls ---- */

/* One operation's surroundings. */
struct mcp_call {
    struct arena *arena;         /* of the caller; receives the results */
    const struct net_wait *wait; /* the last deadline, cancel, and who pays for the memory of the response */
    int64_t quiet_ms;            /* how long the server may be silent; progress begins it anew. 0: no own limit */
    void (*on_progress)(void *arg, double progress, double total /* 0: not known */, const char *message /* or NULL */);
    void *arg; /* of on_progress, which comes on another thread and not after the call has returned */
    const struct mcp_caller *caller; /* for handlers; NULL: nobody in particular */
    /* What the caller has to do before it uses the result, whatever that is. Called at every request of the call, on
     * its thread: with is_free when the request is out and this thread would only wait for the response; without it
     * before a request whose sending may take as long as the response. May be NULL. */
    void (*meanwhile)(void *arg, bool is_free);
    void *meanwhile_arg;
};

struct mcp_tool {
    const char *name, *title, *description;                          /* title and description: NULL when absent */
    struct json_value input_schema;                                  /* an object */
    struct json_value output_schema;                                 /* an object or absent */
    struct json_value annotations;                                   /* an object or absent */
    bool is_read_only, is_destructive, is_idempotent, is_open_world; /* hints; the protocol's defaults when absent */
};
/* why_cut: why not all pages were read (a page that points to an earlier one, LIMIT_MCP_PAGES, LIMIT_MCP_ITEMS,
 * LIMIT_MCP_LIST_BYTES), a sentence for a person; NULL: the list is whole. Items without the members that the protocol
 * demands, and items named a second time, are left out. */
struct mcp_tools {
    struct mcp_tool *items;
    size_t n;
    const char *why_cut;
};

struct mcp_result {
    struct json_value content;    /* an array of content blocks, of known and unknown types */
    struct json_value structured; /* structuredContent, an object or absent */
    bool is_error;
};

int mcp_client_tools(struct mcp_client *c, const struct mcp_call *call, struct mcp_tools *ret,
                     struct err *e) MUST_CHECK;
/* tools/call. arguments: an object or absent. A JSON-RPC error of the server becomes content [{type:text}] with
 * is_error. Tools that the last mcp_client_tools() showed with execution.taskSupport "required" run as a task, which is
 * asked for until its end. In the stateless era `input_required` is answered by handlers, at most LIMIT_MCP_ROUNDS
 * times.
 */
int mcp_client_call(struct mcp_client *c, const struct mcp_call *call, const char *tool, struct json_value arguments,
                    struct mcp_result *ret, struct err *e) MUST_CHECK;

struct mcp_resource {
    const char *uri;                                    /* of a template: the URI template (RFC 6570) */
    const char *name, *title, *description, *mime_type; /* all but name may be NULL */
    int64_t size;                                       /* bytes; -1: not said */
    struct json_value annotations;
};
struct mcp_resources {
    struct mcp_resource *items;
    size_t n;
    const char *why_cut; /* see mcp_tools */
};
int mcp_client_resources(struct mcp_client *c, const struct mcp_call *call, struct mcp_resources *ret,
                         struct err *e) MUST_CHECK;
int mcp_client_templates(struct mcp_client *c, const struct mcp_call *call, struct mcp_resources *ret,
                         struct err *e) MUST_CHECK;
/* ret: the array `contents`: objects {uri, mimeType?, text | blob}. */
int mcp_client_read(struct mcp_client *c, const struct mcp_call *call, const char *uri, struct json_value *ret,
                    struct err *e) MUST_CHECK;
/* Changes are told to handlers.updated. At most LIMIT_MCP_SUBSCRIPTIONS resources: -E2BIG. */
int mcp_client_subscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri, struct err *e) MUST_CHECK;
int mcp_client_unsubscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri,
                           struct err *e) MUST_CHECK;

struct mcp_prompt {
    const char *name, *title, *description;
    struct json_value arguments; /* an array of {name, description?, required?}, or absent */
};
struct mcp_prompts {
    struct mcp_prompt *items;
    size_t n;
    const char *why_cut; /* see mcp_tools */
};
int mcp_client_prompts(struct mcp_client *c, const struct mcp_call *call, struct mcp_prompts *ret,
                       struct err *e) MUST_CHECK;
/* arguments: an object of texts, or absent. ret_messages: an array of {role, content}. */
int mcp_client_prompt(struct mcp_client *c, const struct mcp_call *call, const char *name, struct json_value arguments,
                      const char **ret_description, struct json_value *ret_messages, struct err *e) MUST_CHECK;

struct mcp_completion {
    const char *ref_type; /* "ref/prompt" or "ref/resource" */
    const char *ref;      /* the prompt's name, or the URI template */
    const char *argument, *value;
    struct json_value context; /* an object of the arguments that are known already, or absent */
};
/* ret: the object {values, total?, hasMore?}. */
int mcp_client_complete(struct mcp_client *c, const struct mcp_call *call, const struct mcp_completion *what,
                        struct json_value *ret, struct err *e) MUST_CHECK;

/* The least level of handlers.logged: debug, info, notice, warning, error, critical, alert, emergency. In the stateless
 * era it goes along with every later request. */
int mcp_client_log_level(struct mcp_client *c, const struct mcp_call *call, const char *level,
                         struct err *e) MUST_CHECK;
/* Whether the server answers: ping, in the stateless era server/discover. A JSON-RPC error is an answer. */
int mcp_client_ping(struct mcp_client *c, const struct mcp_call *call, struct err *e) MUST_CHECK;
/* The roots have changed (handshake era; otherwise they are asked for when needed). */
int mcp_client_roots_changed(struct mcp_client *c, const struct net_wait *wait, struct err *e) MUST_CHECK;
