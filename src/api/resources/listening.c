/* Speech to text from the microphone (specification, "Speech-to-text"; decision D11; docs/speech.md). */
#include "speech/listening.h"

#include "api/api.h"
#include "api/resources/events.h"
#include "api/resources/heard.h"
#include "api/resources/hearing.h"
#include "api/routes.h"
#include "base/log.h"
#include "http/sse.h"
#include "speech/ears_frames.h"
#include "speech/keep.h"
#include "speech/microphone.h"

enum { DEFAULT_MS = 60000, WALL_MORE_MS = 2000 /* for the device to begin */ };

struct listen_body {
    const char *provider, *model, *language, *phrases;
    double timeout_ms;
    bool keeps;
};

static const struct field listen_fields[] = {
    EARS_FIELDS(struct listen_body),
    FIELD_DOUBLE(struct listen_body, timeout_ms, "timeout", .min = 1, .max = LIMIT_SPEECH_LISTEN_MS, .def = DEFAULT_MS,
                 .help = "milliseconds after which listening ends at the latest"),
    FIELD_BOOL(struct listen_body, keeps, "keep",
               .help = "true: what was heard is kept as a WAV in the caller's data folder; `path` says where"),
    FIELD_END,
};

static const struct field listen_answer[] = {
    SHAPE_STRING("text", .help = "\"\" when nobody speaks"), SHAPE_DOUBLE("duration", .help = "seconds"),
    SHAPE_STRING("path", .flags = FIELD_OPTIONAL, .help = "of the WAV, with `keep`"), FIELD_END
};

/* One request that listens. */
struct listener_of {
    struct request *req; /* until the exchange is taken */
    struct api *api;
    struct caller *caller; /* in the arena */
    struct arena *arena;   /* owned */
    struct microphone microphone;
    struct listening *listening;
    struct heard_count count;
    struct http_stream *stream; /* NULL: the answer is whole */
    struct buf event;
    const char *path;
    bool keeps;
};

/* The person sees that the microphone is open. */
static void note_microphone(void *arg, bool is_open)
{
    const struct listener_of *l = arg;

    log_info("speech", NULL, "%s %s the microphone", LOG_Q(l->caller->actor), is_open ? "opened" : "closed");
    api_events_microphone(l->api->events, l->caller->actor, l->caller->app_id, l->caller->app_name, is_open);
}

static int start(struct listener_of *l, const struct listen_body *body, struct err *e)
{
    struct request *req = l->req;
    int64_t max_ms = (int64_t)body->timeout_ms;
    const struct listening_request wanted = {
        .ears = { .provider = body->provider,
                  .model = body->model,
                  .language = body->language,
                  .phrases = body->phrases,
                  .caller = l->caller->actor,
                  .is_gone = &req->exchange->is_gone },
        .source = microphone_source(&l->microphone, max_ms, note_microphone, l),
        .rate = EARS_RATE,
        .max_ms = max_ms,
        .wall_ms = max_ms + WALL_MORE_MS,
        .silence_ms = settings_int(req->api->settings, SETTING_SPEECH_SILENCE_MS),
        .guesses = hearing_wants_events(req),
        .keeps = body->keeps,
    };

    int r = heard_begin_request(req, &l->count, e);

    if (r == 0 && body->keeps && req->exchange->purse.holder)
        r = budget_check(req->exchange->purse.holder, BUDGET_DISK, 1, e);
    l->keeps = body->keeps;
    return r < 0 ? r : listening_start(req->api->ears, &wanted, &l->listening, e);
}

static int keep(struct listener_of *l, struct err *e)
{
    const struct speech_keeper keeper = { l->api->data_dir, l->caller->scope };

    if (!l->keeps)
        return 0;
    return speech_keep_samples(&keeper, listening_samples(l->listening), EARS_RATE, l->arena, &l->path, e);
}

static void write_end(const struct listener_of *l, struct json_writer *w)
{
    json_add_slice(w, "text", listening_text(l->listening));
    json_add_double(w, "duration", listening_duration(l->listening));
    if (l->path)
        json_add_string(w, "path", l->path);
}

static int answer_whole(struct listener_of *l, struct response *res, struct err *e)
{
    int r = 1;

    while (r == 1)
        r = listening_next(l->listening, e);
    if (r == 0)
        r = keep(l, e);
    if (r == 0)
        write_end(l, &res->json);
    return r;
}

/* ---- the stream ---- */

static int push(struct listener_of *l, const char *name)
{
    return sse_push(l->stream, name, NULL, buf_slice(&l->event));
}

static struct json_writer begin_event(struct listener_of *l)
{
    struct json_writer w;

    buf_reset(&l->event);
    json_write_init(&w, &l->event);
    json_begin_object(&w);
    return w;
}

static int push_partial(struct listener_of *l)
{
    struct json_writer w = begin_event(l);

    json_add_slice(&w, "text", listening_text(l->listening));
    json_end(&w);
    return push(l, "partial");
}

/* A client that has left gets nothing. */
static void push_end(struct listener_of *l, int r, const struct err *why)
{
    struct json_writer w = begin_event(l);

    if (r < 0) {
        json_add_string(&w, "error", why->text);
        json_add_string(&w, "code", why->code);
    } else {
        write_end(l, &w);
    }
    json_end(&w);
    (void)!push(l, r < 0 ? "error" : "final");
}

/* 0, or why there is no whole text. */
static int answer_in_events(struct listener_of *l, struct response *res)
{
    struct err e;
    int r = 1;

    err_init(&e);
    buf_init(&l->event, LIMIT_STREAM_PUSH);
    l->stream = request_take_events(l->req, res);
    while (r == 1) {
        r = listening_next(l->listening, &e);
        if (r == 1 && push_partial(l) < 0)
            r = -ECANCELED;
    }
    if (r == 0)
        r = keep(l, &e);
    if (r != -ECANCELED)
        push_end(l, r, &e);
    return r;
}

static void count(struct listener_of *l, int r)
{
    const struct ears_who nobody = { NULL, NULL };

    heard_end(&l->count, l->listening ? listening_who(l->listening) : nobody,
              l->listening ? listening_duration(l->listening) : 0, r);
}

/* The microphone is closed before the exchange, and is_gone with it, ends. */
static void end(struct listener_of *l, int r)
{
    count(l, r);
    l->listening = listening_end(l->listening);
    microphone_give(&l->microphone);
    if (l->stream)
        http_stream_end(l->stream);
    buf_clear(&l->event);
    l->arena = arena_free(l->arena);
}

static int listen_to_microphone(struct request *req, struct response *res, struct err *e)
{
    struct listener_of l = { .req = req, .api = req->api, .arena = arena_new() };
    int r = microphone_take(&l.microphone, req->api->ears, e), result;

    if (r < 0) {
        arena_free(l.arena);
        return r;
    }
    l.caller = caller_copy(l.arena, req->caller);
    r = start(&l, req->body, e);
    if (r == 0 && hearing_wants_events(req))
        result = answer_in_events(&l, res);
    else if (r == 0)
        result = r = answer_whole(&l, res, e);
    else
        result = r;
    end(&l, result);
    return r;
}

const struct route listening_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/stt/listen",
      .permission = PERM_STT_LISTEN,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .is_body_optional = true,
      ROUTE_BODY(listen_fields, struct listen_body),
      .max_body = LIMIT_FORM_FIELDS * 2,
      .answer = listen_answer,
      .handler = listen_to_microphone,
      .summary = "Listens to the microphone until silence and gives what was said; by Server-Sent Events when `accept` "
                 "asks for them",
      .tag = "Speech" },
    ROUTE_END,
};
