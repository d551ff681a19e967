#include "store/vectors/vector_configs.h"
#include "base/clock.h"
#include "store/rows.h"

static const struct rows_missing missing = { "VECTOR_CONFIG_NOT_FOUND", "No vector store is registered." };

static void read_config(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct vector_config_row *)into = (struct vector_config_row){
        .scope = sql_text(rows, a, 0),
        .provider = sql_text(rows, a, 1),
        .config = sql_blob(rows, a, 2),
    };
}

int store_vector_configs_set(struct store *s, const struct vector_config_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(
        s, e, NULL,
        "INSERT INTO vector_configs (scope, provider, config, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
        "SET provider = excluded.provider, config = excluded.config, updated_at = excluded.updated_at",
        "ssbs", row->scope, row->provider, row->config, now);
}

int store_vector_configs_get(struct store *s, struct arena *a, const char *scope, struct vector_config_row *ret,
                             struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT scope, provider, config FROM vector_configs WHERE scope = ?", "s",
                  scope);
    return r < 0 ? r : rows_one(rows, a, read_config, ret, &missing, e);
}

int store_vector_models_get(struct store *s, struct arena *a, const char *provider, const char *ns, const char **ret,
                            struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT model FROM vector_models WHERE provider = ? AND namespace = ?",
                  "ss", provider, ns);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r == 1 ? sql_text(rows, a, 0) : NULL;
    return 0;
}

int store_vector_models_keep(struct store *s, struct arena *a, const char *provider, const char *ns, const char *model,
                             const char **ret_kept, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    const char *kept = NULL;
    int r;

    clock_now_text(now);
    r = store_vector_models_get(s, a, provider, ns, &kept, e);
    if (r == 0 && !kept) {
        r = store_exec(s, e, NULL,
                       "INSERT INTO vector_models (provider, namespace, model, created_at) VALUES (?, ?, ?, ?) "
                       "ON CONFLICT DO NOTHING",
                       "ssss", provider, ns, model, now);
        if (r == 0)
            r = store_vector_models_get(s, a, provider, ns, &kept, e);
    }
    if (r == 0)
        *ret_kept = kept ? kept : model; /* deleted again in between */
    return r;
}

int store_vector_models_forget(struct store *s, const char *provider, const char *ns, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM vector_models WHERE provider = ? AND namespace = ?", "ss", provider, ns);
}

int store_vector_models_any(struct store *s, bool *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, "SELECT 1 FROM vector_models LIMIT 1", "");

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r == 1;
    return 0;
}
