/* A reader is fed N elements, then FACTOR times as many, and may take SLACK times as long as linear growth would take
 * (test_growth*.c). */
#pragma once

#include "base/fields.h"
#include "base/limits.h"
#include "llm/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>

struct llm_protocol;

enum { FACTOR = 8, TRIES = 5, SLACK = 3, ENOUGH_NS = 300000 };

struct growing {
    const char *name;
    size_t n; /* elements of the small round */
    const char *head, *element, *rest,
        *tail; /* head element rest...rest tail; % is an element's number, in the head the number of elements */
    void (*read)(struct arena *a, struct slice text, const struct growing *g);
    const struct field *fields; /* of read_fields */
    size_t size;
    const struct llm_protocol *protocol;
    const char *store; /* of test_growth_stores.c: a provider of vectors_providers[] ... */
    char op;           /* ... and the operation */
};

/* ---- the texts ---- */

static inline void add_element(struct buf *out, const char *element, size_t i)
{
    for (; *element; element++) {
        if (*element == '%')
            buf_printf(out, "%zu", i);
        else
            buf_add_char(out, *element);
    }
}

static inline struct slice grow(struct arena *a, const struct growing *g, size_t n)
{
    struct buf out;
    size_t n_bytes;

    buf_init(&out, MIB(64));
    add_element(&out, g->head, n);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_add_str(&out, g->rest ? g->rest : ",");
        add_element(&out, g->element, i);
    }
    buf_add_str(&out, g->tail);
    n_bytes = out.n;
    return (struct slice){ buf_to_arena(&out, a), n_bytes };
}

static inline struct json_value parse(struct arena *a, struct slice text)
{
    struct json_value v = { 0 };
    struct err e = { 0 };

    if (json_parse(a, text, &v, &e) < 0)
        fail_msg("%s: %.*s", e.text, (int)MIN(text.n, (size_t)200), text.p);
    return v;
}

/* ---- the measure ---- */

static inline int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t cost(const struct growing *g, size_t n, size_t rounds)
{
    AUTO(arena_freep) struct arena *texts = arena_new();
    const struct slice text = grow(texts, g, n);
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < rounds; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        int64_t began = cpu_ns();

        g->read(a, text, g);
        least = MIN(least, cpu_ns() - began);
    }
    return least;
}

/* The request that a chat's body holds. */
static inline struct llm_request chat_of(struct arena *a, struct slice text, const struct growing *g)
{
    struct llm_request_body *body = ARENA_NEW(a, struct llm_request_body);
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = fields_read(llm_request_fields, parse(a, text), body, a, "", &e);

    if (r == 0)
        r = llm_request_of(body, a, &request, &e);
    if (r < 0)
        fail_msg("%s: %s", g->name, e.text);
    return request;
}

static inline void assert_linear(const struct growing *g)
{
    int64_t small = 0, large = 0;

    for (size_t i = 0; i < TRIES; i++) {
        small = cost(g, g->n, 1 + i);
        large = cost(g, FACTOR * g->n, 1 + i);
        if (large <= SLACK * FACTOR * MAX(small, (int64_t)ENOUGH_NS / FACTOR))
            return;
    }
    fail_msg("%s: %zu elements take %lld us, %zu take %lld us", g->name, g->n, (long long)small / 1000, FACTOR * g->n,
             (long long)large / 1000);
}

static inline void assert_all_linear(const struct growing *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_linear(&cases[i]);
}
