/* The results that an operation of a vector store may return, whatever its peer answered. */
#pragma once

#include "base/limits.h"
#include "base/utf8.h"
#include "vector/vector.h"
#include "vector/vector_check.h"

#include <assert.h>

#define FUZZ_PREFIX "sdk_f_"
#define FUZZ_NS FUZZ_PREFIX "x"

enum { FUZZ_DIMENSIONS = 3, FUZZ_TOP_K = 5, FUZZ_PAGE = 10 };

static inline void check_hits(struct arena *a, const struct vector_hits *hits, size_t n_most, size_t n_dimensions)
{
    assert(hits->n <= n_most);
    for (size_t i = 0; i < hits->n; i++) {
        const struct vector_hit *hit = &hits->items[i];
        struct json_value metadata = { 0 };
        int r = json_parse(a, slice_of(hit->metadata), &metadata, NULL);

        assert(r == 0 && json_type(metadata) == JSON_OBJECT);
        assert(strlen(hit->id) <= LIMIT_VECTOR_ID_BYTES && utf8_is_valid(slice_of(hit->id)));
        assert(hit->score >= -1 && hit->score <= 1);
        assert(hit->vector ? hit->n_dimensions > 0 : hit->n_dimensions == 0);
        assert(!hit->vector || n_dimensions == 0 || hit->n_dimensions == n_dimensions);
        for (size_t k = 0; k < hit->n_dimensions; k++)
            assert(hit->vector[k] - hit->vector[k] == 0);
    }
}

static inline int query_store(struct vectors *v, const struct net_wait *wait, struct arena *a, struct json_value filter,
                              struct err *e)
{
    static const float vector[FUZZ_DIMENSIONS] = { 1, 0, 2 };
    const struct vector_query q = { .vector = vector,
                                    .n_dimensions = FUZZ_DIMENSIONS,
                                    .top_k = FUZZ_TOP_K,
                                    .min_score = -2,
                                    .with_vectors = true,
                                    .filter = filter };
    struct vector_hits hits = { 0 };
    int r = v->ops->query(v, wait, FUZZ_NS, &q, a, &hits, e);

    if (r == 0)
        check_hits(a, &hits, FUZZ_TOP_K, FUZZ_DIMENSIONS);
    return r;
}

static inline int list_store(struct vectors *v, const struct net_wait *wait, struct arena *a, struct err *e)
{
    struct vector_hits hits = { 0 };
    int r = v->ops->list(v, wait, FUZZ_NS, &(struct vector_list_request){ .limit = FUZZ_PAGE, .with_vectors = true }, a,
                         &hits, e);

    if (r == 0)
        check_hits(a, &hits, FUZZ_PAGE, 0);
    return r;
}

static inline int name_spaces(struct vectors *v, const struct net_wait *wait, struct arena *a, struct err *e)
{
    struct field_strings names = { 0 };
    int r = v->ops->namespaces(v, wait, FUZZ_PREFIX, a, &names, e);

    for (size_t i = 0; r == 0 && i < names.n; i++)
        assert(vector_check_prefix(names.items[i], FUZZ_PREFIX));
    return r;
}

static inline int count_store(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    int64_t n = 0, n_dimensions = 0;
    int r = v->ops->count(v, wait, FUZZ_NS, &n, &n_dimensions, e);

    assert(r < 0 || (n >= 0 && n_dimensions >= 0 && n_dimensions <= LIMIT_DIMENSIONS));
    return r;
}

static inline int change_store(struct vectors *v, const struct net_wait *wait, bool is_removal,
                               struct json_value filter, struct err *e)
{
    static const float vector[FUZZ_DIMENSIONS] = { 1, 0, 2 };
    const struct vector_record records[] = { { "a", vector, "{\"k\": 1, \"m\": \"x\"}" }, { "b", vector, NULL } };
    const struct vector_removal removal = { .filter = filter,
                                            .ids = json_is_absent(filter) ? (const char *const[]){ "a", "b" } : NULL,
                                            .n_ids = json_is_absent(filter) ? 2 : 0 };
    int64_t n = 0;
    int r;

    if (!is_removal)
        return v->ops->upsert(v, wait, FUZZ_NS, &(struct vector_batch){ records, 2, FUZZ_DIMENSIONS }, e);
    r = v->ops->remove(v, wait, FUZZ_NS, &removal, &n, e);
    assert(r < 0 || n >= 0);
    return r;
}

/* Runs the operation with this letter. */
static inline void try_store(struct vectors *v, char op)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(600000, NULL, NULL);
    struct json_value filter = { 0 };
    struct err e = { 0 };
    int r = json_parse(a, SLICE_LIT("{\"k\": {\"$ne\": 2}, \"s\": \"t\"}"), &filter, NULL);

    switch (op) {
    case 'q':
        r = query_store(v, &wait, a, (struct json_value){ 0 }, &e);
        break;
    case 'f':
        r = query_store(v, &wait, a, filter, &e);
        break;
    case 'l':
        r = list_store(v, &wait, a, &e);
        break;
    case 'n':
        r = name_spaces(v, &wait, a, &e);
        break;
    case 'c':
        r = count_store(v, &wait, &e);
        break;
    case 'u':
        r = change_store(v, &wait, false, filter, &e);
        break;
    case 'd':
        r = change_store(v, &wait, true, (struct json_value){ 0 }, &e);
        break;
    case 'D':
        r = change_store(v, &wait, true, filter, &e);
        break;
    default:
        r = v->ops->check(v, &wait, &e);
    }
    assert(r == 0 || (*e.code && *e.text));
}
