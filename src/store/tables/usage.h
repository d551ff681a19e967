/* Requests to models (table usage): one row for each day, app, key, provider, model and kind. Any thread.
 *
 * Days are UTC, written 2026-11-20. An empty app_id or key_id: the request had none. Rows only grow, until they are
 * removed by age (store/retention.h).
 *
 *     r = store_usage_add(store, rows, n, e);
 *     struct usage_request request = { .from = "2026-11-01", .to = "2026-11-30", .limit = 50,
 *                                      .by = USAGE_BY(USAGE_APP) | USAGE_BY(USAGE_MODEL) };
 *     r = store_usage_list(store, arena, &request, &page, e);
 */
#pragma once

#include "store/store.h"

enum usage_dimension { USAGE_DAY, USAGE_APP, USAGE_KEY, USAGE_PROVIDER, USAGE_MODEL, USAGE_KIND, N_USAGE_DIMENSIONS };
enum { USAGE_DAY_SIZE = 11 }; /* "2026-11-20" and NUL */

#define USAGE_BY(dimension) (1u << (dimension))

struct usage_counts {
    int64_t requests;
    int64_t failed;    /* of them: those without a complete answer */
    int64_t estimated; /* of them: those whose provider did not count tokens */
    int64_t prompt_tokens, completion_tokens;
    int64_t characters, audio_ms; /* of speech: of the texts, and of what was spoken */
};

struct usage_row {
    const char
        *of[N_USAGE_DIMENSIONS];     /* never NULL when added; in answers NULL for dimensions that were not requested */
    const char *app_name, *key_name; /* answers only; NULL when it no longer exists */
    struct usage_counts counts;
};

struct usage_request {
    const char *from, *to;                /* days, both included */
    const char *only[N_USAGE_DIMENSIONS]; /* NULL: any */
    unsigned by;                          /* USAGE_BY bits, at least one */
    int64_t limit, offset;
};

struct usage_page {
    struct usage_row *rows; /* newest day first, then most tokens first */
    size_t n;
    int64_t n_all;              /* rows without limit and offset */
    struct usage_counts totals; /* of all these rows */
};

extern const char *const usage_dimension_names[N_USAGE_DIMENSIONS]; /* "day", "app", ... */

void usage_day_text(int64_t wall_ms, char out[USAGE_DAY_SIZE]);

/* Adds each row's counts to the stored counts, all rows or none. */
int store_usage_add(struct store *s, const struct usage_row *rows, size_t n, struct err *e) MUST_CHECK;
int store_usage_list(struct store *s, struct arena *a, const struct usage_request *request, struct usage_page *ret,
                     struct err *e) MUST_CHECK;
/* The counts of one day for each app, or for each key; only rows with that dimension. */
int store_usage_of_day(struct store *s, struct arena *a, const char *day, enum usage_dimension by,
                       struct usage_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
