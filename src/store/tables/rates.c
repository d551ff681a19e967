#include "store/tables/rates.h"
#include "base/clock.h"
#include "store/rows.h"

const char *const rate_of_names[N_RATE_OF] = { [RATE_OF_APP] = "app", [RATE_OF_KEY] = "key" };

static void read_rate(struct sql_rows *rows, struct arena *a, void *into)
{
    struct rate_row *row = into;

    row->of = strcmp(sql_text(rows, a, 0), rate_of_names[RATE_OF_APP]) == 0 ? RATE_OF_APP : RATE_OF_KEY;
    row->id = sql_text(rows, a, 1);
    for (int i = 0; i < N_RATES; i++)
        row->max[i] = sql_int(rows, 2 + i);
}

int store_rates_set(struct store *s, const struct rate_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(
        s, e, NULL,
        "INSERT INTO rate_limits (kind, id, requests_a_minute, tokens_a_minute, requests_a_day, tokens_a_day, "
        "characters_a_minute, characters_a_day, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests_a_minute = excluded.requests_a_minute, "
        "tokens_a_minute = excluded.tokens_a_minute, requests_a_day = excluded.requests_a_day, "
        "tokens_a_day = excluded.tokens_a_day, characters_a_minute = excluded.characters_a_minute, "
        "characters_a_day = excluded.characters_a_day, updated_at = excluded.updated_at",
        "ssiiiiiis", rate_of_names[row->of], row->id, row->max[RATE_REQUESTS_A_MINUTE], row->max[RATE_TOKENS_A_MINUTE],
        row->max[RATE_REQUESTS_A_DAY], row->max[RATE_TOKENS_A_DAY], row->max[RATE_CHARACTERS_A_MINUTE],
        row->max[RATE_CHARACTERS_A_DAY], now);
}

int store_rates_remove(struct store *s, enum rate_of of, const char *id, struct err *e)
{
    return store_exec(s, e, NULL, "DELETE FROM rate_limits WHERE kind = ? AND id = ?", "ss", rate_of_names[of], id);
}

int store_rates_list(struct store *s, struct arena *a, struct rate_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(
        store_reader(s), &rows, e,
        "SELECT kind, id, requests_a_minute, tokens_a_minute, requests_a_day, tokens_a_day, characters_a_minute, characters_a_day FROM rate_limits ORDER BY kind, id",
        "");
    return r < 0 ? r : rows_all(rows, a, sizeof(**ret), read_rate, ret, ret_n, e);
}
