/* Settings changed at run time (table settings_rows); src/settings interprets them. Any thread. */
#pragma once

#include "store/store.h"

struct setting_row {
    const char *key, *value, *updated_at;
};

/* The same from any connection to a hearth.db. */
int settings_rows_read(struct sql_db *db, struct arena *a, struct setting_row **ret, size_t *ret_n,
                       struct err *e) MUST_CHECK;
int store_settings_list(struct store *s, struct arena *a, struct setting_row **ret, size_t *ret_n,
                        struct err *e) MUST_CHECK;
int store_settings_set(struct store *s, const char *key, const char *value, struct err *e) MUST_CHECK;
/* Succeeds also when the row is missing. */
int store_settings_unset(struct store *s, const char *key, struct err *e) MUST_CHECK;
