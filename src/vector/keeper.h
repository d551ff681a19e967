/* The thread of the embedded engine for what nobody waits for: loading the namespaces used last when the store opens,
 * inverted lists, compaction, and deleting the rows of dropped namespaces from the file.
 *
 *     keeper_wake(engine->keeper);                     after a change: it looks whether there is something to do
 */
#pragma once

#include "base/err.h"

struct engine;
struct keeper;

int keeper_start(struct engine *engine, struct keeper **ret, struct err *e) MUST_CHECK;
struct keeper *keeper_stop(struct keeper *k);           /* gives up what it does; NULL is fine */
void keeper_wake(struct keeper *k);
/* Waits until nothing is left to do; for tests and measures. */
void keeper_wait(struct keeper *k);
