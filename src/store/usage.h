/* What was asked of models, a row a day and app, key, provider, model and kind (table usage). Any thread.
 *
 * Days are those of UTC, written 2026-11-20. An empty app_id or key_id: none was named. Rows are only ever added to, and removed by age (store/retention.h).
 *
 *     r = store_usage_add(store, rows, n, e);
 *     struct usage_ask ask = { .from = "2026-11-01", .to = "2026-11-30", .by = USAGE_BY(USAGE_APP) | USAGE_BY(USAGE_MODEL), .limit = 50 };
 *     r = store_usage_list(store, arena, &ask, &page, e);
 */
#pragma once

#include "store/store.h"

enum usage_dimension { USAGE_DAY, USAGE_APP, USAGE_KEY, USAGE_PROVIDER, USAGE_MODEL, USAGE_KIND, N_USAGE_DIMENSIONS };
enum { USAGE_DAY_SIZE = 11 };           /* "2026-11-20" and NUL */

#define USAGE_BY(dimension) (1u << (dimension))

struct usage_counts {
    int64_t requests;
    int64_t failed;                     /* of them: no whole answer came about */
    int64_t estimated;                  /* of them: the provider did not count tokens */
    int64_t prompt_tokens, completion_tokens;
};

struct usage_row {
    const char *of[N_USAGE_DIMENSIONS]; /* never NULL when added; in answers NULL for dimensions that were not asked for */
    const char *app_name, *key_name;    /* answers only: NULL when there is none any more */
    struct usage_counts counts;
};

struct usage_ask {
    const char *from, *to;              /* days, both among it */
    const char *only[N_USAGE_DIMENSIONS];       /* NULL: any */
    unsigned by;                        /* USAGE_BY bits, one at least */
    int64_t limit, offset;
};

struct usage_page {
    struct usage_row *rows;             /* newest day first, then most tokens first */
    size_t n;
    int64_t n_all;                      /* rows without limit and offset */
    struct usage_counts totals;         /* of all of them */
};

extern const char *const usage_dimension_names[N_USAGE_DIMENSIONS];     /* "day", "app", ... */

void usage_day_text(int64_t wall_ms, char out[USAGE_DAY_SIZE]);

/* Adds each row's counts to what is stored, all or none. */
int store_usage_add(struct store *s, const struct usage_row *rows, size_t n, struct err *e) MUST_CHECK;
int store_usage_list(struct store *s, struct arena *a, const struct usage_ask *ask, struct usage_page *ret, struct err *e) MUST_CHECK;
/* One day's counts of each app, or of each key: rows with that dimension only. */
int store_usage_of_day(struct store *s, struct arena *a, const char *day, enum usage_dimension by, struct usage_row **ret, size_t *ret_n,
                       struct err *e) MUST_CHECK;
