/* What a person decided about an app's permission (table grants): one row a decision in force. Any thread.
 *
 * The store keeps the rows; what they mean (expired, used up, ask again) is src/identity's. Row texts live in the arena.
 *
 *     r = store_grants_set(store, &(struct grant_row){ .app_id = id, .permission = "llm.chat", .decision = "allow",
 *                                                      .scope = "always" }, e);
 */
#pragma once

#include "store/store.h"

struct grant_row {
    const char *app_id, *permission;
    const char *decision;               /* allow, deny */
    const char *scope;                  /* once, until_stop, until_date, always */
    const char *expires_at;             /* until_date only */
    int64_t n_denials;                  /* in a row; counted by store_grants_set() */
    bool is_used;                       /* scope once: the one use is gone */
    const char *created_at;             /* of the latest decision */
    const char *last_used_at;
    const char *command;                /* what was started for the app when it was decided; NULL: what is started now */
    const char *app_command;            /* what is started now; read only beside command */
};

/* -ENOENT when nothing was decided. */
int store_grants_get(struct store *s, struct arena *a, const char *app_id, const char *permission, struct grant_row *ret,
                     struct err *e) MUST_CHECK;
/* app_id NULL: of all apps. */
int store_grants_list(struct store *s, struct arena *a, const char *app_id, struct grant_row **ret, size_t *ret_n,
                      struct err *e) MUST_CHECK;
/* Replaces an earlier decision. Deny adds one to n_denials, allow makes it 0; created_at is now, is_used false.
 * -ENOENT APP_NOT_FOUND for an unknown app. */
int store_grants_set(struct store *s, const struct grant_row *row, struct err *e) MUST_CHECK;
/* The denial in force told again: its scope and end change, n_denials does not. -ENOENT when there is none. */
int store_grants_deny_again(struct store *s, const struct grant_row *row, struct err *e) MUST_CHECK;
/* Takes the single use of a grant of scope once. -ENOENT when it is gone: of two callers one gets it. */
int store_grants_use_once(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
int store_grants_touch(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* -ENOENT when there is none. */
int store_grants_revoke(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* Forgets every decision about the app, denials too. */
int store_grants_reset(struct store *s, const char *app_id, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Removes those of scope until_stop; app_id NULL: of every app (service start). */
int store_grants_clear_until_stop(struct store *s, const char *app_id, struct err *e) MUST_CHECK;
