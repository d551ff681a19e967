#include "http/local.h"
#include "base/clock.h"
#include "base/limits.h"
#include "http/carrier.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* A streamed answer is collected in response.body too, so the waiting caller gets both kinds of answer in the same
 * place. */
struct local {
    struct http_exchange exchange; /* first */
    struct http_stream stream;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_answered;
};

static const struct http_carrier local_carrier;
static const struct http_stream_carrier local_stream_carrier;

struct http_exchange *http_local_new(enum http_method method, const char *path, const char *query,
                                     struct slice json_body)
{
    static const struct http_header headers[] = { { "content-type", "application/json" } };
    struct local *local = xcalloc(1, sizeof(*local));
    struct http_exchange *x = &local->exchange;

    pthread_mutex_init(&local->lock, NULL);
    pthread_cond_init(&local->answered, NULL);
    x->arena = arena_new();
    x->carrier = &local_carrier;
    x->carrier_data = local;
    x->request = (struct http_request){
        .method = method,
        .path = arena_strdup(x->arena, path),
        .query = arena_strdup(x->arena, query),
        .n_headers = ARRAY_SIZE(headers),
        .from = HTTP_FROM_PROCESS,
        .peer = "process",
        .arrived_us = clock_mono_us(),
    };
    x->request.headers = arena_array(x->arena, ARRAY_SIZE(headers), sizeof(headers[0]));
    memcpy(x->request.headers, headers, sizeof(headers));
    x->request.body = (struct slice){ arena_slicedup(x->arena, json_body), json_body.n };
    uuid_v4(x->request.id);
    x->response.status = 200;
    x->response.content_type = "application/json";
    buf_init(&x->response.body, LIMIT_REPLY);
    return x;
}

static void answer(struct local *local)
{
    pthread_mutex_lock(&local->lock);
    assert(!local->is_answered);
    local->is_answered = true;
    pthread_cond_signal(&local->answered);
    pthread_mutex_unlock(&local->lock);
}

void http_local_wait(struct http_exchange *x, int *ret_status, struct slice *ret_reply)
{
    struct local *local = x->carrier_data;

    pthread_mutex_lock(&local->lock);
    while (!local->is_answered)
        pthread_cond_wait(&local->answered, &local->lock);
    pthread_mutex_unlock(&local->lock);
    *ret_status = x->response.status;
    *ret_reply = buf_slice(&x->response.body);
}

struct http_exchange *http_local_free(struct http_exchange *x)
{
    struct local *local;

    if (!x)
        return NULL;
    local = x->carrier_data;
    buf_clear(&x->response.body);
    purse_close(&x->purse);
    arena_free(x->body_arena);
    arena_free(x->arena);
    pthread_cond_destroy(&local->answered);
    pthread_mutex_destroy(&local->lock);
    free(local);
    return NULL;
}

static void local_send(struct http_exchange *x)
{
    answer(x->carrier_data);
}

/* This process is its own client: it never leaves. */
static void local_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg)
{
    x->on_gone = fn;
    x->on_gone_arg = arg;
}

static struct http_stream *local_start_stream(struct http_exchange *x)
{
    struct local *local = x->carrier_data;

    http_stream_init(&local->stream, &local_stream_carrier);
    return &local->stream;
}

static struct local *local_of(struct http_stream *s)
{
    return CONTAINER_OF(s, struct local, stream);
}

static int local_push(struct http_stream *s, struct slice bytes)
{
    struct local *local = local_of(s);
    bool has_overflowed;

    pthread_mutex_lock(&local->lock);
    buf_add_slice(&local->exchange.response.body, bytes);
    has_overflowed = local->exchange.response.body.overflowed;
    pthread_mutex_unlock(&local->lock);
    return has_overflowed ? -E2BIG : 0;
}

static void local_on_change(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg)
{
    /* A local stream accepts all bytes and never loses its client: there is no change to report. */
}

static bool local_is_gone(const struct http_stream *s)
{
    return false;
}

static bool local_is_full(const struct http_stream *s)
{
    return false;
}

static void local_end(struct http_stream *s, bool is_complete)
{
    answer(local_of(s));
}

static void local_forget_body(struct http_exchange *x)
{
    /* The body is in the arena and ends with it. */
}

/* There is no connection. */
static int local_charge(struct http_exchange *x, struct budget_holder *holder, struct err *e)
{
    return 0;
}

static const struct http_carrier local_carrier = {
    .send = local_send,
    .on_gone = local_on_gone,
    .start_stream = local_start_stream,
    .forget_body = local_forget_body,
    .charge = local_charge,
};

static const struct http_stream_carrier local_stream_carrier = {
    .push = local_push,
    .on_change = local_on_change,
    .is_gone = local_is_gone,
    .is_full = local_is_full,
    .end = local_end,
};
