/* What was asked of models, added up in memory and written to the table usage by a thread of its own (the half of the meter that counts).
 *
 * One cell a day and app, key, provider, model and kind. Cells are written within METER_FLUSH_MS of a change; a write that fails is tried
 * again with what came since. Owned by the meter; any thread; the lock is held for memory work only.
 */
#pragma once

#include "identity/meter.h"

struct ledger;

/* is_serving: with a thread. NULL when that could not be started. */
struct ledger *ledger_start(struct store *s, bool is_serving);
struct ledger *ledger_stop(struct ledger *l);           /* writes what is left */
/* app_id and key_id: NULL when not named. */
void ledger_add(struct ledger *l, int64_t wall_ms, const char *app_id, const char *key_id, const struct meter_use *use);
int ledger_flush(struct ledger *l, struct err *e) MUST_CHECK;
