/* Agent sessions (specification, "Agent sessions"; decision D10): the contract's routes, the stream of a session, and
 * its cancel. */
#include "agents/sessions.h"

#include "api/api.h"
#include "api/resources/agent_chat.h"
#include "api/resources/conversation_shapes.h"
#include "api/resources/metered.h"
#include "api/routes.h"
#include "models/chat.h"

struct new_session {
    const char *workspace_slug, *thread_slug, *agent_name;
};
struct chat_body {
    const char *message;
    bool is_detached;
};

static const struct field new_session_fields[] = {
    FIELD_STRING(struct new_session, workspace_slug, "workspace_slug", .max = LIMIT_NAME_CHARS,
                 .help = "the first workspace when absent"),
    FIELD_STRING(struct new_session, thread_slug, "thread_slug", .max = LIMIT_NAME_CHARS,
                 .help = "an existing thread; a new one when absent"),
    FIELD_STRING(struct new_session, agent_name, "agent_name", .max = LIMIT_NAME_CHARS, .help = "@agent when absent"),
    FIELD_END,
};

static const struct field chat_fields[] = {
    FIELD_STRING(struct chat_body, message, "message", FIELD_REQUIRED, .min = 1, .max = LIMIT_AGENT_MESSAGE),
    FIELD_BOOL(struct chat_body, is_detached, "detached", .help = "the turn goes on when this client leaves"),
    FIELD_END,
};

static const struct field place_shape[] = { SHAPE_STRING("slug"), SHAPE_STRING("name"), FIELD_END };
static const struct field agent_shape[] = { SHAPE_STRING("name"),
                                            SHAPE_STRING("provider", .help = "empty when none is configured"),
                                            SHAPE_STRING("model", .help = "empty when it is not known yet"),
                                            FIELD_END };
static const struct field session_shape[] = {
    SHAPE_STRING("session_id", .format = "uuid"),
    SHAPE_OBJECT("workspace", place_shape),
    SHAPE_OBJECT("thread", place_shape, .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("agent", agent_shape),
    SHAPE_TIME("created_at"),
    SHAPE_BOOL("busy", .help = "a turn runs"),
    FIELD_END,
};
static const struct field session_answer[] = { SHAPE_OBJECT("session", session_shape), FIELD_END };
static const struct field cancel_answer[] = { SHAPE_BOOL("cancelled", .help = "false: no turn ran"), FIELD_END };
static const struct field messages_answer[] = { SHAPE_LIST("turns", conversation_turn_shape), FIELD_END };

/* ---- sessions ---- */

static void write_place(struct json_writer *w, const char *name, const char *slug, const char *title)
{
    json_begin_object_as(w, name);
    json_add_string(w, "slug", slug);
    json_add_string(w, "name", title);
    json_end(w);
}

static void write_session(struct json_writer *w, const struct agent_session *s)
{
    json_begin_object_as(w, "session");
    json_add_string(w, "session_id", s->row.id);
    write_place(w, "workspace", s->workspace.slug, s->workspace.name);
    write_place(w, "thread", s->thread.slug, s->thread.name);
    json_begin_object_as(w, "agent");
    json_add_string(w, "name", s->row.agent_name);
    json_add_string(w, "provider", s->provider);
    json_add_string(w, "model", s->model);
    json_end(w);
    json_add_string(w, "created_at", s->row.created_at);
    json_add_bool(w, "busy", s->is_busy);
    json_end(w);
}

static int create_session(struct request *req, struct response *res, struct err *e)
{
    const struct new_session *body = req->body;
    const struct agent_session_new how = { body->workspace_slug, body->thread_slug, body->agent_name };
    struct agent_session session = { 0 };
    int r = agent_session_create(req->api->agent_turns, metered_call(req), &how, &session, e);

    if (r == 0)
        write_session(&res->json, &session);
    return r;
}

static int find_session(struct request *req, struct agent_session *ret, struct err *e)
{
    return agent_session_get(req->api->agent_turns, metered_call(req), req->params[0], ret, e);
}

static int show_session(struct request *req, struct response *res, struct err *e)
{
    struct agent_session session = { 0 };
    int r = find_session(req, &session, e);

    if (r == 0)
        write_session(&res->json, &session);
    return r;
}

static int end_session(struct request *req, struct response *res, struct err *e)
{
    return agent_session_remove(req->api->agent_turns, metered_call(req), req->params[0], e);
}

static int cancel_turn(struct request *req, struct response *res, struct err *e)
{
    struct agent_session session = { 0 };
    struct agent_turn *turn;
    int r = find_session(req, &session, e);

    if (r < 0)
        return r;
    turn = agent_turns_running(req->api->agent_turns, session.row.id);
    if (turn)
        agent_turn_cancel(turn);
    json_add_bool(&res->json, "cancelled", turn != NULL);
    agent_turn_unref(turn);
    return 0;
}

static int list_messages(struct request *req, struct response *res, struct err *e)
{
    const struct conversation_query *query = req->query;
    struct agent_session session = { 0 };
    int r = find_session(req, &session, e);

    return r < 0 ? r : conversation_write(req, res, session.row.thread_id, query, e);
}

/* ---- turns ---- */

static int begin_chat(struct request *req, struct response *res, bool is_streamed, struct err *e)
{
    const struct chat_body *body = req->body;
    struct agent_session session = { 0 };
    struct agent_turn_job job = { .caller = req->caller, .app_id = req->caller->app_id, .message = body->message };
    int r = find_session(req, &session, e);

    if (r < 0)
        return r;
    job.agent_name = session.row.agent_name;
    job.thread_id = session.row.thread_id;
    job.session_id = session.row.id;
    return agent_chat_start(req, res, &(struct agent_chat_how){ &job, is_streamed, body->is_detached });
}

static int chat(struct request *req, struct response *res, struct err *e)
{
    return begin_chat(req, res, false, e);
}

static int chat_stream(struct request *req, struct response *res, struct err *e)
{
    return begin_chat(req, res, true, e);
}

static int follow_events(struct request *req, struct response *res, struct err *e)
{
    struct agent_turns *turns = req->api->agent_turns;
    struct agent_session session = { 0 };
    int r = chat_need_service(req->api->models, e);

    if (r == 0)
        r = find_session(req, &session, e);
    if (r < 0)
        return r;
    agent_chat_follow(req, res, turns, session.row.id);
    return 0;
}

const struct route agent_session_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/agent/session",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .is_body_optional = true,
      .stores = true,
      ROUTE_BODY(new_session_fields, struct new_session),
      .answer = session_answer,
      .handler = create_session,
      .summary = "Begin a conversation with an agent, or take up a thread",
      .tag = "Agent sessions" },
    { .method = HTTP_GET,
      .path = "/sdk/agent/session/:id",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .answer = session_answer,
      .handler = show_session,
      .summary = "A session of the caller",
      .tag = "Agent sessions" },
    { .method = HTTP_DELETE,
      .path = "/sdk/agent/session/:id",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .answer = api_nothing,
      .handler = end_session,
      .summary = "End a session; its thread stays",
      .tag = "Agent sessions" },
    { .method = HTTP_POST,
      .path = "/sdk/agent/session/:id/chat",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .stores = true,
      .max_body = LIMIT_AGENT_BODY,
      ROUTE_BODY(chat_fields, struct chat_body),
      .answer = agent_chat_answer,
      .handler = chat,
      .summary = "One turn: a message, and the agent's answer",
      .tag = "Agent sessions" },
    { .method = HTTP_POST,
      .path = "/sdk/agent/session/:id/chat/stream",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .stores = true,
      .max_body = LIMIT_AGENT_BODY,
      ROUTE_BODY(chat_fields, struct chat_body),
      .answer = agent_event_shape,
      .answer_type = "text/event-stream",
      .handler = chat_stream,
      .summary = "One turn as a stream: every data line is JSON with a type; the stream ends with the turn",
      .tag = "Agent sessions" },
    { .method = HTTP_GET,
      .path = "/sdk/agent/session/:id/events",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .answer = agent_event_shape,
      .answer_type = "text/event-stream",
      .handler = follow_events,
      .summary = "The turns of a session as they run, from Last-Event-ID on",
      .tag = "Agent sessions" },
    { .method = HTTP_GET,
      .path = "/sdk/agent/session/:id/messages",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      ROUTE_QUERY(conversation_query_fields, struct conversation_query),
      .answer = messages_answer,
      .handler = list_messages,
      .summary = "What the session's thread holds: turns with their messages",
      .tag = "Agent sessions" },
    { .method = HTTP_POST,
      .path = "/sdk/agent/session/:id/cancel",
      .permission = PERM_AGENT_CHAT,
      .is_sdk = true,
      .answer = cancel_answer,
      .handler = cancel_turn,
      .summary = "Cancel the turn that runs",
      .tag = "Agent sessions" },
    ROUTE_END,
};
