/* What a stored decision (store/grants.h) means at this moment. Pure; any thread. */
#pragma once

#include "identity/consent.h"
#include "store/grants.h"

enum decision { DECISION_NONE, DECISION_ALLOWED, DECISION_DENIED };

/* row NULL: nothing was decided. Used up, expired and outdated ones are DECISION_NONE. */
enum decision decision_now(const struct grant_row *row, int64_t wall_ms);
/* Two denials in a row: the app may not ask again (decision D4). */
bool decision_is_final(const struct grant_row *row);
/* An allowance for another command than the one that is started now. A denial holds whatever is started. */
bool decision_is_outdated(const struct grant_row *row);
bool decision_is_single(const struct grant_row *row);   /* an allowance of one use */
/* Was the last noted use less than a minute ago? */
bool decision_is_noted(const struct grant_row *row, int64_t wall_ms);
