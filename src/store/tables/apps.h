/* Local Apps (table apps): the validated configuration, and the choices of the person. Any thread; row texts live in
 * the arena; created_at and updated_at are set by the store.
 *
 *     r = store_apps_get(store, arena, app_id, &app, e);       -ENOENT APP_NOT_FOUND
 */
#pragma once

#include "store/store.h"

struct app_row {
    const char *app_id; /* uuid */
    const char *name;   /* unique */
    const char *display_name, *description, *icon;
    const char *app_type;    /* python, node, npx, uvx, custom */
    const char *config;      /* JSON object */
    const char *permissions; /* JSON array of names declared in the manifest */
    const char *command;     /* its start command (apps/command.h); NULL: stored by a version without this column */
    bool is_enabled;
    bool requires_user_auth;
    const char *created_at, *updated_at;
};

/* -E2BIG TOO_MANY_APPS beyond LIMIT_APPS; -EEXIST APP_EXISTS for a known id or name. */
int store_apps_insert(struct store *s, const struct app_row *row, struct err *e) MUST_CHECK;
/* Updates every column except created_at of the row of app_id. command_before: the previous start command, when it has
 * changed; grants decided for that command keep it and apply again only when the command returns
 * (store/tables/grants.h). NULL: unchanged. */
int store_apps_update(struct store *s, const struct app_row *row, const char *command_before, struct err *e) MUST_CHECK;
int store_apps_get(struct store *s, struct arena *a, const char *app_id, struct app_row *ret, struct err *e) MUST_CHECK;
int store_apps_get_by_name(struct store *s, struct arena *a, const char *name, struct app_row *ret,
                           struct err *e) MUST_CHECK;
/* Finds by id, otherwise by name. */
int store_apps_find(struct store *s, struct arena *a, const char *id_or_name, struct app_row *ret,
                    struct err *e) MUST_CHECK;
/* The id of an app by id or name, also the id of an app that was deleted: its tasks and usage remain. An absent or
 * empty name is returned unchanged. */
int store_apps_find_id(struct store *s, struct arena *a, const char *id_or_name, const char **ret,
                       struct err *e) MUST_CHECK;
/* Ordered by name. */
int store_apps_list(struct store *s, struct arena *a, struct app_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* Deletes the app with its grants and backend token; its tasks remain. */
int store_apps_delete(struct store *s, const char *app_id, struct err *e) MUST_CHECK;
