#include "store/tables/usage.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

const char *const usage_dimension_names[N_USAGE_DIMENSIONS] = {
    [USAGE_DAY] = "day",           [USAGE_APP] = "app",     [USAGE_KEY] = "key",
    [USAGE_PROVIDER] = "provider", [USAGE_MODEL] = "model", [USAGE_KIND] = "kind",
};

static const char *const columns[N_USAGE_DIMENSIONS] = {
    [USAGE_DAY] = "day",           [USAGE_APP] = "app_id",  [USAGE_KEY] = "key_id",
    [USAGE_PROVIDER] = "provider", [USAGE_MODEL] = "model", [USAGE_KIND] = "kind",
};

#define COUNTS "requests, failed, estimated, prompt_tokens, completion_tokens, characters, audio_ms"
#define SUMS                                                                                                            \
    "sum(requests) AS requests, sum(failed) AS failed, sum(estimated) AS estimated, "                                   \
    "sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens, sum(characters) AS characters, " \
    "sum(audio_ms) AS audio_ms"
#define CHOSEN                                                                                                         \
    " FROM usage WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR app_id = ?3) AND (?4 IS NULL OR key_id = ?4) AND "     \
    "(?5 IS NULL OR provider = ?5) AND (?6 IS NULL OR model = ?6) AND (?7 IS NULL OR kind = ?7)"

void usage_day_text(int64_t wall_ms, char out[USAGE_DAY_SIZE])
{
    char text[TIME_TEXT_SIZE];

    clock_format(wall_ms, text);
    snprintf(out, USAGE_DAY_SIZE, "%.10s", text);
}

/* --- adding --- */

struct batch {
    const struct usage_row *rows;
    size_t n;
};

static int add_row(struct sql_db *db, const struct usage_row *row, struct err *e)
{
    const struct usage_counts *c = &row->counts;

    return sql_exec(
        db, e,
        "INSERT INTO usage (day, app_id, key_id, provider, model, kind, " COUNTS
        ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, failed = failed + excluded.failed, "
        "estimated = estimated + excluded.estimated, prompt_tokens = prompt_tokens + excluded.prompt_tokens, "
        "completion_tokens = completion_tokens + excluded.completion_tokens, characters = characters + "
        "excluded.characters, audio_ms = audio_ms + excluded.audio_ms",
        "ssssssiiiiiii", row->of[USAGE_DAY], row->of[USAGE_APP], row->of[USAGE_KEY], row->of[USAGE_PROVIDER],
        row->of[USAGE_MODEL], row->of[USAGE_KIND], c->requests, c->failed, c->estimated, c->prompt_tokens,
        c->completion_tokens, c->characters, c->audio_ms);
}

static int add_rows(struct sql_db *db, void *arg, struct err *e)
{
    const struct batch *b = arg;
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->n; i++)
        r = add_row(db, &b->rows[i], e);
    return r;
}

int store_usage_add(struct store *s, const struct usage_row *rows, size_t n, struct err *e)
{
    struct batch b = { rows, n };

    return n ? store_write(s, add_rows, &b, e) : 0;
}

/* --- queries --- */

static struct usage_counts read_counts(struct sql_rows *rows, int at)
{
    return (struct usage_counts){
        .requests = sql_int(rows, at),
        .failed = sql_int(rows, at + 1),
        .estimated = sql_int(rows, at + 2),
        .prompt_tokens = sql_int(rows, at + 3),
        .completion_tokens = sql_int(rows, at + 4),
        .characters = sql_int(rows, at + 5),
        .audio_ms = sql_int(rows, at + 6),
    };
}

static void read_row(struct sql_rows *rows, struct arena *a, void *into)
{
    struct usage_row *row = into;

    for (int i = 0; i < N_USAGE_DIMENSIONS; i++)
        row->of[i] = sql_text(rows, a, i);
    row->app_name = sql_text(rows, a, N_USAGE_DIMENSIONS);
    row->key_name = sql_text(rows, a, N_USAGE_DIMENSIONS + 1);
    row->counts = read_counts(rows, N_USAGE_DIMENSIONS + 2);
}

/* Writes SELECT day, NULL AS app_id, ... sums FROM the chosen rows GROUP BY day, ... */
static const char *write_groups(struct arena *a, unsigned by)
{
    const char *shown = "", *grouped = "";

    for (int i = 0; i < N_USAGE_DIMENSIONS; i++) {
        bool is_requested = by & USAGE_BY(i);

        shown = arena_printf(a, "%s%s%s, ", shown, is_requested ? "" : "NULL AS ", columns[i]);
        if (is_requested)
            grouped = arena_printf(a, "%s%s%s", grouped, *grouped ? ", " : "", columns[i]);
    }
    return arena_printf(a, "SELECT %s" SUMS CHOSEN " GROUP BY %s", shown, grouped);
}

static int list_rows(struct store *s, struct arena *a, const struct usage_request *request, const char *groups,
                     struct usage_page *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *const *only = request->only;
    const char *sql = arena_printf(
        a,
        "SELECT day, app_id, key_id, provider, model, kind, (SELECT name FROM apps WHERE apps.app_id = g.app_id), "
        "(SELECT name FROM api_keys WHERE api_keys.id = g.key_id), " COUNTS " FROM (%s) AS g ORDER BY day DESC, "
        "prompt_tokens + completion_tokens DESC, requests DESC, app_id, key_id, provider, model, kind LIMIT ?8 OFFSET ?9",
        groups);
    int r;

    r = sql_query_text(store_reader(s), &rows, e, sql, "sssssssii", request->from, request->to, only[USAGE_APP],
                       only[USAGE_KEY], only[USAGE_PROVIDER], only[USAGE_MODEL], only[USAGE_KIND],
                       rows_limit(request->limit), request->offset);
    return r < 0 ? r : rows_all(rows, a, sizeof(*ret->rows), read_row, &ret->rows, &ret->n, e);
}

static int sum_rows(struct store *s, struct arena *a, const struct usage_request *request, const char *groups,
                    struct usage_page *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *const *only = request->only;
    const char *sql = arena_printf(a, "SELECT count(*), " SUMS " FROM (%s)", groups);
    int r;

    r = sql_query_text(store_reader(s), &rows, e, sql, "sssssss", request->from, request->to, only[USAGE_APP],
                       only[USAGE_KEY], only[USAGE_PROVIDER], only[USAGE_MODEL], only[USAGE_KIND]);
    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r;
    ret->n_all = sql_int(rows, 0);
    ret->totals = read_counts(rows, 1);
    return 0;
}

int store_usage_list(struct store *s, struct arena *a, const struct usage_request *request, struct usage_page *ret,
                     struct err *e)
{
    const char *groups = write_groups(a, request->by);
    struct usage_page page = { 0 };
    int r = list_rows(s, a, request, groups, &page, e);

    if (r == 0)
        r = sum_rows(s, a, request, groups, &page, e);
    if (r == 0)
        *ret = page;
    return r;
}

int store_usage_of_day(struct store *s, struct arena *a, const char *day, enum usage_dimension by,
                       struct usage_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *groups = write_groups(a, USAGE_BY(by));
    const char *sql =
        arena_printf(a, "SELECT day, app_id, key_id, provider, model, kind, NULL, NULL, " COUNTS " FROM (%s)", groups);
    int r;

    r = sql_query_text(store_reader(s), &rows, e, sql, "ssnnnnn", day, day);
    return r < 0 ? r : rows_all(rows, a, sizeof(**ret), read_row, ret, ret_n, e);
}
