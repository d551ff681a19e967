/* The token by which the backend knows an app's signed-in user; the app hands the token over (decision D6). Sealed at
 * rest; each caller sees only the token of its own data scope. Any worker.
 */
#pragma once

#include "identity/identity.h"

struct backend_token {
    const char *token, *synced_at;
};

/* The token "" deletes the stored one. */
int backend_token_set(struct identity *id, const struct caller *c, const char *token, struct arena *a,
                      const char **ret_synced_at, struct err *e) MUST_CHECK;
/* -ENOENT TOKEN_NOT_FOUND. */
int backend_token_get(struct identity *id, const struct caller *c, struct arena *a, struct backend_token *ret,
                      struct err *e) MUST_CHECK;
/* May the caller reach its rows? -EPERM BACKEND_TOKEN_REQUIRED for an app with require_user_auth that has handed over
 * no token (specification, "Activities (proxy to the backend)"); a key without an app and the administrator always may.
 * *ret is the token, in the arena; it stays untouched when the caller needs none. */
int backend_token_require(struct identity *id, const struct caller *c, struct arena *a, const char **ret,
                          struct err *e) MUST_CHECK;
