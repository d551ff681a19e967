/* The registered apps: rows of the store and the configurations in them. */
#include "apps/private.h"

#include "apps/command.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/consent.h"
#include "os/files.h"
#include "store/tables/apps.h"

/* --- reading --- */

static int config_of_row(struct arena *a, const struct app_row *row, struct app_config *ret, struct err *e)
{
    int r = app_config_read(a, slice_of(row->config), ret, e);

    if (r < 0)
        return err_prefix(e, r, "The stored configuration of %s cannot be read", row->name);
    ret->app_id = row->app_id;
    return 0;
}

int app_find(struct apps *apps, const char *id_or_name, struct arena *a, struct app_config *ret, struct err *e)
{
    struct app_row row;
    int r = store_apps_find(apps->config.store, a, id_or_name, &row, e);

    return r < 0 ? r : config_of_row(a, &row, ret, e);
}

int app_each(struct apps *apps, struct arena *a, int (*fn)(void *arg, const struct app_config *c, struct err *e),
             void *arg, struct err *e)
{
    struct app_row *rows;
    size_t n = 0;
    int r = store_apps_list(apps->config.store, a, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct app_config c;

        r = config_of_row(a, &rows[i], &c, e);
        if (r == 0)
            r = fn(arg, &c, e);
    }
    return r;
}

/* --- registering --- */

static char *permissions_json(struct arena *a, const struct app_config *c)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(16));
    json_write_init(&w, &out);
    json_add_strings(&w, NULL, c->permissions.items, c->permissions.n);
    return buf_to_arena(&out, a);
}

/* The app that this configuration replaces, found by id or by name; the app keeps its id. *ret_id is UUID_SIZE. */
static int find_replaced(struct apps *apps, const struct app_config *c, struct arena *a, struct app_row *ret_known,
                         char *ret_id, struct err *e)
{
    struct app_row known = { 0 };
    int r = c->app_id ? store_apps_get(apps->config.store, a, c->app_id, &known, NULL) : -ENOENT;

    if (r == -ENOENT)
        r = store_apps_get_by_name(apps->config.store, a, c->name, &known, NULL);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, err_code_of(r, "INTERNAL_ERROR"), "The store cannot be read.");
    *ret_known = known;
    if (r == 0 && c->app_id && strcmp(c->app_id, known.app_id) != 0)
        return err_set(e, -EEXIST, "APP_EXISTS", "Another app, %s, has the name %s.", known.app_id, c->name);
    if (r == 0)
        snprintf(ret_id, UUID_SIZE, "%s", known.app_id);
    else if (c->app_id)
        snprintf(ret_id, UUID_SIZE, "%s", c->app_id);
    else
        uuid_v4(ret_id);
    return 0;
}

/* The former command when it differs from the new one; NULL: unchanged. */
static const char *former_command(struct arena *a, const struct app_row *known, const struct app_row *row)
{
    const char *former = known->command;
    struct app_config c;

    if (!former && config_of_row(a, known, &c, NULL) == 0)
        former = app_command_text(a, &c);
    return former && strcmp(former, row->command) != 0 ? former : NULL;
}

/* known: the row to be replaced; without an id when there is none. */
static int store_row(struct apps *apps, const struct app_row *row, const struct app_row *known, const char *actor,
                     struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = audit_append_json(apps->config.identity, actor, known->app_id ? "app.change" : "app.new", row->app_id,
                              slice_of(row->config), e);

    if (r < 0)
        return r;
    return known->app_id ? store_apps_update(apps->config.store, row, former_command(a, known, row), e)
                         : store_apps_insert(apps->config.store, row, e);
}

int app_put(struct apps *apps, const struct app_config *c, struct slice json, const char *actor, char *ret_app_id,
            struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char app_id[UUID_SIZE];
    struct app_row known = { 0 };
    int r = find_replaced(apps, c, a, &known, app_id, e);
    const struct app_row row = {
        .app_id = app_id,
        .name = c->name,
        .display_name = c->display_name && *c->display_name ? c->display_name : c->name,
        .description = c->description,
        .icon = c->icon,
        .app_type = c->app_type,
        .config = arena_slicedup(a, json),
        .permissions = permissions_json(a, c),
        .command = app_command_text(a, c),
        .is_enabled = c->is_enabled,
        .requires_user_auth = c->is_user_auth_required,
    };

    if (r == 0)
        r = store_row(apps, &row, &known, actor, e);
    if (r == 0)
        r = consent_app_declares(apps->config.identity, app_id, c->permissions.items, c->permissions.n, e);
    if (r < 0)
        return r;
    memcpy(ret_app_id, app_id, sizeof(app_id));
    apps_notify(apps, app_id);
    return 0;
}

/* --- removing --- */

/* While the mark is set the app cannot be started. */
static void mark_removing(struct apps *apps, const char *app_id, bool is_removing)
{
    pthread_mutex_lock(&apps->mutex);
    slot_take(apps, app_id)->is_removing = is_removing;
    pthread_mutex_unlock(&apps->mutex);
}

static void forget_slot(struct apps *apps, const char *app_id)
{
    struct app_slot *slot;

    pthread_mutex_lock(&apps->mutex);
    slot = slot_find(apps, app_id);
    while (slot && slot->n_users > 0)
        pthread_cond_wait(&apps->changed, &apps->mutex);
    if (slot)
        slot_drop(apps, slot);
    pthread_mutex_unlock(&apps->mutex);
    slot_free(slot);
}

static int remove_row(struct apps *apps, const char *app_id, const char *actor, struct err *e)
{
    int r = app_stop(apps, app_id, e);

    if (r == 0)
        r = audit_append(apps->config.identity, actor, "app.remove", app_id, NULL, e);
    return r < 0 ? r : store_apps_delete(apps->config.store, app_id, e);
}

int app_remove(struct apps *apps, const char *app_id, bool with_data, const char *actor, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_row row;
    int r = store_apps_find(apps->config.store, a, app_id, &row, e);

    if (r < 0)
        return r;
    mark_removing(apps, row.app_id, true);
    r = remove_row(apps, row.app_id, actor, e);
    if (r < 0) {
        mark_removing(apps, row.app_id, false);
        return r;
    }
    consent_app_removed(apps->config.identity, row.app_id);
    forget_slot(apps, row.app_id);
    if (with_data)
        r = dir_remove(arena_printf(a, "%s/local-apps/%s", apps->config.data_dir, row.app_id), e);
    apps_notify(apps, row.app_id);
    return r;
}
