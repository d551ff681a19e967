#include "api/resources/conversation_shapes.h"

#include "api/api.h"
#include "store/tables/conversations.h"

const struct field conversation_query_fields[] = {
    FIELD_INT(struct conversation_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_INT(struct conversation_query, before, "before", .min = 0, .max = (double)(INT64_C(1) << 53),
              .help = "only turns older than this `number`"),
    FIELD_END,
};

static const struct field message_shape[] = {
    SHAPE_STRING("role", .help = "user, assistant or tool"),
    SHAPE_OBJECT("message", NULL, .help = "content, tool_calls, reasoning ... as the model gave or got them"),
    SHAPE_STRING("tool", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("is_error"),
    SHAPE_INT("took_ms"),
    SHAPE_STRING("provider", .flags = FIELD_NULLABLE),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE),
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("completion_tokens"),
    SHAPE_TIME("created_at"),
    FIELD_END,
};

const struct field conversation_turn_shape[] = {
    SHAPE_STRING("id", .format = "uuid"),
    SHAPE_INT("number", .help = "grows with each turn of this service"),
    SHAPE_STRING("state", .help = "running, ended or interrupted"),
    SHAPE_STRING("ended", .flags = FIELD_NULLABLE,
                 .help = "what ended it: answered, max_steps, repeated_call, token_budget, timeout, cancelled, failed, "
                         "interrupted"),
    SHAPE_STRING("error", .flags = FIELD_NULLABLE),
    SHAPE_STRING("code", .flags = FIELD_NULLABLE, .help = "of the error"),
    SHAPE_STRING("agent"),
    SHAPE_STRING("who"),
    SHAPE_STRING("session_id", .flags = FIELD_NULLABLE),
    SHAPE_STRING("task_uuid", .flags = FIELD_NULLABLE),
    SHAPE_INT("steps"),
    SHAPE_STRING("provider", .flags = FIELD_NULLABLE),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE),
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("completion_tokens"),
    SHAPE_BOOL("is_estimated", .help = "a provider did not count its tokens"),
    SHAPE_OBJECT("cut", NULL, .flags = FIELD_NULLABLE, .help = "what of the history the model did not get whole"),
    SHAPE_STRINGS("thoughts"),
    SHAPE_LIST("blocks", NULL),
    SHAPE_TIME("started_at"),
    SHAPE_TIME("ended_at", .flags = FIELD_NULLABLE),
    SHAPE_LIST("messages", message_shape),
    FIELD_END,
};

static void write_message(struct json_writer *w, const struct message_row *row)
{
    json_begin_object(w);
    json_add_string(w, "role", row->role);
    json_add_raw(w, "message", row->message);
    json_add_string(w, "tool", row->tool_name);
    json_add_bool(w, "is_error", row->is_error);
    json_add_int(w, "took_ms", row->took_ms);
    json_add_string(w, "provider", row->provider);
    json_add_string(w, "model", row->model);
    json_add_int(w, "prompt_tokens", row->prompt_tokens);
    json_add_int(w, "completion_tokens", row->completion_tokens);
    json_add_string(w, "created_at", row->created_at);
    json_end(w);
}

static void write_members(struct json_writer *w, const struct turn_row *row)
{
    json_add_string(w, "id", row->uuid);
    json_add_int(w, "number", row->id);
    json_add_string(w, "state", row->state);
    json_add_string(w, "ended", row->why);
    json_add_string(w, "error", row->error);
    json_add_string(w, "code", row->error_code);
    json_add_string(w, "agent", row->agent_name);
    json_add_string(w, "who", row->who);
    json_add_string(w, "session_id", row->session_id);
    json_add_string(w, "task_uuid", row->task_uuid);
    json_add_int(w, "steps", row->n_steps);
    json_add_string(w, "provider", row->provider);
    json_add_string(w, "model", row->model);
    json_add_int(w, "prompt_tokens", row->prompt_tokens);
    json_add_int(w, "completion_tokens", row->completion_tokens);
    json_add_bool(w, "is_estimated", row->is_estimated);
    json_add_raw(w, "cut", row->cut);
    json_add_raw(w, "thoughts", row->thoughts ? row->thoughts : "[]");
    json_add_raw(w, "blocks", row->blocks ? row->blocks : "[]");
    json_add_string(w, "started_at", row->started_at);
    json_add_string(w, "ended_at", row->ended_at);
}

static int write_turn(struct request *req, struct json_writer *w, const struct turn_row *row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct message_row *messages = NULL;
    size_t n = 0;
    int r = store_messages_of_turn(req->api->store, a, row->id, &messages, &n, e);

    if (r < 0)
        return r;
    json_begin_object(w);
    write_members(w, row);
    json_begin_array_as(w, "messages");
    for (size_t i = 0; i < n; i++)
        write_message(w, &messages[i]);
    json_end(w);
    json_end(w);
    return 0;
}

int conversation_write(struct request *req, struct response *res, int64_t thread_id,
                       const struct conversation_query *query, struct err *e)
{
    const struct turns_list_request request = {
        .thread_id = thread_id, .before = query->before, .limit = query->limit, .newest_first = true
    };
    struct turn_row *turns = NULL;
    size_t n = 0;
    int r = store_turns_list(req->api->store, req->arena, &request, &turns, &n, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "turns");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = write_turn(req, &res->json, &turns[i], e);
    json_end(&res->json);
    return r;
}
