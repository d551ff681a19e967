/* The accounts in the database, which are also loaded into memory: address, key and headers are sealed (encrypted).
 *
 * Any thread; the caller makes one change at a time. A change is stored first, then applied in memory.
 *
 *     struct llm_vault vault = { accounts, store, identity };
 *     r = llm_stored_put(&vault, &account, e);
 */
#pragma once

#include "identity/identity.h"
#include "llm/accounts.h"
#include "store/tables/provider_accounts.h"

struct llm_vault { /* all borrowed */
    struct llm_accounts *accounts;
    struct store *store;
    struct identity *identity;
};

/* Called at start. *ret_n_unusable: rows left out because they cannot be unsealed or name an unknown preset. */
int llm_stored_load(const struct llm_vault *v, size_t *ret_n_unusable, struct err *e) MUST_CHECK;
/* Adds or replaces. An account that llm_account_check() refuses is not stored. -EDQUOT TOO_MANY_ACCOUNTS. */
int llm_stored_put(const struct llm_vault *v, const struct llm_account *account, struct err *e) MUST_CHECK;
/* -ENOENT PROVIDER_NOT_FOUND */
int llm_stored_remove(const struct llm_vault *v, const char *name, struct err *e) MUST_CHECK;
/* The account of a row, in the arena. -EBADMSG UNSEAL_FAILED; -EINVAL BAD_ACCOUNT for an unknown preset. */
int llm_stored_open(const struct llm_vault *v, const struct provider_account_row *row, struct arena *a,
                    struct llm_account *ret, struct err *e) MUST_CHECK;
