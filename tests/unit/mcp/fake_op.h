/* One operation of a test: its arena, its wait, its error. */
#pragma once

#include "fake_link.h"

static const struct json_value absent;
static const struct mcp_caller fake_caller = { .name = "app x" };

struct op {
    struct arena *arena;
    struct net_wait wait;
    struct mcp_call call;
    struct err e;
};

static inline void op_init(struct op *op)
{
    *op = (struct op){ .arena = arena_new(), .wait = net_wait_of(WAIT_MS, NULL, NULL) };
    op->call = (struct mcp_call){ .arena = op->arena, .wait = &op->wait, .caller = &fake_caller };
}

static inline void op_clear(struct op *op)
{
    arena_free(op->arena);
}
