#include "store/tables/apps.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "base/uuid.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "app_id, name, display_name, description, icon, app_type, config, permissions, is_enabled, requires_user_auth, "   \
    "created_at, updated_at, command"

static const struct rows_missing missing = { .code = "APP_NOT_FOUND", .what = "app" };

static void read_app(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct app_row *)into = (struct app_row){
        .app_id = sql_text(rows, a, 0),
        .name = sql_text(rows, a, 1),
        .display_name = sql_text(rows, a, 2),
        .description = sql_text(rows, a, 3),
        .icon = sql_text(rows, a, 4),
        .app_type = sql_text(rows, a, 5),
        .config = sql_text(rows, a, 6),
        .permissions = sql_text(rows, a, 7),
        .is_enabled = sql_int(rows, 8) != 0,
        .requires_user_auth = sql_int(rows, 9) != 0,
        .created_at = sql_text(rows, a, 10),
        .updated_at = sql_text(rows, a, 11),
        .command = sql_text(rows, a, 12),
    };
}

static int err_exists(int r, struct err *e)
{
    return r == -EEXIST ? err_set(e, r, "APP_EXISTS", "There is an app of this name or id already.") : r;
}

int store_apps_insert(struct store *s, const struct app_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "INSERT INTO apps (" COLUMNS ") SELECT ?, ?, ?, ?, ?, ?, ?, coalesce(?, '[]'), ?, ?, ?, ?, ? "
                   "WHERE (SELECT count(*) FROM apps) < ?",
                   "ssssssssiisssi", row->app_id, row->name, row->display_name, row->description, row->icon,
                   row->app_type, row->config, row->permissions, (int64_t)row->is_enabled,
                   (int64_t)row->requires_user_auth, now, now, row->command, (int64_t)LIMIT_APPS);
    if (r < 0 || n > 0)
        return err_exists(r, e);
    return err_set(e, -E2BIG, "TOO_MANY_APPS", "There are %d apps already: remove one that is not used.", LIMIT_APPS);
}

struct app_change {
    const struct app_row *row;
    const char *command_before;
    int64_t n;
};

static int update_app(struct sql_db *db, void *arg, struct err *e)
{
    struct app_change *in = arg;
    const struct app_row *row = in->row;
    char now[TIME_TEXT_SIZE];
    int r = 0;

    clock_now_text(now);
    if (in->command_before)
        r = sql_exec(db, e, "UPDATE grants SET command = ? WHERE app_id = ? AND command IS NULL", "ss",
                     in->command_before, row->app_id);
    if (r == 0)
        r = sql_exec(
            db, e,
            "UPDATE apps SET name = ?, display_name = ?, description = ?, icon = ?, app_type = ?, config = ?, "
            "permissions = coalesce(?, '[]'), is_enabled = ?, requires_user_auth = ?, updated_at = ?, command = ? WHERE app_id = ?",
            "sssssssiisss", row->name, row->display_name, row->description, row->icon, row->app_type, row->config,
            row->permissions, (int64_t)row->is_enabled, (int64_t)row->requires_user_auth, now, row->command,
            row->app_id);
    in->n = r < 0 ? 0 : sql_changes(db);
    return r;
}

int store_apps_update(struct store *s, const struct app_row *row, const char *command_before, struct err *e)
{
    struct app_change in = { row, command_before, 0 };
    int r = store_write(s, update_app, &in, e);

    return rows_changed(err_exists(r, e), in.n, ROWS_NAMED(missing, row->app_id), e);
}

int store_apps_get(struct store *s, struct arena *a, const char *app_id, struct app_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM apps WHERE app_id = ?", "s", app_id);
    return r < 0 ? r : rows_one(rows, a, read_app, ret, ROWS_NAMED(missing, app_id), e);
}

int store_apps_get_by_name(struct store *s, struct arena *a, const char *name, struct app_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM apps WHERE name = ?", "s", name);
    return r < 0 ? r : rows_one(rows, a, read_app, ret, ROWS_NAMED(missing, name), e);
}

static int refuse_name(struct store *s, struct arena *a, const char *name, struct err *e)
{
    struct app_row *rows = NULL;
    const char **names, *near;
    size_t n = 0;
    int r = store_apps_list(s, a, &rows, &n, e);

    if (r < 0)
        return r;
    names = arena_array(a, n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = rows[i].name;
    near = suggest_name(name, names, n);
    return err_set(e, -ENOENT, missing.code, "There is no app %.200s%s%s%s", name, near ? "; did you mean " : ".",
                   near ? near : "", near ? "?" : "");
}

int store_apps_find(struct store *s, struct arena *a, const char *id_or_name, struct app_row *ret, struct err *e)
{
    int r = store_apps_get(s, a, id_or_name, ret, NULL);

    if (r == -ENOENT)
        r = store_apps_get_by_name(s, a, id_or_name, ret, NULL);
    return r == -ENOENT && e ? refuse_name(s, a, id_or_name, e) : r;
}

int store_apps_find_id(struct store *s, struct arena *a, const char *id_or_name, const char **ret, struct err *e)
{
    struct app_row app = { .app_id = id_or_name };
    int r = 0;

    if (id_or_name && *id_or_name && !uuid_is_valid(slice_of(id_or_name)))
        r = store_apps_find(s, a, id_or_name, &app, e);
    if (r == 0)
        *ret = app.app_id;
    return r;
}

int store_apps_list(struct store *s, struct arena *a, struct app_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM apps ORDER BY name", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct app_row), read_app, ret, ret_n, e);
}

static int delete_app(struct sql_db *db, void *arg, struct err *e)
{
    const char *app_id = arg;
    int r;

    r = sql_exec(db, e, "DELETE FROM backend_tokens WHERE scope = ?", "s", app_id);
    if (r == 0)
        r = sql_exec(db, e, "DELETE FROM vector_configs WHERE scope = ?", "s", app_id);
    if (r == 0)
        r = sql_exec(db, e, "DELETE FROM apps WHERE app_id = ?", "s", app_id);
    return rows_changed(r, r < 0 ? 0 : sql_changes(db), ROWS_NAMED(missing, app_id), e);
}

int store_apps_delete(struct store *s, const char *app_id, struct err *e)
{
    return store_write(s, delete_app, (void *)app_id, e);
}
