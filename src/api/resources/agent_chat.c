#include "api/resources/agent_chat.h"

#include "api/api.h"
#include "api/resources/metered.h"

#include <stdatomic.h>
#include <stdlib.h>

/* A request that waits for its turn: the turn answers it, or opens its stream; the loop tells when its client leaves.
 */
struct agent_chat {
    atomic_size_t n_refs;           /* the handler's and the turn's */
    struct http_exchange *exchange; /* until the answer, or the start of the stream */
    struct deferred *deferred;
    _Atomic(struct agent_turn *) turn; /* a reference; NULL until it has started */
    char *session_id;                  /* owned */
    bool is_streamed, is_detached;
    bool is_open;        /* the stream has begun */
    atomic_bool is_gone; /* the client left */
};

static const struct field block_shape[] = {
    SHAPE_STRING("dataType", .help = "toolUse, files, image, json or text"),
    SHAPE_OBJECT("data", NULL),
    FIELD_END,
};
static const struct field usage_shape[] = { SHAPE_INT("prompt_tokens"), SHAPE_INT("completion_tokens"),
                                            SHAPE_INT("total_tokens"), FIELD_END };
static const struct field response_shape[] = {
    SHAPE_STRING("id", .format = "uuid", .help = "of the turn"),
    SHAPE_STRING("session_id"),
    SHAPE_STRING("text"),
    SHAPE_STRINGS("thoughts", .help = "reasoning, and what tools did"),
    SHAPE_INT("message_count", .help = "messages of the thread"),
    SHAPE_LIST("blocks", block_shape, .help = "what tools returned, to be shown"),
    SHAPE_STRING("ended", .help = "what ended the turn: answered, max_steps, repeated_call, token_budget, timeout"),
    SHAPE_STRING("provider"),
    SHAPE_STRING("model"),
    SHAPE_INT("steps", .help = "answers of the model"),
    SHAPE_OBJECT("usage", usage_shape),
    FIELD_END,
};
const struct field agent_chat_answer[] = { SHAPE_OBJECT("response", response_shape), FIELD_END };

const struct field agent_event_shape[] = {
    SHAPE_STRING("type",
                 .help =
                     "agentThought, textResponseChunk, textResponse (once, the whole text), error, close; and in the "
                     "stream of a session: session, turnStarted, resync"),
    SHAPE_STRING("thought", .flags = FIELD_OPTIONAL, .help = "of agentThought: reasoning, or what a tool does"),
    SHAPE_STRING("textResponse", .flags = FIELD_OPTIONAL,
                 .help = "of textResponseChunk: to be appended; with dataType it is a rich block instead, JSON text"),
    SHAPE_STRING("dataType", .flags = FIELD_OPTIONAL, .help = "of a rich block: toolUse, files, image, json or text"),
    SHAPE_STRING("error", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("code", .flags = FIELD_OPTIONAL, .help = "of error"),
    SHAPE_STRING("state", .flags = FIELD_OPTIONAL, .help = "of session: running or idle"),
    SHAPE_STRING("turn_id", .flags = FIELD_OPTIONAL, .help = "of turnStarted"),
    FIELD_END,
};

/* ---- the answer ---- */

static void write_usage(struct json_writer *w, const struct llm_usage *usage)
{
    json_begin_object_as(w, "usage");
    json_add_int(w, "prompt_tokens", usage->prompt_tokens);
    json_add_int(w, "completion_tokens", usage->completion_tokens);
    json_add_int(w, "total_tokens", usage->prompt_tokens + usage->completion_tokens);
    json_end(w);
}

struct answer {
    const struct agent_chat *chat;
    const struct agent_turn_end *end;
};

static void write_answer(struct json_writer *w, const void *arg)
{
    const struct answer *answer = arg;
    const struct agent_turn_end *end = answer->end;

    json_begin_object_as(w, "response");
    json_add_string(w, "id", end->turn_id);
    json_add_string(w, "session_id", answer->chat->session_id);
    json_add_string(w, "text", end->whole_text);
    json_begin_array_as(w, "thoughts");
    for (size_t i = 0; i < end->n_thoughts; i++)
        json_add_string(w, NULL, end->thoughts[i]);
    json_end(w);
    json_add_int(w, "message_count", end->n_messages);
    json_add_raw(w, "blocks", end->blocks ? end->blocks : "[]");
    json_add_string(w, "ended", end->why);
    json_add_string(w, "provider", end->provider);
    json_add_string(w, "model", end->model);
    json_add_int(w, "steps", end->n_steps);
    write_usage(w, &end->usage);
    json_end(w);
}

/* ---- the client and its turn ---- */

static void unref_chat(struct agent_chat *chat)
{
    if (atomic_fetch_sub(&chat->n_refs, 1) > 1)
        return;
    agent_turn_unref(atomic_load(&chat->turn));
    free(chat->session_id);
    free(chat);
}

/* The client may leave before the turn is known here, so both look at what the other has set. */
static void cancel_if_left(struct agent_chat *chat)
{
    struct agent_turn *turn = atomic_load(&chat->turn);

    if (turn && atomic_load(&chat->is_gone) && !chat->is_detached)
        agent_turn_cancel(turn);
}

static void on_gone(struct http_exchange *x, void *arg)
{
    struct agent_chat *chat = arg;

    atomic_store(&chat->is_gone, true);
    cancel_if_left(chat);
}

static void on_event(void *arg, struct agent_turn *turn)
{
    struct agent_chat *chat = arg;
    struct agent_view view = { .cancels = !chat->is_detached };

    if (!chat->is_streamed)
        return;
    http_exchange_on_gone(chat->exchange, NULL, NULL);
    view.stream = deferred_stream(chat->deferred, NULL);
    chat->is_open = true;
    agent_turn_show(turn, &view);
}

static void on_end(void *arg, const struct agent_turn_end *end)
{
    struct agent_chat *chat = arg;

    if (!chat->is_open) {
        http_exchange_on_gone(chat->exchange, NULL, NULL);
        if (end->r < 0)
            deferred_fail(chat->deferred, end->r, end->error);
        else
            deferred_answer(chat->deferred, write_answer, &(struct answer){ chat, end });
    }
    unref_chat(chat);
}

static void refuse(struct agent_chat *chat, int r, const struct err *e)
{
    http_exchange_on_gone(chat->exchange, NULL, NULL);
    deferred_fail(chat->deferred, r, e);
    unref_chat(chat); /* the turn's */
}

int agent_chat_start(struct request *req, struct response *res, const struct agent_chat_how *how)
{
    struct agent_turns *turns = req->api->agent_turns;
    struct agent_chat *chat = xcalloc(1, sizeof(*chat));
    const struct agent_turn_client client = { on_event, on_end, chat };
    struct agent_turn *turn = NULL;
    struct err e;
    int r;

    err_init(&e);
    atomic_store(&chat->n_refs, 2);
    chat->is_streamed = how->is_streamed;
    chat->is_detached = how->is_detached;
    chat->session_id = how->job->session_id ? xstrdup(how->job->session_id) : NULL;
    chat->exchange = req->exchange;
    chat->deferred = request_defer(req, res);
    http_exchange_on_gone(chat->exchange, on_gone, chat);
    r = agent_turn_start(turns, how->job, &client, &turn, &e); /* copies the job, which ends with the exchange */
    if (r < 0) {
        refuse(chat, r, &e);
    } else {
        atomic_store(&chat->turn, turn);
        cancel_if_left(chat);
    }
    unref_chat(chat);
    return 0;
}

void agent_chat_follow(struct request *req, struct response *res, struct agent_turns *turns, const char *session_id)
{
    const char *last = http_header(&req->exchange->request, "last-event-id");
    struct agent_view view = { .last_event_id = arena_strdup(req->arena, last) };

    session_id = arena_strdup(req->arena, session_id);
    view.stream = request_take_events(req, res);
    agent_turns_follow(turns, session_id, &view);
}
