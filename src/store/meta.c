#include "store/meta.h"
#include "store/rows.h"

static const struct rows_missing missing = { .code = "VALUE_NOT_FOUND", .what = "value" };

static void read_value(struct sql_rows *rows, struct arena *a, void *into)
{
    *(char **)into = sql_text(rows, a, 0);
}

int store_meta_get(struct store *s, struct arena *a, const char *key, char **ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT value FROM meta WHERE key = ?", "s", key);
    return r < 0 ? r : rows_one(rows, a, read_value, ret, ROWS_NAMED(missing, key), e);
}

int store_meta_set(struct store *s, const char *key, const char *value, struct err *e)
{
    return store_exec(s, e, NULL,
                      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                      "ss", key, value);
}

int store_meta_keep(struct store *s, struct arena *a, const char *key, const char *fresh, char **ret, struct err *e)
{
    int r;

    r = store_exec(s, e, NULL, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", "ss", key, fresh);
    return r < 0 ? r : store_meta_get(s, a, key, ret, e);
}
