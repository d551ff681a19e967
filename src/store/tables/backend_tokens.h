/* Backend tokens supplied by apps (table backend_tokens; POST /sdk/auth/sync-backend-token). Any thread. */
#pragma once

#include "store/store.h"

struct backend_token_row {
    const char *scope;     /* app id; for a caller without one, the fingerprint of its key */
    struct slice token;    /* bytes as passed by the caller (sealed or not) */
    const char *synced_at; /* set by the store */
};

/* Replaces an earlier token; ret_synced_at may be NULL. */
int store_backend_tokens_set(struct store *s, struct arena *a, const char *scope, struct slice token,
                             const char **ret_synced_at, struct err *e) MUST_CHECK;
/* -ENOENT when there is no token. */
int store_backend_tokens_get(struct store *s, struct arena *a, const char *scope, struct backend_token_row *ret,
                             struct err *e) MUST_CHECK;
/* Whether this app requires a signed-in user, and the token in its scope: p NULL when there is none. */
int store_backend_tokens_required(struct store *s, struct arena *a, const char *app_id, bool *ret,
                                  struct slice *ret_token, struct err *e) MUST_CHECK;
int store_backend_tokens_delete(struct store *s, const char *scope, struct err *e) MUST_CHECK;
