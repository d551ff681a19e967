#include "store/tables/backend_tokens.h"
#include "base/clock.h"
#include "store/rows.h"

static const struct rows_missing missing = { "TOKEN_NOT_FOUND", "No backend token was handed over." };

static void read_token(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct backend_token_row *)into = (struct backend_token_row){
        .scope = sql_text(rows, a, 0),
        .token = sql_blob(rows, a, 1),
        .synced_at = sql_text(rows, a, 2),
    };
}

int store_backend_tokens_set(struct store *s, struct arena *a, const char *scope, struct slice token,
                             const char **ret_synced_at, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = store_exec(s, e, NULL,
                   "INSERT INTO backend_tokens (scope, token, synced_at) VALUES (?, ?, ?) "
                   "ON CONFLICT DO UPDATE SET token = excluded.token, synced_at = excluded.synced_at",
                   "sbs", scope, token, now);
    if (r == 0 && ret_synced_at)
        *ret_synced_at = arena_strdup(a, now);
    return r;
}

int store_backend_tokens_get(struct store *s, struct arena *a, const char *scope, struct backend_token_row *ret,
                             struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT scope, token, synced_at FROM backend_tokens WHERE scope = ?", "s",
                  scope);
    return r < 0 ? r : rows_one(rows, a, read_token, ret, &missing, e);
}

int store_backend_tokens_required(struct store *s, struct arena *a, const char *app_id, bool *ret,
                                  struct slice *ret_token, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e,
                  "SELECT token FROM apps LEFT JOIN backend_tokens ON scope = app_id "
                  "WHERE app_id = ? AND requires_user_auth",
                  "s", app_id);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r > 0;
    *ret_token = r > 0 && !sql_is_null(rows, 0) ? sql_blob(rows, a, 0) : (struct slice){ 0 };
    return 0;
}

int store_backend_tokens_delete(struct store *s, const char *scope, struct err *e)
{
    int64_t n = 0;
    int r;

    r = store_exec(s, e, &n, "DELETE FROM backend_tokens WHERE scope = ?", "s", scope);
    return rows_changed(r, n, &missing, e);
}
