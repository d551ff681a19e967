/* What a refusal of PostgreSQL means, whether it came by libpq or in an answer of a REST interface. Pure; any thread.
 *
 *     return refusals_sqlstate("23505", table, &why, e);
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* A deadlock or a conflict between transactions: the server has rolled everything back, and it may be run again. */
bool refusals_is_undone(const char *sqlstate);

/* `why` has the server's words; table NULL: the statement names none. -EIO STORE_FAILED for a state without a meaning
 * of its own. */
int refusals_sqlstate(const char *sqlstate, const char *table, const struct err *why, struct err *e);
