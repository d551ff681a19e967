/* One call of a tool, on a thread of its own when a test needs several. */
#pragma once

#include "fake_link.h"

struct one {
    struct fake *fake;
    struct arena *arena;
    struct net_wait wait;
    struct mcp_call call;
    struct mcp_result result;
    struct err e;
    atomic_bool is_gone;
    atomic_bool has_ended;
    int r;
    pthread_t thread;
};

static inline void one_init(struct one *o, struct fake *f)
{
    *o = (struct one){ .fake = f, .arena = arena_new() };
    o->wait = net_wait_of(WAIT_MS, &o->is_gone, NULL);
    o->call = (struct mcp_call){ .arena = o->arena, .wait = &o->wait };
}

static inline void *one_run(void *arg)
{
    struct one *o = arg;

    o->r = mcp_client_call(o->fake->client, &o->call, "t", (struct json_value){ 0 }, &o->result, &o->e);
    atomic_store(&o->has_ended, true);
    return NULL;
}

static inline void one_start(struct one *o)
{
    assert_int_equal(pthread_create(&o->thread, NULL, one_run, o), 0);
}

static inline void one_join(struct one *o)
{
    assert_int_equal(pthread_join(o->thread, NULL), 0);
}

static inline void one_clear(struct one *o)
{
    arena_free(o->arena);
}

static inline const char *one_text(struct one *o)
{
    struct json_iter it = json_iter(o->result.content);
    struct json_value block;

    return json_next(&it, NULL, &block) ? json_cstr(json_get(block, "text")) : NULL;
}

static inline struct mcp_counts counts_of(struct fake *f)
{
    struct mcp_counts counts;

    mcp_client_counts(f->client, &counts);
    return counts;
}

static inline void serve_never(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    fake_begin(f, frame);
}
