#include "store/tables/provider_accounts.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS "name, preset, sealed, model, embed_model, models, created_at, updated_at"

static const struct rows_missing missing = { .code = "PROVIDER_NOT_FOUND", .what = "stored provider" };

static void read_account(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct provider_account_row *)into = (struct provider_account_row){
        .name = sql_text(rows, a, 0),
        .preset = sql_text(rows, a, 1),
        .sealed = sql_blob(rows, a, 2),
        .model = sql_text(rows, a, 3),
        .embed_model = sql_text(rows, a, 4),
        .models = sql_text(rows, a, 5),
        .created_at = sql_text(rows, a, 6),
        .updated_at = sql_text(rows, a, 7),
    };
}

int store_provider_accounts_put(struct store *s, const struct provider_account_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "INSERT INTO provider_accounts (" COLUMNS ", position) SELECT ?, ?, ?, ?, ?, ?, ?, ?, "
        "    (SELECT coalesce(max(position), 0) + 1 FROM provider_accounts) "
        "WHERE (SELECT count(*) FROM provider_accounts WHERE name <> ?) < ? "
        "ON CONFLICT (name) DO UPDATE SET preset = excluded.preset, sealed = excluded.sealed, model = excluded.model, "
        "    embed_model = excluded.embed_model, models = excluded.models, updated_at = excluded.updated_at",
        "ssbssssssi", row->name, row->preset, row->sealed, row->model, row->embed_model, row->models, now, now,
        row->name, (int64_t)LIMIT_PROVIDER_ACCOUNTS);
    if (r < 0 || n > 0)
        return r;
    return err_set(e, -EDQUOT, "TOO_MANY_ACCOUNTS", "There are %d providers already: remove one that is not used.",
                   LIMIT_PROVIDER_ACCOUNTS);
}

int store_provider_accounts_list(struct store *s, struct arena *a, struct provider_account_row **ret, size_t *ret_n,
                                 struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM provider_accounts ORDER BY position", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct provider_account_row), read_account, ret, ret_n, e);
}

int store_provider_accounts_get(struct store *s, struct arena *a, const char *name, struct provider_account_row *ret,
                                struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM provider_accounts WHERE name = ?", "s", name);
    return r < 0 ? r : rows_one(rows, a, read_account, ret, ROWS_NAMED(missing, name), e);
}

int store_provider_accounts_delete(struct store *s, const char *name, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "DELETE FROM provider_accounts WHERE name = ?", "s", name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}
