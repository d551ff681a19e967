/* The background thread of the embedded engine: loading the last used namespaces when the store opens, building
 * inverted lists, compaction, side files, deleting the rows of dropped namespaces from the file, and folding its
 * write-ahead log in once no more changes come.
 *
 *     keeper_wake(engine->keeper);                     after a change: the thread checks for work
 */
#pragma once

#include "base/err.h"

struct engine;
struct keeper;

int keeper_start(struct engine *engine, struct keeper **ret, struct err *e) MUST_CHECK;
struct keeper *keeper_stop(struct keeper *k); /* abandons the current work; NULL is fine */
void keeper_wake(struct keeper *k);
/* A namespace has changed: some work is due when there are no more changes for SPACE_QUIET_MS. */
void keeper_note_change(struct keeper *k);
/* Waits until no work is left, also none that is otherwise done in a quiet moment; for tests and measurements. */
void keeper_wait(struct keeper *k);
