/* Decisions of a person about an app's permission (table grants): one row for each decision in force. Any thread.
 *
 * The store keeps the rows; src/identity interprets them (expired, used up, ask again). Row texts live in the arena.
 *
 *     r = store_grants_set(store, &(struct grant_row){ .app_id = id, .permission = "llm.chat", .decision = "allow",
 *                                                      .scope = "always" }, e);
 */
#pragma once

#include "store/store.h"

struct grant_row {
    const char *app_id, *permission;
    const char *decision;   /* allow, deny */
    const char *scope;      /* once, until_stop, until_date, always */
    const char *expires_at; /* until_date only */
    int64_t n_denials;      /* in a row; counted by store_grants_set() */
    bool is_used;           /* scope once: the single use has been taken */
    const char *created_at; /* of the latest decision */
    const char *last_used_at;
    const char *command;     /* the app's start command at the decision; NULL: the current command */
    const char *app_command; /* the app's current start command; read only together with command */
};

/* -ENOENT when there is no decision. */
int store_grants_get(struct store *s, struct arena *a, const char *app_id, const char *permission,
                     struct grant_row *ret, struct err *e) MUST_CHECK;
/* app_id NULL: the grants of all apps. */
int store_grants_list(struct store *s, struct arena *a, const char *app_id, struct grant_row **ret, size_t *ret_n,
                      struct err *e) MUST_CHECK;
/* Replaces an earlier decision. Deny adds one to n_denials, allow sets it to 0; created_at is now, is_used false.
 * -ENOENT APP_NOT_FOUND for an unknown app. */
int store_grants_set(struct store *s, const struct grant_row *row, struct err *e) MUST_CHECK;
/* Repeats the denial in force: its scope and end change, n_denials does not. -ENOENT when there is no denial. */
int store_grants_deny_again(struct store *s, const struct grant_row *row, struct err *e) MUST_CHECK;
/* Takes the single use of a grant of scope once. -ENOENT when it has been taken: of two callers only one gets it. */
int store_grants_use_once(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
int store_grants_touch(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* -ENOENT when there is no grant. */
int store_grants_revoke(struct store *s, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* Forgets every decision about the app, denials too. */
int store_grants_reset(struct store *s, const char *app_id, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Removes the grants of scope until_stop; app_id NULL: of every app (at service start). */
int store_grants_clear_until_stop(struct store *s, const char *app_id, struct err *e) MUST_CHECK;
