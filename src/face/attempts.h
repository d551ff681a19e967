/* Slows whoever tries again and again: a burst is free, then one attempt each interval. Nobody is locked out: the next
 * attempt becomes free as time passes. Pure but for the lock; the time is an argument. Any thread.
 *
 * Keys share slots of a fixed table by a keyed hash, so that no number of keys grows or empties it.
 *
 *     r = attempts_take(accounts, slice_of(email), clock_mono_ms(), e);        -EBUSY RATE_LIMIT
 *     ... it was the right password ...
 *     attempts_give_back(accounts, slice_of(email));
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct attempts;

struct attempts *attempts_new(int64_t n_at_once, int64_t interval_ms) MUST_CHECK;
struct attempts *attempts_free(struct attempts *a);
/* e->retry_after_ms says when the next attempt is free. */
int attempts_take(struct attempts *a, struct slice key, int64_t now_ms, struct err *e) MUST_CHECK;
void attempts_give_back(struct attempts *a, struct slice key);
