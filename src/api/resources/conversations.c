/* What threads hold, for the person at the machine: their turns, the last message edited, its answer made anew. */
#include "agents/sessions.h"

#include "api/api.h"
#include "api/resources/agent_chat.h"
#include "api/resources/conversation_shapes.h"
#include "api/routes.h"
#include "agents/message.h"

struct redo_body {
    const char *message, *agent_name;
    bool is_streamed, is_detached;
};

static const struct field edit_fields[] = {
    FIELD_STRING(struct redo_body, message, "message", FIELD_REQUIRED, .min = 1, .max = LIMIT_AGENT_MESSAGE,
                 .help = "takes the place of the thread's last message"),
    FIELD_STRING(struct redo_body, agent_name, "agent_name", .max = LIMIT_NAME_CHARS, .help = "the same when absent"),
    FIELD_BOOL(struct redo_body, is_streamed, "stream"),
    FIELD_BOOL(struct redo_body, is_detached, "detached", .help = "the turn goes on when this client leaves"),
    FIELD_END,
};

static const struct field regenerate_fields[] = {
    FIELD_STRING(struct redo_body, agent_name, "agent_name", .max = LIMIT_NAME_CHARS, .help = "the same when absent"),
    FIELD_BOOL(struct redo_body, is_streamed, "stream"),
    FIELD_BOOL(struct redo_body, is_detached, "detached", .help = "the turn goes on when this client leaves"),
    FIELD_END,
};

static const struct field messages_answer[] = { SHAPE_LIST("turns", conversation_turn_shape), FIELD_END };

static int find_thread(struct request *req, struct thread_row *ret, struct err *e)
{
    struct workspace_row workspace = { 0 };
    int r = store_workspaces_get(req->api->store, req->arena, req->params[0], &workspace, e);

    return r < 0 ? r : store_threads_get(req->api->store, req->arena, workspace.id, req->params[1], ret, e);
}

static int list_messages(struct request *req, struct response *res, struct err *e)
{
    struct thread_row thread = { 0 };
    int r = find_thread(req, &thread, e);

    return r < 0 ? r : conversation_write(req, res, thread.id, req->query, e);
}

/* What the last message said. */
static int last_message(struct request *req, const struct turn_row *turn, const char **ret, struct err *e)
{
    struct message_row *rows = NULL;
    struct llm_message message = { 0 };
    size_t n = 0;
    int r = store_messages_of_turn(req->api->store, req->arena, turn->id, &rows, &n, e);

    if (r == 0 && n == 0)
        r = err_set(e, -ENOENT, "TURN_NOT_FOUND", "The last turn has no message.");
    if (r == 0)
        r = agent_message_read(req->arena, rows[0].message, &message, e);
    if (r == 0)
        *ret = agent_message_text(req->arena, &message);
    return r;
}

static int redo(struct request *req, struct response *res, struct err *e)
{
    const struct redo_body *body = req->body;
    struct agent_turn_job job = { .caller = req->caller, .message = body->message };
    struct thread_row thread = { 0 };
    struct turn_row last = { 0 };
    int r = find_thread(req, &thread, e);

    if (r == 0)
        r = store_turns_newest(req->api->store, req->arena, thread.id, &last, e);
    if (r == 0 && agent_turns_thread_is_busy(req->api->agent_turns, thread.id))
        r = err_set(e, -EBUSY, "SESSION_BUSY", "A turn of this thread runs: wait for its end, or cancel it.");
    if (r == 0 && !job.message)
        r = last_message(req, &last, &job.message, e);
    if (r < 0)
        return r;
    job.agent_name = body->agent_name && *body->agent_name ? body->agent_name : last.agent_name;
    job.thread_id = thread.id;
    job.session_id = last.session_id; /* its viewers see the new turn */
    job.replaces_turn = last.id;
    return agent_chat_start(req, res, &(struct agent_chat_how){ &job, body->is_streamed, body->is_detached });
}

const struct route conversation_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/workspaces/:slug/threads/:thread/messages",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(conversation_query_fields, struct conversation_query),
      .answer = messages_answer,
      .handler = list_messages,
      .summary = "What a thread holds: turns with their messages, newest first",
      .tag = "Workspaces" },
    { .method = HTTP_POST,
      .path = "/api/workspaces/:slug/threads/:thread/edit",
      .permission = PERM_ADMIN,
      .max_body = LIMIT_AGENT_BODY,
      .may_stream = true,
      ROUTE_BODY(edit_fields, struct redo_body),
      .answer = agent_chat_answer,
      .handler = redo,
      .summary = "Put another message in the place of a thread's last one, and have it answered",
      .tag = "Workspaces" },
    { .method = HTTP_POST,
      .path = "/api/workspaces/:slug/threads/:thread/regenerate",
      .permission = PERM_ADMIN,
      .is_body_optional = true,
      .may_stream = true,
      ROUTE_BODY(regenerate_fields, struct redo_body),
      .answer = agent_chat_answer,
      .handler = redo,
      .summary = "Have a thread's last message answered anew",
      .tag = "Workspaces" },
    ROUTE_END,
};
