/* An embedded vector store on a private folder, and vectors to fill it with.
 *
 *     struct rig x = rig_open();
 *     rig_put(&x, "ns", "a", (float[]){ 1, 0 }, 2, "{\"k\":1}");
 *     rig_close(&x);
 */
#pragma once

#include "vector/vector.h"
#include "../store/folder.h"
#include "../wait.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct rig {
    struct folder folder;
    struct vectors_embedded_config config;
    struct vectors *v;
    struct arena *a;
    struct err e;
};

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        x->e.text[0] = '\0';                                                                                           \
        if ((call) < 0)                                                                                                \
            fail_msg("%s: %s", #call, x->e.text);                                                                      \
    } while (0)

#define MUST_FAIL(call, r, its_code)                                                                                   \
    do {                                                                                                               \
        x->e = (struct err){ 0 };                                                                                      \
        assert_int_equal((call), (r));                                                                                 \
        assert_string_equal(x->e.code, (its_code));                                                                    \
    } while (0)

static inline void rig_reopen(struct rig *x)
{
    x->config.path = x->folder.file;
    x->config.side_folder = x->folder.side;
    if (x->v)
        x->v = x->v->ops->close(x->v);
    MUST(vectors_embedded_open(&x->config, &x->v, &x->e));
}

static inline struct rig *rig_open(void)
{
    struct rig *x = calloc(1, sizeof(*x));

    x->folder = folder_make();
    x->a = arena_new();
    x->config =
        (struct vectors_embedded_config){ .list_above_rows = 250000, .target_recall = 0.97, .memory_bytes = 1 << 30 };
    rig_reopen(x);
    return x;
}

static inline void rig_close(struct rig *x)
{
    x->v = x->v->ops->close(x->v);
    x->a = arena_free(x->a);
    folder_remove(&x->folder);
    free(x);
}

static inline void rig_put(struct rig *x, const char *ns, const char *id, const float *vector, size_t n_dimensions,
                           const char *metadata)
{
    struct vector_record record = { id, vector, metadata };

    MUST(x->v->ops->upsert(x->v, NULL, ns, &(struct vector_batch){ &record, 1, n_dimensions }, &x->e));
}

static inline struct json_value rig_json(struct rig *x, const char *text)
{
    struct json_value value = { 0 };

    MUST(json_parse(x->a, slice_of(text), &value, &x->e));
    return value;
}

static inline struct vector_hits rig_query(struct rig *x, const char *ns, const struct vector_query *q)
{
    struct vector_hits hits = { 0 };

    MUST(x->v->ops->query(x->v, NULL, ns, q, x->a, &hits, &x->e));
    return hits;
}

static inline int64_t rig_count(struct rig *x, const char *ns)
{
    int64_t n = -1, n_dimensions;

    MUST(x->v->ops->count(x->v, NULL, ns, &n, &n_dimensions, &x->e));
    return n;
}

/* --- numbers that are the same in every run --- */

struct dice {
    uint64_t state;
};

static inline uint64_t dice_next(struct dice *d)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return d->state;
}

static inline size_t dice_below(struct dice *d, size_t n)
{
    return (size_t)(dice_next(d) >> 11) % n;
}

static inline float dice_float(struct dice *d) /* approximately normal */
{
    double sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (double)(dice_next(d) >> 40) / (double)(1 << 24) - 0.5;
    return (float)sum;
}

static inline void dice_vector(struct dice *d, float *vector, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vector[i] = dice_float(d);
}
