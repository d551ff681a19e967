/* Limits of single apps and developer keys that differ from the settings `limits.*` (table rate_limits). Any thread.
 *
 *     struct rate_row row = { .of = RATE_OF_APP, .id = app_id, .max = { RATE_BY_SETTING, 50000, RATE_BY_SETTING, 0 } };
 *     r = store_rates_set(store, &row, e);
 */
#pragma once

#include "store/store.h"

enum rate {
    RATE_REQUESTS_A_MINUTE,
    RATE_TOKENS_A_MINUTE,
    RATE_REQUESTS_A_DAY,
    RATE_TOKENS_A_DAY,
    RATE_CHARACTERS_A_MINUTE,
    RATE_CHARACTERS_A_DAY,
    N_RATES
};
enum rate_of { RATE_OF_APP, RATE_OF_KEY, N_RATE_OF };

enum { RATE_BY_SETTING = -1, RATE_NONE = 0 };

struct rate_row {
    enum rate_of of;
    const char *id;
    int64_t max[N_RATES]; /* or RATE_NONE, RATE_BY_SETTING */
};

extern const char *const rate_of_names[N_RATE_OF]; /* "app", "key" */

/* Replaces earlier limits. */
int store_rates_set(struct store *s, const struct rate_row *row, struct err *e) MUST_CHECK;
/* Succeeds also when there are no limits. */
int store_rates_remove(struct store *s, enum rate_of of, const char *id, struct err *e) MUST_CHECK;
/* Apps first, by id. */
int store_rates_list(struct store *s, struct arena *a, struct rate_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
