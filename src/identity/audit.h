/* The audit log: who changed whose access, and how. Append-only and hash-chained (store/tables/audit.h). Any worker.
 *
 *     r = audit_append(id, caller->actor, "key.new", key_id, NULL, e);
 *
 * An entry is stored before the change it describes, so no change lacks its entry. A use of a dangerous permission may
 * overlap with the storing of its entry (audit_begin_use(), audit_meanwhile()): it is answered once the entry is on
 * disk.
 */
#pragma once

#include "base/json.h"
#include "identity/identity.h"
#include "store/tables/audit.h"

/* subject and detail_json may be NULL; the detail is JSON text without secrets. */
int audit_append(struct identity *id, const char *actor, const char *action, const char *subject,
                 const char *detail_json, struct err *e) MUST_CHECK;
/* The same with {"permission": name, "scope": scope} as detail; scope may be NULL. */
int audit_append_permission(struct identity *id, const char *actor, const char *action, const char *app_id,
                            const char *permission, const char *scope, struct err *e) MUST_CHECK;
/* Queues the entry "permission.use", and returns before it is on disk; while entries cannot be stored it waits, so that
 * the error comes before the use. A begun use must be ended, before the arena. */
int audit_begin_use(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                    struct audit_use **ret, struct err *e) MUST_CHECK;
/* While the use waits for something else: stores the entry on this thread when it is free, otherwise has it stored. The
 * form is that of `meanwhile` in mcp/client.h. use: struct audit_use; NULL: nothing was to be entered. */
void audit_meanwhile(void *use, bool is_free);
/* Returns when the entry is on disk. NULL: nothing was to be entered. e may be NULL. */
int audit_end_use(struct audit_use *use, struct err *e) MUST_CHECK;
/* The same with the defining values, in full, as detail: members named as secrets, and passwords in addresses, are
 * shown as ****. */
int audit_append_values(struct identity *id, const char *actor, const char *action, const char *subject,
                        struct json_value values, struct err *e) MUST_CHECK;
int audit_append_json(struct identity *id, const char *actor, const char *action, const char *subject,
                      struct slice json, struct err *e) MUST_CHECK;
/* Newest first, entries with seq < before (0: all), at most limit. */
int audit_list(struct identity *id, struct arena *a, int64_t before, int64_t limit, struct audit_row **ret,
               size_t *ret_n, struct err *e) MUST_CHECK;
/* Returns 0 also when the chain is broken: *ret holds the verdict. */
int audit_verify(struct identity *id, struct audit_verdict *ret, struct err *e) MUST_CHECK;
