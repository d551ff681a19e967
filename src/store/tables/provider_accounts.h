/* Providers that the administrator configured (table provider_accounts). Any thread; row texts live in the arena; the
 * store sets the times. Accounts are ordered by their first configuration.
 *
 *     r = store_provider_accounts_put(store, &row, e);
 */
#pragma once

#include "store/store.h"

struct provider_account_row {
    const char *name;                /* the value of `provider` in requests */
    const char *preset;              /* id of llm_presets */
    struct slice sealed;             /* sealed JSON with address and secrets (identity/seal.h) */
    const char *model, *embed_model; /* NULL: the preset's */
    const char *models;              /* JSON array of strings: the list of models written by the person */
    const char *created_at, *updated_at;
};

/* Replaces an account of the same name in its position. -EDQUOT TOO_MANY_ACCOUNTS beyond LIMIT_PROVIDER_ACCOUNTS. */
int store_provider_accounts_put(struct store *s, const struct provider_account_row *row, struct err *e) MUST_CHECK;
int store_provider_accounts_list(struct store *s, struct arena *a, struct provider_account_row **ret, size_t *ret_n,
                                 struct err *e) MUST_CHECK;
/* -ENOENT PROVIDER_NOT_FOUND */
int store_provider_accounts_get(struct store *s, struct arena *a, const char *name, struct provider_account_row *ret,
                                struct err *e) MUST_CHECK;
/* -ENOENT PROVIDER_NOT_FOUND */
int store_provider_accounts_delete(struct store *s, const char *name, struct err *e) MUST_CHECK;
