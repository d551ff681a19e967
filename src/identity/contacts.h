/* Finds out which program uses the id of an app that Hearth starts itself, and says so once for each app and program when it is another one:
 * kept in the store, in the audit log (app.contact), told to one listener.
 *
 * One thread, because reading /proc takes milliseconds. contacts_note() is for any thread, the loop too: it queues and returns; what finds the
 * queue full is dropped, and each app is looked at once a second at most.
 */
#pragma once

#include "identity/identity.h"

struct contacts;

struct contacts *contacts_start(struct identity *id) MUST_CHECK;
struct contacts *contacts_stop(struct contacts *c);
/* inode: of the caller's socket. */
void contacts_note(struct contacts *c, const char *app_id, uint64_t inode);
