/* Usage of models, summed in memory and written to the table usage by its own thread (the counting half of the meter).
 *
 * One cell for each day, app, key, provider, model and kind. Cells are written within METER_FLUSH_MS of a change; a
 * failed write is tried again together with newer counts. Owned by the meter; any thread; the lock is held for memory
 * work only.
 */
#pragma once

#include "identity/meter.h"

struct ledger;

/* is_serving: with a thread. NULL when the thread could not be started. */
struct ledger *ledger_start(struct store *s, bool is_serving);
struct ledger *ledger_stop(struct ledger *l); /* writes the remaining counts */
/* app_id and key_id: NULL when not named */
void ledger_add(struct ledger *l, int64_t wall_ms, const char *app_id, const char *key_id, const struct meter_use *use);
int ledger_flush(struct ledger *l, struct err *e) MUST_CHECK;
