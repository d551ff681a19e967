/* What a stored decision (store/tables/grants.h) means now. Pure; any thread. */
#pragma once

#include "identity/consent.h"
#include "store/tables/grants.h"

enum decision { DECISION_NONE, DECISION_ALLOWED, DECISION_DENIED };

/* row NULL: nothing was decided. A decision that is used up, expired or outdated is DECISION_NONE. */
enum decision decision_now(const struct grant_row *row, int64_t wall_ms);
/* Two denials in a row: the app may not ask again (decision D4). */
bool decision_is_final(const struct grant_row *row);
/* The permission was allowed for a command other than the current one. A denial holds for every command. */
bool decision_is_outdated(const struct grant_row *row);
bool decision_is_single(const struct grant_row *row); /* a grant for one use */
/* Was the last use noted less than a minute ago? */
bool decision_is_noted(const struct grant_row *row, int64_t wall_ms);
