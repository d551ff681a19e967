/* A link without a connection: the server is a function of the test. It runs on the thread that sends, and answers by
 * fake_say(), at once or later. */
#pragma once

#include "base/hash.h"
#include "base/json_rpc.h"
#include "base/limits.h"
#include "mcp/client.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

enum { FAKE_FRAMES = 4096 };

struct fake {
    struct mcp_link link;
    struct mcp_link_events on;
    struct arena *arena;
    struct pool *pool;
    void (*serve)(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s);
    int send_result;      /* negative: send() fails */
    pthread_mutex_t lock; /* guards arena and sent */
    const char *sent[FAKE_FRAMES];
    size_t n_sent;
    atomic_int n_closed, n_starts;
    int n; /* of the test */
    struct mcp_client *client;
    enum mcp_era era;
    struct mcp_handlers handlers;
};

static inline void fake_say(struct fake *f, const char *frame)
{
    f->on.on_frame(f->on.arg, slice_of(frame), NULL);
}

/* In the answer of the request with this id. */
static inline void fake_say_within(struct fake *f, int64_t id, const char *frame)
{
    const struct json_rpc_id request = { .kind = JSON_RPC_ID_INT, .number = id };

    f->on.on_frame(f->on.arg, slice_of(frame), &request);
}

static inline void PRINTF_LIKE(2, 3) fake_sayf(struct fake *f, const char *fmt, ...)
{
    struct arena *a = arena_new();
    va_list ap;

    va_start(ap, fmt);
    fake_say(f, arena_vprintf(a, fmt, ap));
    va_end(ap);
    arena_free(a);
}

/* {"jsonrpc":"2.0","id":ID,<what>} */
static inline void fake_answer(struct fake *f, const struct json_rpc_frame *frame, const char *what)
{
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld,%s}", (long long)frame->id.number, what);
}

static inline void fake_end(struct fake *f, const char *why)
{
    struct err e = { 0 };

    if (atomic_fetch_add(&f->n_closed, 1) > 0)
        return;
    err_set(&e, -EPIPE, "MCP_CLOSED", "%s", why);
    f->on.on_closed(f->on.arg, &e);
}

static inline int fake_start(struct mcp_link *l, const struct mcp_link_events *on, struct err *e)
{
    struct fake *f = (struct fake *)l;

    f->on = *on;
    atomic_store(&f->n_closed, 0);
    atomic_fetch_add(&f->n_starts, 1);
    return 0;
}

static inline int fake_send(struct mcp_link *l, const struct mcp_send *s, struct err *e)
{
    struct fake *f = (struct fake *)l;
    struct arena *a = arena_new();
    struct json_rpc_frame frame;

    pthread_mutex_lock(&f->lock);
    assert_true(f->n_sent < FAKE_FRAMES);
    f->sent[f->n_sent++] = arena_slicedup(f->arena, s->frame);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(json_rpc_read(a, s->frame, LIMIT_MCP_FRAME, &frame, e), 0);
    assert_true(!s->method == !frame.method);
    if (f->serve)
        f->serve(f, &frame, s);
    arena_free(a);
    return f->send_result < 0 ? err_set(e, f->send_result, "MCP_NO_ANSWER", "no answer") : 0;
}

static inline struct mcp_link *fake_close(struct mcp_link *l)
{
    fake_end((struct fake *)l, "The connection to the MCP server was closed.");
    return NULL;
}

static const struct mcp_link_ops fake_ops = {
    .name = "fake", .start = fake_start, .send = fake_send, .close = fake_close
};

/* How often a frame that holds this text was sent. */
static inline size_t fake_count(struct fake *f, const char *text)
{
    size_t n = 0;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_sent; i++)
        n += strstr(f->sent[i], text) != NULL;
    pthread_mutex_unlock(&f->lock);
    return n;
}

struct fake_text {
    struct fake *fake;
    const char *text;
};

static inline bool fake_has_sent(void *arg)
{
    struct fake_text *t = arg;

    return fake_count(t->fake, t->text) > 0;
}

/* What is answered on the pool comes a little later. */
static inline void fake_await(struct fake *f, const char *text)
{
    if (!wait_until(fake_has_sent, &(struct fake_text){ f, text }))
        fail_msg("never sent: %s", text);
}

static inline int fake_set_up(void **state)
{
    struct fake *f = xcalloc(1, sizeof(*f));
    const struct pool_config pool = { .name = "mcp", .n_min = 1, .n_max = 16, .max_waiting = 64 };

    f->link.ops = &fake_ops;
    f->arena = arena_new();
    pthread_mutex_init(&f->lock, NULL);
    if (pool_start(&pool, &f->pool, NULL) < 0)
        fail();
    *state = f;
    return 0;
}

static inline int fake_tear_down(void **state)
{
    struct fake *f = *state;

    f->client = mcp_client_unref(f->client);
    pool_stop(f->pool);
    pthread_mutex_destroy(&f->lock);
    arena_free(f->arena);
    freep(&f);
    return 0;
}

static inline int fake_try_open(struct fake *f, enum mcp_era era, int64_t probe_ms, struct err *e)
{
    const struct mcp_client_config config = {
        .era = era, .handlers = &f->handlers, .pool = f->pool, .probe_ms = probe_ms
    };
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);

    return mcp_client_open(&f->link, &config, &wait, &f->client, &f->era, e);
}

static inline void fake_open(struct fake *f, enum mcp_era era)
{
    struct err e = { 0 };

    if (fake_try_open(f, era, WAIT_MS, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->era, era);
}

#define FAKE_INITIALIZED                                                                                               \
    "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true},"               \
    "\"resources\":{\"subscribe\":true},\"prompts\":{},\"completions\":{},\"logging\":{},"                             \
    "\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}},\"serverInfo\":{\"name\":\"fake\",\"version\":\"1\"},"        \
    "\"instructions\":\"be kind\"}"
#define FAKE_DISCOVERED                                                                                                \
    "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{},"   \
    "\"resources\":{\"subscribe\":true},\"prompts\":{},\"logging\":{}},\"_meta\":{"                                    \
    "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"fake2\",\"version\":\"2\"}}}"

/* The beginning of a good server; false: the frame is something else. */
static inline bool fake_begin(struct fake *f, const struct json_rpc_frame *frame)
{
    if (!frame->method)
        return true;
    if (strcmp(frame->method, "initialize") == 0)
        fake_answer(f, frame, FAKE_INITIALIZED);
    else if (strcmp(frame->method, "server/discover") == 0)
        fake_answer(f, frame, FAKE_DISCOVERED);
    else
        return frame->kind == JSON_RPC_NOTIFICATION;
    return true;
}
