/* Notes in the store when a key or a grant was last used, outside of the request that used it.
 *
 * One thread. clerk_note_*() are for any thread, the loop too: they queue and return; when the queue is full the note is
 * dropped, the next use a minute later brings it. clerk_stop() writes what waits.
 */
#pragma once

#include "store/store.h"

struct clerk;

struct clerk *clerk_start(struct store *s) MUST_CHECK;
struct clerk *clerk_stop(struct clerk *c);
void clerk_note_key(struct clerk *c, const char *key_id);
void clerk_note_grant(struct clerk *c, const char *app_id, const char *permission);
