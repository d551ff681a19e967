#include "store/tables/settings_rows.h"
#include "base/clock.h"
#include "store/rows.h"

static void read_setting(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct setting_row *)into = (struct setting_row){
        .key = sql_text(rows, a, 0),
        .value = sql_text(rows, a, 1),
        .updated_at = sql_text(rows, a, 2),
    };
}

int settings_rows_read(struct sql_db *db, struct arena *a, struct setting_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "SELECT key, value, updated_at FROM settings_rows ORDER BY key", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct setting_row), read_setting, ret, ret_n, e);
}

int store_settings_list(struct store *s, struct arena *a, struct setting_row **ret, size_t *ret_n, struct err *e)
{
    return settings_rows_read(store_reader(s), a, ret, ret_n, e);
}

int store_settings_set(struct store *s, const char *key, const char *value, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, NULL,
                      "INSERT INTO settings_rows (key, value, updated_at) VALUES (?, ?, ?) "
                      "ON CONFLICT DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                      "sss", key, value, now);
}

int store_settings_unset(struct store *s, const char *key, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM settings_rows WHERE key = ?", "s", key);
}
