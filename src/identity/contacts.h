/* Finds out which program uses the id of an app that Hearth starts itself. A program other than the app's own is
 * reported once for each app and program: in the store, in the audit log (app.contact) and to one listener.
 *
 * One thread, because reading /proc takes milliseconds. contacts_note() is for any thread, the loop too: it queues and
 * returns. A contact is dropped when the queue is full, and each app is checked at most once a second.
 */
#pragma once

#include "identity/identity.h"

struct contacts;

struct contacts *contacts_start(struct identity *id) MUST_CHECK;
struct contacts *contacts_stop(struct contacts *c);
/* inode: of the caller's socket */
void contacts_note(struct contacts *c, const char *app_id, uint64_t inode);
