#include "store/tables/provider_choices.h"
#include "base/clock.h"
#include "store/rows.h"

#define SELECT                                                                                                         \
    "SELECT c.app_id, a.name, c.capability, c.provider, c.model FROM provider_choices c JOIN apps a ON a.app_id = c.app_id "

static void read_choice(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct provider_choice_row *)into = (struct provider_choice_row){
        .app_id = sql_text(rows, a, 0),
        .app_name = sql_text(rows, a, 1),
        .capability = sql_text(rows, a, 2),
        .provider = sql_text(rows, a, 3),
        .model = sql_text(rows, a, 4),
    };
}

int store_provider_choices_set(struct store *s, const struct provider_choice_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(
        s, e, NULL,
        "INSERT INTO provider_choices (app_id, capability, provider, model, updated_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET provider = excluded.provider, model = excluded.model, updated_at = excluded.updated_at",
        "sssss", row->app_id, row->capability, row->provider, row->model, now);
}

int store_provider_choices_get(struct store *s, struct arena *a, const char *app_id, const char *capability,
                               struct provider_choice_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, SELECT "WHERE c.app_id = ? AND c.capability = ?", "ss", app_id,
                  capability);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = (struct provider_choice_row){ .provider = NULL };
    if (r == 1)
        read_choice(rows, a, ret);
    return 0;
}

int store_provider_choices_list(struct store *s, struct arena *a, struct provider_choice_row **ret, size_t *ret_n,
                                struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, SELECT "ORDER BY a.name, c.capability", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct provider_choice_row), read_choice, ret, ret_n, e);
}

int store_provider_choices_clear(struct store *s, const char *app_id, const char *capability, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM provider_choices WHERE app_id = ? AND capability = ?", "ss", app_id,
                      capability);
}
