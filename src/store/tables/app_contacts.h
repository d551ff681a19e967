/* Programs not started by Hearth that used the id of an app (table app_contacts). Any thread; row texts live in the
 * arena. The rows of an app are deleted with it.
 *
 *     r = store_app_contacts_add(store, app_id, "/usr/bin/curl", &entry, &is_new, e);
 */
#pragma once

#include "store/tables/audit.h"

struct app_contact_row {
    const char *app_id, *app_name, *program, *first_at;
};

/* Adds the program, and `entry` to the audit log, when it is new. Beyond LIMIT_APP_CONTACTS of one app, or for a
 * removed app, *ret_is_new is always false. */
int store_app_contacts_add(struct store *s, const char *app_id, const char *program, const struct audit_row *entry,
                           bool *ret_is_new, struct err *e) MUST_CHECK;
/* Newest first, at most LIMIT_LIST. */
int store_app_contacts_list(struct store *s, struct arena *a, struct app_contact_row **ret, size_t *ret_n,
                            struct err *e) MUST_CHECK;
