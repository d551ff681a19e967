/* Calls that threads make at the same time become one statement, as a group commit does it for a file: while one is
 * under way, the calls that come wait for it, and one of their callers then runs them all. Up to BATCH_FEW callers do
 * not wait for each other. Nobody waits longer than BATCH_PATIENCE_MS for the statement of another caller to begin his
 * own, so that a row lock holds up its own call only. Any thread.
 *
 *     if (postgres_batch_enter(pg->claims, &call->batched, &group)) {
 *         run(pg, &group);                            // sets what each call of the group gets
 *         postgres_batch_leave(pg->claims, &group);
 *     }                                               // else: another caller has run it
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { BATCH_MAX = 32, BATCH_PATIENCE_MS = 5, BATCH_FEW = 4 };

struct postgres_batched {
    struct postgres_batched *next;
    bool is_taken, is_done;
};

struct postgres_batch_group {
    struct postgres_batched *calls[BATCH_MAX]; /* the first one is the caller's own */
    size_t n;
};

/* Whether one statement can do both. */
typedef bool postgres_batch_fn(const struct postgres_batched *a, const struct postgres_batched *b);

struct postgres_batch;
struct postgres_batch *postgres_batch_new(postgres_batch_fn *is_alike);
struct postgres_batch *postgres_batch_free(struct postgres_batch *b);
/* True: the caller runs the group and leaves. False: another caller has run the call. */
bool postgres_batch_enter(struct postgres_batch *b, struct postgres_batched *call, struct postgres_batch_group *ret);
void postgres_batch_leave(struct postgres_batch *b, struct postgres_batch_group *group);
