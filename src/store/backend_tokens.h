/* Backend tokens handed over by apps (table backend_tokens; POST /sdk/auth/sync-backend-token). Any thread. */
#pragma once

#include "store/store.h"

struct backend_token_row {
    const char *scope;                  /* app id, or key fingerprint of a caller without one */
    struct slice token;                 /* bytes as the caller gave them (sealed or not) */
    const char *synced_at;              /* the store's */
};

/* Replaces an earlier one; ret_synced_at may be NULL. */
int store_backend_tokens_set(struct store *s, struct arena *a, const char *scope, struct slice token,
                             const char **ret_synced_at, struct err *e) MUST_CHECK;
/* -ENOENT when there is none. */
int store_backend_tokens_get(struct store *s, struct arena *a, const char *scope, struct backend_token_row *ret,
                             struct err *e) MUST_CHECK;
/* Does this app ask for a signed-in user while no token of its scope is there? */
int store_backend_tokens_is_missing(struct store *s, const char *app_id, bool *ret, struct err *e) MUST_CHECK;
int store_backend_tokens_delete(struct store *s, const char *scope, struct err *e) MUST_CHECK;
