/* Push-to-talk: a session is created, then its sound comes over a WebSocket, and what was said goes back
 * (docs/speech.md). */
#include "speech/sessions.h"

#include "api/api.h"
#include "api/resources/hearing.h"
#include "api/routes.h"
#include "base/clock.h"
#include "http/websocket.h"
#include "speech/ears_frames.h"
#include "speech/sound_queue.h"

#include <stdlib.h>
#include <string.h>

/* ---- the creation ---- */

struct session_body {
    const char *provider, *model, *language, *phrases;
    int64_t rate;
    bool partial;
};

static const struct field session_fields[] = {
    EARS_FIELDS(struct session_body),
    FIELD_INT(struct session_body, rate, "rate", .min = SPEECH_RATE_MIN, .max = SPEECH_RATE_MAX, .def = EARS_RATE,
              .help = "samples a second that the client sends"),
    FIELD_BOOL(struct session_body, partial, "partial", .def = 1, .help = "false: final results only"),
    FIELD_END,
};

static const struct field session_answer[] = {
    SHAPE_STRING("id", .format = "uuid"),
    SHAPE_STRING("path", .help = "of the WebSocket; its token opens it once, without another credential"),
    SHAPE_INT("rate"), SHAPE_TIME("expires_at", .help = "until then the WebSocket must be opened"), FIELD_END
};

static int create_session(struct request *req, struct response *res, struct err *e)
{
    const struct session_body *body = req->body;
    const struct speech_session wanted = { .caller = req->caller->actor,
                                           .app_id = req->caller->app_id,
                                           .key_id = req->caller->key_id,
                                           .provider = body->provider,
                                           .model = body->model,
                                           .language = body->language,
                                           .phrases = body->phrases,
                                           .rate = (uint32_t)body->rate,
                                           .guesses = body->partial };
    struct speech_ticket ticket;
    char expires[TIME_TEXT_SIZE];
    int r = speech_sessions_add(req->api->speech_sessions, &wanted, &ticket, e);

    if (r < 0)
        return r;
    clock_format(ticket.expires_ms, expires);
    json_add_string(&res->json, "id", ticket.id);
    json_add_string(&res->json, "path",
                    arena_printf(req->arena, "/sdk/stt/sessions/%s/socket?token=%s", ticket.id, ticket.token));
    json_add_int(&res->json, "rate", body->rate);
    json_add_string(&res->json, "expires_at", expires);
    return 0;
}

/* ---- the socket ---- */

/* The loop adds what the client sends; the worker that runs the session takes it. Each holds a reference. */
struct talk {
    atomic_uint n_refs;
    struct http_websocket *socket;
    struct sound_queue queue;
    atomic_bool is_gone;
};

static void release(struct talk *t)
{
    if (atomic_fetch_sub(&t->n_refs, 1) > 1)
        return;
    http_websocket_unref(t->socket);
    sound_queue_clear(&t->queue);
    free(t);
}

static void has_room(void *arg)
{
    http_websocket_resume(((struct talk *)arg)->socket);
}

static bool take_text(struct talk *t, struct slice message)
{
    if (speech_session_is_end(message))
        sound_queue_end(&t->queue);
    else
        http_websocket_close(t->socket, WEBSOCKET_POLICY, "The only text is {\"type\":\"end\"}.");
    return true;
}

static bool take_message(void *arg, bool is_binary, struct slice message)
{
    struct talk *t = arg;

    if (!is_binary)
        return take_text(t, message);
    if (message.n > LIMIT_SPEECH_SESSION_FRAME)
        http_websocket_close(t->socket, WEBSOCKET_TOO_BIG, "A message has at most 65536 bytes.");
    else if (message.n % sizeof(int16_t) != 0)
        http_websocket_close(t->socket, WEBSOCKET_POLICY, "A message has whole samples of 16 bits.");
    else if (message.n > 0)
        return sound_queue_add(&t->queue, message);
    return true;
}

static void take_close(void *arg)
{
    struct talk *t = arg;

    atomic_store(&t->is_gone, true);
    release(t);
}

/* ---- the worker ---- */

static void send_text(struct talk *t, struct slice message)
{
    struct buf frame;

    buf_init(&frame, LIMIT_SPEECH_TRANSCRIPT * 7);
    websocket_write_message(&frame, WEBSOCKET_SERVER, false, message);
    if (buf_check(&frame, NULL) == 0)
        (void)!http_websocket_push(t->socket,
                                   buf_slice(&frame)); /* a client that has left, or does not read, is closed */
    buf_clear(&frame);
}

static void send_event(struct talk *t, const char *type, const struct listening *l, const struct err *why)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_SPEECH_TRANSCRIPT * 6);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "type", type);
    if (why) {
        json_add_string(&w, "error", why->text);
        json_add_string(&w, "code", why->code);
    }
    if (l)
        json_add_slice(&w, "text", listening_text(l));
    if (l && strcmp(type, "final") == 0)
        json_add_double(&w, "duration", listening_duration(l));
    json_end(&w);
    send_text(t, buf_slice(&out));
    buf_clear(&out);
}

static int hear(struct talk *t, struct api *api, const struct speech_session *wanted, struct heard_count *count,
                struct err *e)
{
    const struct listening_request request = speech_session_request(wanted, sound_queue_source(&t->queue), &t->is_gone);
    const struct ears_who nobody = { NULL, NULL };
    struct listening *l = NULL;
    int r = listening_start(api->ears, &request, &l, e);

    if (r == 0)
        send_event(t, "ready", NULL, NULL);
    while (r >= 0 && (r = listening_next(l, e)) == 1)
        if (wanted->guesses)
            send_event(t, "partial", l, NULL);
    if (r == 0)
        send_event(t, "final", l, NULL);
    heard_end(count, l ? listening_who(l) : nobody, l ? listening_duration(l) : 0, r);
    listening_end(l);
    return r;
}

/* Within the limits of the caller that created the session. */
static int hear_counted(struct talk *t, struct api *api, const struct speech_session *wanted, struct err *e)
{
    const struct caller caller = { .app_id = wanted->app_id, .key_id = wanted->key_id };
    struct heard_count count;
    int64_t retry_after_ms;
    int r = heard_begin(api, &caller, &count, &retry_after_ms, e);

    return r < 0 ? r : hear(t, api, wanted, &count, e);
}

static void converse(struct talk *t, struct api *api, const struct speech_session *wanted)
{
    struct err e;
    int r;

    err_init(&e);
    r = hear_counted(t, api, wanted, &e);
    if (r == -ECANCELED)
        http_websocket_close(t->socket, WEBSOCKET_GOING_AWAY, "The service is stopping.");
    else if (r < 0)
        send_event(t, "error", NULL, &e);
    http_websocket_close(t->socket, WEBSOCKET_NORMAL, "");
}

struct socket_query {
    const char *token;
};

static const struct field socket_query[] = {
    FIELD_STRING(struct socket_query, token, "token", .def_str = "", .max = SPEECH_TOKEN_SIZE), FIELD_END
};

static int open_talk(struct request *req, struct talk **ret, struct err *e)
{
    struct talk *t = xcalloc(1, sizeof(*t));
    const struct http_websocket_user user = { .on_message = take_message, .on_closed = take_close, .arg = t };
    int r = sound_queue_init(&t->queue, has_room, t, e);

    atomic_init(&t->n_refs, 2);
    if (r == 0)
        r = http_websocket_new(req->exchange, &user, &t->socket, e);
    if (r < 0) {
        sound_queue_clear(&t->queue);
        free(t);
        return r;
    }
    *ret = t;
    return 0;
}

/* The exchange, and the arena with it, may end once the socket has begun. */
static int open_socket(struct request *req, struct response *res, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct api *api = req->api;
    const char *id = arena_strdup(a, req->params[0]), *token = ((const struct socket_query *)req->query)->token;
    struct speech_session wanted = { .caller = NULL };
    struct talk *t = NULL;
    int r = 0;

    if (speech_sessions_has(api->speech_sessions, id, token)) /* a wrong handshake leaves the session as it is */
        r = http_websocket_check(req->exchange, e);
    if (r == 0)
        r = speech_sessions_open(api->speech_sessions, id, token, a, &wanted, e);
    if (r < 0)
        return r;
    r = open_talk(req, &t, e);
    if (r == 0) {
        res->is_streamed = true;
        http_websocket_begin(t->socket);
        converse(t, api, &wanted);
        release(t);
    }
    speech_sessions_remove(api->speech_sessions, id);
    return r;
}

static const struct field nothing[] = { FIELD_END };

const struct route speech_session_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/stt/sessions",
      .permission = PERM_STT_TRANSCRIBE,
      .is_sdk = true,
      .is_body_optional = true,
      .status = 201,
      ROUTE_BODY(session_fields, struct session_body),
      .max_body = LIMIT_FORM_FIELDS * 2,
      .answer = session_answer,
      .handler = create_session,
      .summary = "Begin a push-to-talk session, whose sound comes over a WebSocket",
      .tag = "Speech" },
    { .method = HTTP_GET,
      .path = "/sdk/stt/sessions/:id/socket",
      .permission = PERM_PUBLIC,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .status = 101,
      ROUTE_QUERY(socket_query, struct socket_query),
      .answer = nothing,
      .is_bare = true,
      .handler = open_socket,
      .summary = "WebSocket of a session: samples in, text out (docs/speech.md)",
      .tag = "Speech" },
    ROUTE_END,
};
