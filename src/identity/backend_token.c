#include "identity/backend_token.h"

#include "base/limits.h"
#include "identity/state.h"
#include "store/tables/backend_tokens.h"

int backend_token_set(struct identity *id, const struct caller *c, const char *token, struct arena *a,
                      const char **ret_synced_at, struct err *e)
{
    struct buf sealed;
    int r;

    if (!*token) {
        r = store_backend_tokens_delete(id->store, c->scope, e);
        return r == -ENOENT ? 0 : r;
    }
    buf_init(&sealed, LIMIT_BODY_DEFAULT);
    seal_bytes(id->keys->seal, slice_of(token), &sealed);
    r = buf_check(&sealed, e);
    if (r == 0)
        r = store_backend_tokens_set(id->store, a, c->scope, buf_slice(&sealed), ret_synced_at, e);
    buf_clear(&sealed);
    return r;
}

int backend_token_get(struct identity *id, const struct caller *c, struct arena *a, struct backend_token *ret,
                      struct err *e)
{
    struct backend_token_row row;
    struct slice token;
    int r;

    r = store_backend_tokens_get(id->store, a, c->scope, &row, NULL);
    if (r == -ENOENT)
        return err_set(e, r, "TOKEN_NOT_FOUND", "No backend token has been synchronised yet.");
    if (r < 0)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The backend token could not be read.");
    r = seal_open(id->keys->seal, row.token, a, &token, e);
    if (r == 0)
        *ret = (struct backend_token){ .token = arena_slicedup(a, token), .synced_at = row.synced_at };
    return r;
}

int backend_token_require(struct identity *id, const struct caller *c, struct arena *a, const char **ret, struct err *e)
{
    struct slice sealed = { 0 }, token = { 0 };
    bool is_required = false;
    int r = 0;

    if (c->app_id && c->kind != CALLER_ADMIN)
        r = store_backend_tokens_required(id->store, a, c->app_id, &is_required, &sealed, e);
    if (r < 0 || !is_required)
        return r;
    if (!sealed.p)
        return err_set(e, -EPERM, "BACKEND_TOKEN_REQUIRED",
                       "This app requires user authentication: its backend token has to be synchronised first "
                       "(POST /sdk/auth/sync-backend-token). Row-level security rejects anonymous requests.");
    r = seal_open(id->keys->seal, sealed, a, &token, e);
    if (r == 0)
        *ret = arena_slicedup(a, token);
    return r;
}
