/* Answers of POST /v1/responses that are kept for some time (setting llm.responses_keep_s), in memory only, each for
 * the caller that requested it.
 *
 * A kept answer holds its own input and output and a reference to the answer it continues, so each turn of a thread is
 * stored once; a turn outlives its id as long as a later turn of its thread is kept. Number and bytes are limited for
 * each caller and in total: the oldest answer of the caller, or of the caller with the most bytes, is removed first.
 * Any thread; a referenced turn does not change.
 *
 *     prev = v1_kept_find(kept, caller, id);
 *     v1_kept_add(kept, &(struct v1_kept_new){ caller, id, input, response, TAKE(prev) });
 */
#pragma once

#include "base/loop.h"
#include "base/slice.h"
#include "settings/settings.h"

enum { V1_KEPT_ID_SIZE = 33 }; /* 32 hex digits and NUL */

struct v1_kept;
struct v1_kept_owner;

struct v1_kept_turn {
    char id[V1_KEPT_ID_SIZE];
    char *input, *response; /* owned; JSON: an array of items; the whole answer as it was sent */
    size_t n_input, n_response;
    size_t n_values;                     /* upper bound of the JSON values in both */
    const struct v1_kept_turn *previous; /* a reference; NULL: the first turn of its thread */
    /* the rest is private to v1_kept.c */
    size_t n_bytes;
    int64_t made_ms;
    unsigned n_refs;
    bool is_listed;
    struct v1_kept_owner *owner;
    struct v1_kept_turn *next_in_bucket, *next_of_owner, *previous_of_owner, *next_of_all, *previous_of_all;
};

/* l NULL, without a service: expired answers are removed with the next addition. Call on the loop thread, or before the
 * loop runs; close after the loop has ended. */
struct v1_kept *v1_kept_open(struct loop *l, struct settings *settings) MUST_CHECK;
struct v1_kept *v1_kept_close(struct v1_kept *k); /* NULL is fine; references must be gone */

/* Counts commas and brackets, including those in texts: an upper bound of the number of values. */
size_t v1_kept_values(struct slice json);

struct v1_kept_new {
    const char *caller, *id;
    char *input, *response;              /* from malloc(); ownership passes to v1_kept_add() */
    const struct v1_kept_turn *previous; /* a reference that passes to v1_kept_add(); NULL: none */
    size_t n_input,
        n_values; /* bytes of the input, and its v1_kept_values(): the input may be too long to count on the loop */
};
/* False: the answer was not kept, because of its size or because the setting keeps nothing. */
bool v1_kept_add(struct v1_kept *k, const struct v1_kept_new *what);

/* A reference, or NULL: no answer has this id, or the answer is too old or another caller's. */
const struct v1_kept_turn *v1_kept_find(struct v1_kept *k, const char *caller, struct slice id) MUST_CHECK;
const struct v1_kept_turn *v1_kept_unref(struct v1_kept *k,
                                         const struct v1_kept_turn *turn); /* NULL is fine; returns NULL */
bool v1_kept_remove(struct v1_kept *k, const char *caller, struct slice id);
