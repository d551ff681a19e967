/* Regular expressions of ECMA-262 (with its flag u), as JSON Schema has them: translated into PCRE2's and searched by
 * PCRE2 within a number of steps, so that no expression hangs.
 *
 * Owned by the arena; read-only after pattern_new(), so any thread may search. What PCRE2 cannot do is refused: a
 * look-behind without a greatest length, a repeated group that grows beyond 64 KB of code. One thing differs: a group
 * within a repeated group keeps what it matched in an earlier round.
 *
 *     const struct pattern *p = pattern_new(arena, SLICE_LIT("^a+$"), why);
 *     r = pattern_search(p, text, &n_steps, LIMIT_SCHEMA_STEPS);
 */
#pragma once

#include "base/arena.h"

struct pattern;

enum { PATTERN_WHY_SIZE = 160 };

/* NULL: not an expression that can be used, and why says the reason: "has the escape \Z, which ECMA-262 does not have".
 */
const struct pattern *pattern_new(struct arena *a, struct slice source, char why[PATTERN_WHY_SIZE]);
struct slice pattern_source(const struct pattern *p);
/* 1: some part of the text matches; 0: none does; -E2BIG: *n_steps exceeds max_steps; -ENOMEM: the search takes more
 * than LIMIT_PATTERN_HEAP. text is UTF-8. */
int pattern_search(const struct pattern *p, struct slice text, size_t *n_steps, size_t max_steps) MUST_CHECK;
