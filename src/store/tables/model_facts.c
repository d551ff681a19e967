#include "store/tables/model_facts.h"

#include "base/clock.h"
#include "store/rows.h"

int store_model_facts_get(struct store *s, struct arena *a, const char *provider, const char *model, const char *fact,
                          int64_t max_age_s, const char **ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    char oldest[TIME_TEXT_SIZE] = "";
    int r;

    if (max_age_s > 0)
        clock_format(clock_wall_ms() - max_age_s * 1000, oldest);
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
