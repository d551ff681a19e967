/* Notes in the store when a key or a grant was last used, outside the request that used it.
 *
 * One thread. last_used_note_*() are for any thread, the loop too: they queue and return. When the queue is full the
 * note is dropped; the next use a minute later is noted instead. last_used_stop() writes the queued notes.
 */
#pragma once

#include "store/store.h"

struct last_used;

struct last_used *last_used_start(struct store *s) MUST_CHECK;
struct last_used *last_used_stop(struct last_used *c);
void last_used_note_key(struct last_used *c, const char *key_id);
void last_used_note_grant(struct last_used *c, const char *app_id, const char *permission);
