/* The client of a relay: an exchange that becomes a stream of events. */
#include "api/resources/llm_parts.h"
#include "api/resources/metered.h"
#include "base/clock.h"

struct chat_stream {
    struct http_exchange *exchange; /* until close, fail, or the client has left */
    struct deferred *deferred;
    struct http_stream *stream; /* a reference; NULL before open */
    struct llm_relay *relay;    /* receives the notifications; NULL: none */
    const char *content_type;   /* of the form */
    struct chat *chat;          /* NULL: of a resumed stream */
    int64_t handled_us;         /* when the handler began */
};

static void on_gone(struct http_exchange *x, void *arg)
{
    struct chat_stream *s = arg;

    llm_relay_on_gone(s->relay);
}

static void on_change(struct http_stream *stream, void *arg)
{
    struct chat_stream *s = arg;

    if (!http_stream_is_gone(stream)) /* on_gone() reports that */
        llm_relay_on_room(s->relay);
}

static bool is_gone(void *arg)
{
    struct chat_stream *s = arg;

    return atomic_load(&s->exchange->is_gone);
}

static void watch(void *arg, struct llm_relay *relay)
{
    struct chat_stream *s = arg;

    s->relay = relay;
    http_exchange_on_gone(s->exchange, relay ? on_gone : NULL, s);
}

/* The client may leave while its stream starts, so on_gone is set last. */
static void open_stream(void *arg, const struct llm_progress *t)
{
    struct chat_stream *s = arg;

    http_exchange_on_gone(s->exchange, NULL, NULL);
    metered_headers(s->exchange, t->provider, s->handled_us, t->began_us - s->handled_us - t->lost_us);
    s->stream = deferred_stream(s->deferred, s->content_type);
    http_exchange_forget_request(s->exchange);
    http_stream_on_change(s->stream, on_change, s);
    http_exchange_on_gone(s->exchange, on_gone, s);
}

static int push(void *arg, struct slice bytes)
{
    struct chat_stream *s = arg;

    return http_stream_push(s->stream, bytes);
}

static void close_stream(void *arg)
{
    struct chat_stream *s = arg;

    http_exchange_on_gone(s->exchange, NULL, NULL);
    http_stream_on_change(s->stream, NULL, NULL);
    s->exchange = NULL;
    s->stream = http_stream_end(s->stream);
}

static void fail(void *arg, int r, const struct err *e, int64_t retry_after_ms)
{
    struct chat_stream *s = arg;

    metered_retry_after(s->exchange, e, retry_after_ms);
    deferred_fail(s->deferred, r, e);
}

static void ended(void *arg, const struct llm_progress *t, bool is_whole)
{
    struct chat_stream *s = arg;

    chat_count(s->chat, t->provider, t->model, &t->answer->usage, is_whole);
}

const struct llm_client chat_stream_client = {
    .is_gone = is_gone,
    .watch = watch,
    .open = open_stream,
    .push = push,
    .close = close_stream,
    .fail = fail,
    .ended = ended,
};

struct chat_stream *chat_stream_new(struct request *req, struct arena *a, const struct llm_form *form,
                                    struct chat *chat)
{
    struct chat_stream *s = ARENA_NEW(a, struct chat_stream);

    *s = (struct chat_stream){ .exchange = req->exchange,
                               .content_type = form->content_type,
                               .chat = chat,
                               .handled_us = chat ? chat->handled_us : clock_mono_us() };
    return s;
}

void chat_stream_defer(struct chat_stream *s, struct request *req, struct response *res)
{
    s->deferred = request_defer(req, res);
}
