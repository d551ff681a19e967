#include "store/tables/grants.h"
#include "base/clock.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "app_id, permission, decision, scope, expires_at, n_denials, is_used, created_at, last_used_at, command, "         \
    "iif(command IS NULL, NULL, (SELECT a.command FROM apps a WHERE a.app_id = grants.app_id))"

static const struct rows_missing missing = { "GRANT_NOT_FOUND", "Nothing was decided about this permission." };

static void read_grant(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct grant_row *)into = (struct grant_row){
        .app_id = sql_text(rows, a, 0),
        .permission = sql_text(rows, a, 1),
        .decision = sql_text(rows, a, 2),
        .scope = sql_text(rows, a, 3),
        .expires_at = sql_text(rows, a, 4),
        .n_denials = sql_int(rows, 5),
        .is_used = sql_int(rows, 6) != 0,
        .created_at = sql_text(rows, a, 7),
        .last_used_at = sql_text(rows, a, 8),
        .command = sql_text(rows, a, 9),
        .app_command = sql_text(rows, a, 10),
    };
}

int store_grants_get(struct store *s, struct arena *a, const char *app_id, const char *permission,
                     struct grant_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM grants WHERE app_id = ? AND permission = ?", "ss",
                  app_id, permission);
    return r < 0 ? r : rows_one(rows, a, read_grant, ret, &missing, e);
}

int store_grants_list(struct store *s, struct arena *a, const char *app_id, struct grant_row **ret, size_t *ret_n,
                      struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e,
                  "SELECT " COLUMNS " FROM grants WHERE ?1 IS NULL OR app_id = ?1 ORDER BY app_id, permission", "s",
                  app_id);
    return r < 0 ? r : rows_all(rows, a, sizeof(struct grant_row), read_grant, ret, ret_n, e);
}

int store_grants_set(struct store *s, const struct grant_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, NULL,
        "INSERT INTO grants (app_id, permission, decision, scope, expires_at, n_denials, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET decision = excluded.decision, "
        "scope = excluded.scope, expires_at = excluded.expires_at, is_used = 0, created_at = excluded.created_at, command = NULL, "
        "n_denials = CASE excluded.decision WHEN 'deny' THEN n_denials + 1 ELSE 0 END",
        "sssssis", row->app_id, row->permission, row->decision, row->scope, row->expires_at,
        (int64_t)(strcmp(row->decision, "deny") == 0), now);
    return r == -ENOENT ? err_set(e, r, "APP_NOT_FOUND", "There is no app %.60s.", row->app_id) : r;
}

int store_grants_deny_again(struct store *s, const struct grant_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE grants SET scope = ?, expires_at = ?, created_at = ? WHERE app_id = ? AND permission = ? "
                   "AND decision = 'deny'",
                   "sssss", row->scope, row->expires_at, now, row->app_id, row->permission);
    return rows_changed(r, n, &missing, e);
}

int store_grants_use_once(struct store *s, const char *app_id, const char *permission, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE grants SET is_used = 1, last_used_at = ? WHERE app_id = ? AND permission = ? "
                   "AND decision = 'allow' AND scope = 'once' AND is_used = 0",
                   "sss", now, app_id, permission);
    return rows_changed(r, n, &missing, e);
}

int store_grants_touch(struct store *s, const char *app_id, const char *permission, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n, "UPDATE grants SET last_used_at = ? WHERE app_id = ? AND permission = ?", "sss", now,
                   app_id, permission);
    return rows_changed(r, n, &missing, e);
}

int store_grants_revoke(struct store *s, const char *app_id, const char *permission, struct err *e)
{
    int64_t n = 0;
    int r;

    r = store_exec(s, e, &n, "DELETE FROM grants WHERE app_id = ? AND permission = ?", "ss", app_id, permission);
    return rows_changed(r, n, &missing, e);
}

int store_grants_reset(struct store *s, const char *app_id, int64_t *ret_n, struct err *e)
{
    return store_exec(s, e, ret_n, "DELETE FROM grants WHERE app_id = ?", "s", app_id);
}

int store_grants_clear_until_stop(struct store *s, const char *app_id, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM grants WHERE scope = 'until_stop' AND (?1 IS NULL OR app_id = ?1)", "s",
                      app_id);
}
