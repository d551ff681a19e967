/* One request of an MCP client while a worker answers it. Internal to src/api/compat/mcp_api*.c.
 *
 *     struct mcp_api_turn turn = { .req = req, .version = version, .frame = &frame, ... };
 *     mcp_api_answer(&turn, &out);      one JSON-RPC frame, a result or an error
 */
#pragma once

#include "api/compat/mcp_api.h"

struct mcp_api_turn {
    struct request *req;
    struct arena *arena;
    enum mcp_api_version version;
    const char *session_id; /* "": stateless */
    const char *owner;
    const struct json_rpc_frame *frame;
    struct mcp_api_running running;
    struct http_stream *stream;       /* of progress; NULL: none */
    struct json_value progress_token; /* absent without a stream */
    double progress;                  /* told last */
    int code;                         /* of the JSON-RPC error; 0: JSON_RPC_INTERNAL_ERROR */
    const char *error_data;           /* its `data`, JSON; NULL: made from the error */
    int status;                       /* HTTP status of the error, when it is answered alone; 0: 200 */
};

typedef int mcp_api_method(struct mcp_api_turn *t, struct json_writer *w, struct err *e);

static inline bool mcp_api_is_stateless(const struct mcp_api_turn *t)
{
    return t->version == MCP_API_2026_07_28;
}

/* Handles t->frame and appends the frame of its answer. */
void mcp_api_answer(struct mcp_api_turn *t, struct buf *out);
/* Sets the code of the JSON-RPC error, and e. Returns -EINVAL. */
int mcp_api_refuse(struct mcp_api_turn *t, int code, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* What the caller may see of an error: causes inside the service go to the log only. */
void mcp_api_show_error(const struct mcp_api_turn *t, int r, struct err *e);
/* The sentence of an error, with every violated rule; in the arena. */
const char *mcp_api_error_text(const struct mcp_api_turn *t, const struct err *e);
/* {code, permission, ...} of an error, as the value of `name`. */
void mcp_api_add_error(struct json_writer *w, const char *name, const struct err *e);
/* Sends notifications/progress, if the client asked for it; total 0: unknown. */
void mcp_api_progress(struct mcp_api_turn *t, double progress, double total, const char *message);
bool mcp_api_is_cancelled(struct mcp_api_turn *t);
/* How a frame is answered. */
enum mcp_api_manner {
    MCP_API_AT_ONCE,
    MCP_API_USES_ROWS,  /* at once, unless the rows are remote */
    MCP_API_MAY_WAIT,   /* for a provider or a task: it belongs in the long pool */
    MCP_API_MAY_REQUEST /* sends requests before its answer: waits, and the answer of a session is a stream */
};
enum mcp_api_manner mcp_api_manner_of(const struct json_rpc_frame *frame);
bool mcp_api_frame_waits(const struct api *api, const struct json_rpc_frame *frame);
/* A position in a list, as `cursor`. -EINVAL with JSON_RPC_INVALID_PARAMS. */
int mcp_api_read_cursor(struct mcp_api_turn *t, int64_t *ret, struct err *e) MUST_CHECK;
/* The same for a list of one page: a cursor beyond it is refused. */
int mcp_api_read_only_page(struct mcp_api_turn *t, struct err *e) MUST_CHECK;

/* ---- mcp_api_route.c: routes of this service, called from inside ---- */

struct mcp_api_route {
    const struct route *table;
    enum http_method method;
    const char *path;
    const char *param; /* the argument that is the path's parameter; NULL: none */
};
const struct route *mcp_api_find_route(const struct mcp_api_route *which);
/* Reads the arguments by the route's tables, checks permission and budget as dispatch does, and runs the handler.
 * *ret: the answer's members as a JSON object, in memory that ends with the turn's arena. */
int mcp_api_call_route(struct mcp_api_turn *t, const struct mcp_api_route *which, struct json_value arguments,
                       struct slice *ret, struct err *e) MUST_CHECK;

/* ---- mcp_api_tools.c ---- */

struct mcp_api_result {
    const char *text;        /* for people and models; NULL: the JSON */
    struct slice structured; /* JSON object */
};

struct mcp_api_tool {
    const char *name, *title, *description, *permission;
    struct mcp_api_route route;
    const struct field *fields, *answer; /* NULL: those of the route */
    bool is_read_only, is_destructive, is_idempotent, is_open_world;
    bool waits;      /* may wait for a provider, a store or a task */
    bool takes_task; /* can be called as a task of 2025-11-25 */
    /* NULL: the route's handler */
    int (*call)(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                struct mcp_api_result *ret, struct err *e);
};

/* A source of tools. */
struct mcp_api_source {
    /* Writes the tools that the caller may use or ask for. */
    int (*list)(struct mcp_api_turn *t, struct json_writer *w, struct err *e);
    /* 1 and the members of the result; 0: no tool of this source has the name. */
    int (*call)(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                struct err *e);
    enum mcp_api_manner (*manner)(const char *name);
};
extern const struct mcp_api_source mcp_api_own_tools, mcp_api_server_tools;

mcp_api_method mcp_api_list_tools, mcp_api_call_tool;
/* The members of a tool's result. */
int mcp_api_write_result(struct mcp_api_turn *t, struct json_writer *w, const struct mcp_api_result *result,
                         struct err *e) MUST_CHECK;
void mcp_api_write_failure(struct mcp_api_turn *t, struct json_writer *w, int r, struct err *e);

/* ---- mcp_api_chat.c, mcp_api_tasks.c, mcp_api_resources.c ---- */

int mcp_api_chat(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                 struct mcp_api_result *ret, struct err *e) MUST_CHECK;
extern const struct field mcp_api_trigger_answer[];
int mcp_api_trigger(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                    struct mcp_api_result *ret, struct err *e) MUST_CHECK;
/* Writes {task: {...}} instead of a result: the call runs as a task. */
int mcp_api_trigger_as_task(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w,
                            struct err *e) MUST_CHECK;
extern const struct field mcp_api_result_answer[];
int mcp_api_task_result(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                        struct mcp_api_result *ret, struct err *e) MUST_CHECK;
/* A task in the form of revision 2025-11-25. */
struct mcp_api_task {
    const char *uuid, *status, *error, *created_at, *updated_at; /* error NULL: none */
};
bool mcp_api_task_is_final(const char *status); /* of Hearth */
/* The protocol's word for a status of Hearth; review NULL: nobody is waited for. */
const char *mcp_api_task_status(const char *status, const char *review);
void mcp_api_write_task(struct json_writer *w, const struct mcp_api_task *task);
mcp_api_method mcp_api_get_task, mcp_api_list_tasks, mcp_api_get_task_result, mcp_api_cancel_task;
mcp_api_method mcp_api_list_prompts, mcp_api_get_prompt;
mcp_api_method mcp_api_list_resources, mcp_api_list_templates, mcp_api_read_resource, mcp_api_complete,
    mcp_api_subscribe, mcp_api_unsubscribe;
/* The caller's tasks, newest first. */
struct task_row;
int mcp_api_tasks_page(struct mcp_api_turn *t, int64_t offset, int64_t limit, struct task_row **ret, size_t *ret_n,
                       struct err *e) MUST_CHECK;
/* nextCursor of a page that began at offset, when n elements were found for LIMIT_MCP_PAGE. */
void mcp_api_add_next(struct mcp_api_turn *t, struct json_writer *w, int64_t offset, size_t n);

/* What a resource holds. */
struct mcp_api_content {
    struct slice text;     /* or bytes as base64 */
    const char *mime_type; /* NULL: application/json */
    bool is_blob;
};
/* If the caller may read it. */
int mcp_api_read_content(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret,
                         struct err *e) MUST_CHECK;
/* uri, mimeType and text or blob, in the object that is open. */
void mcp_api_write_contents(struct json_writer *w, const char *uri, const struct mcp_api_content *content);

/* ---- completion ---- */

struct mcp_api_completion {
    struct slice argument, typed; /* the values begin with `typed` */
    struct json_writer *w;
    size_t n; /* values found; the first 100 are written */
};
/* Adds the value when it begins with what was typed. */
void mcp_api_add_value(struct mcp_api_completion *c, const char *value);
/* The uuids of the caller's tasks. */
int mcp_api_complete_task(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e) MUST_CHECK;
/* The caller's threads as workspace/thread. */
int mcp_api_complete_thread(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e) MUST_CHECK;

/* ---- what is offered ---- */

/* One kind of resources. */
struct mcp_api_kind {
    const char *uri_template; /* NULL: there is none */
    const char *name, *title, *description;
    int (*list)(struct mcp_api_turn *t, int64_t offset, struct json_writer *w, size_t *ret_n, struct err *e);
    /* 1 and the content; 0: not an address of this kind. */
    int (*read)(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e);
    /* 1; 0: the template has no such argument. NULL: it has none at all. */
    int (*complete)(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e);
};
extern const struct mcp_api_kind mcp_api_task_kind, mcp_api_thread_kind;

/* A source of prompts. */
struct mcp_api_prompts {
    int (*list)(struct mcp_api_turn *t, struct json_writer *w, struct err *e);
    /* 1 and the members of the result; 0: no prompt of this source has the name. */
    int (*get)(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
               struct err *e);
    /* 1; 0: no prompt of this source has the name and the argument. */
    int (*complete)(struct mcp_api_turn *t, struct slice name, struct mcp_api_completion *c, struct err *e);
};
extern const struct mcp_api_prompts mcp_api_own_prompts;

/* Each list ends with NULL. The product's is mcp_api_profile.c; the program of the conformance tests brings its own. */
struct mcp_api_profile {
    const struct mcp_api_source *const *tools;
    const struct mcp_api_kind *const *resources;
    const struct mcp_api_prompts *const *prompts;
};
extern const struct mcp_api_profile mcp_api_profile;

/* ---- mcp_api_question.c: requests to the client, while it waits for the answer of a call ---- */

/* Sends the request into the stream of the answer and waits for the client's answer, for at most LIMIT_MCP_WAIT_S.
 * *ret: the result, in the turn's arena. -ENOTSUP CLIENT_CANNOT: the client did not declare the ability, or the call
 * has no stream; -EIO CLIENT_ERROR; -ETIMEDOUT CLIENT_SILENT; -ECANCELED SHUTTING_DOWN: the call was cancelled. */
int mcp_api_request_client(struct mcp_api_turn *t, enum mcp_api_ability ability, struct json_value params,
                           struct json_value *ret, struct err *e) MUST_CHECK;
