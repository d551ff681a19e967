/* The accounts that are kept in the database, beside those in memory: what leads there (address, key, headers) is sealed.
 *
 * Any thread; changes one at a time (the caller's care). A change is stored first, then counts in memory.
 *
 *     struct llm_vault vault = { accounts, store, identity };
 *     r = llm_stored_put(&vault, &account, e);
 */
#pragma once

#include "identity/identity.h"
#include "llm/accounts.h"
#include "store/provider_accounts.h"

struct llm_vault {                      /* all borrowed */
    struct llm_accounts *accounts;
    struct store *store;
    struct identity *identity;
};

/* At start. *ret_n_unusable: rows that are left out because they do not open or name a preset this program does not know. */
int llm_stored_load(const struct llm_vault *v, size_t *ret_n_unusable, struct err *e) MUST_CHECK;
/* Adds or replaces. What llm_accounts_put() refuses is not stored. -EDQUOT TOO_MANY_ACCOUNTS. */
int llm_stored_put(const struct llm_vault *v, const struct llm_account *account, struct err *e) MUST_CHECK;
/* -ENOENT PROVIDER_NOT_FOUND */
int llm_stored_remove(const struct llm_vault *v, const char *name, struct err *e) MUST_CHECK;
/* The account of a row, in the arena. -EBADMSG UNSEAL_FAILED; -EINVAL BAD_ACCOUNT for an unknown preset. */
int llm_stored_open(const struct llm_vault *v, const struct provider_account_row *row, struct arena *a, struct llm_account *ret,
                    struct err *e) MUST_CHECK;
