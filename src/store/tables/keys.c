#include "store/tables/keys.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS                                                                                                        \
    "id, name, hash, last4, fingerprint, created_at, last_used_at, revoked_at, app_id, "                               \
    "(SELECT name FROM apps WHERE apps.app_id = api_keys.app_id)"

static const struct rows_missing missing = { .code = "KEY_NOT_FOUND", .what = "developer key" };

static void read_key(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct key_row *)into = (struct key_row){
        .id = sql_text(rows, a, 0),
        .name = sql_text(rows, a, 1),
        .hash = sql_blob(rows, a, 2),
        .last4 = sql_text(rows, a, 3),
        .fingerprint = sql_text(rows, a, 4),
        .created_at = sql_text(rows, a, 5),
        .last_used_at = sql_text(rows, a, 6),
        .revoked_at = sql_text(rows, a, 7),
        .app_id = sql_text(rows, a, 8),
        .app_name = sql_text(rows, a, 9),
    };
}

static int err_full(struct err *e)
{
    return err_set(e, -E2BIG, "TOO_MANY_KEYS", "There are %d keys already: revoke one that is not used.", LIMIT_KEYS);
}

int store_keys_insert(struct store *s, const struct key_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "INSERT INTO api_keys (id, name, hash, last4, fingerprint, created_at) SELECT ?, ?, ?, ?, ?, ? "
                   "WHERE (SELECT count(*) FROM api_keys WHERE revoked_at IS NULL) < ?",
                   "ssbsssi", row->id, row->name, row->hash, row->last4, row->fingerprint, now, (int64_t)LIMIT_KEYS);
    return r < 0 || n > 0 ? r : err_full(e);
}

/* The error when nothing was changed: the key belongs to another app, or LIMIT_KEYS is reached. */
static int err_not_imported(struct store *s, const struct key_row *row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct key_row known = { 0 };
    int r = store_keys_get_hash(s, a, row->hash, &known, NULL);

    if (r < 0 || !known.app_name)
        return err_full(e);
    return err_set(e, -EEXIST, "ALREADY_EXISTS",
                   "The key is tied to the app %.80s already; `hearth key revoke %s` frees it.", known.app_name,
                   known.id);
}

int store_keys_import(struct store *s, const struct key_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "INSERT INTO api_keys (id, name, hash, last4, fingerprint, created_at, app_id) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 "
        "WHERE (SELECT count(*) FROM api_keys WHERE revoked_at IS NULL AND hash <> ?3) < ?8 "
        "ON CONFLICT (hash) DO UPDATE SET app_id = excluded.app_id, revoked_at = NULL, "
        "name = CASE excluded.name WHEN '' THEN api_keys.name ELSE excluded.name END "
        "WHERE api_keys.revoked_at IS NOT NULL OR api_keys.app_id IS NULL OR api_keys.app_id = excluded.app_id",
        "ssbssssi", row->id, row->name, row->hash, row->last4, row->fingerprint, now, row->app_id, (int64_t)LIMIT_KEYS);
    return r < 0 || n > 0 ? r : err_not_imported(s, row, e);
}

int store_keys_list(struct store *s, struct arena *a, struct key_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM api_keys ORDER BY created_at DESC, rowid DESC",
                  "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct key_row), read_key, ret, ret_n, e);
}

int store_keys_get(struct store *s, struct arena *a, const char *id, struct key_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM api_keys WHERE id = ?", "s", id);
    return r < 0 ? r : rows_one(rows, a, read_key, ret, ROWS_NAMED(missing, id), e);
}

int store_keys_get_hash(struct store *s, struct arena *a, struct slice hash, struct key_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM api_keys WHERE hash = ?", "b", hash);
    return r < 0 ? r : rows_one(rows, a, read_key, ret, &missing, e);
}

int store_keys_revoke(struct store *s, const char *id, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n, "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", "ss", now, id);
    return rows_changed(r, n, ROWS_NAMED(missing, id), e);
}

int store_keys_touch(struct store *s, const char *id, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n, "UPDATE api_keys SET last_used_at = ? WHERE id = ?", "ss", now, id);
    return rows_changed(r, n, ROWS_NAMED(missing, id), e);
}
