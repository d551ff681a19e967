#include "store/tables/model_facts.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static void oldest_text(char out[TIME_TEXT_SIZE])
{
    clock_format(clock_wall_ms() - (int64_t)MODEL_FACTS_AGE_S * 1000, out);
}

int store_model_facts_get(struct store *s, struct arena *a, const char *provider, const char *model, const char *fact,
                          const char **ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    char oldest[TIME_TEXT_SIZE];
    int r;

    oldest_text(oldest);
    r = sql_query(store_reader(s), &rows, e,
                  "SELECT value FROM model_facts WHERE provider = ? AND model = ? AND fact = ? AND learnt_at >= ?",
                  "ssss", provider, model, fact, oldest);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = r == 1 ? sql_text(rows, a, 0) : NULL;
    return 0;
}

static void read_fact(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct model_fact_row *)into = (struct model_fact_row){
        .provider = sql_text(rows, a, 0),
        .model = sql_text(rows, a, 1),
        .fact = sql_text(rows, a, 2),
        .value = sql_text(rows, a, 3),
        .learnt_at = sql_text(rows, a, 4),
    };
}

int store_model_facts_list(struct store *s, struct arena *a, struct model_fact_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    char oldest[TIME_TEXT_SIZE];
    int r;

    oldest_text(oldest);
    r = sql_query(store_reader(s), &rows, e,
                  "SELECT provider, model, fact, value, learnt_at FROM model_facts WHERE learnt_at >= ? "
                  "ORDER BY provider, model, fact LIMIT ?",
                  "si", oldest, (int64_t)LIMIT_LIST);
    return r < 0 ? r : rows_all(rows, a, sizeof(struct model_fact_row), read_fact, ret, ret_n, e);
}

int store_model_facts_forget(struct store *s, const char *provider, const char *model, int64_t *ret_n, struct err *e)
{
    static const struct rows_missing missing = { .code = "FACT_NOT_FOUND",
                                                 .text = "Nothing is learnt about this provider and model." };
    int64_t n = 0;
    int r = store_exec(s, e, &n, "DELETE FROM model_facts WHERE provider = ?1 AND (?2 IS NULL OR model = ?2)", "ss",
                       provider, model);

    r = rows_changed(r, n, &missing, e);
    if (r == 0)
        *ret_n = n;
    return r;
}

int store_model_facts_set(struct store *s, const char *provider, const char *model, const char *fact, const char *value,
                          struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, NULL,
                      "INSERT INTO model_facts (provider, model, fact, value, learnt_at) VALUES (?, ?, ?, ?, ?) "
                      "ON CONFLICT DO UPDATE SET value = excluded.value, learnt_at = excluded.learnt_at",
                      "sssss", provider, model, fact, value, now);
}
