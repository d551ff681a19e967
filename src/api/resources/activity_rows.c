#include "api/resources/activity_rows.h"

#include "api/api.h"
#include "backend/custom/custom.h"
#include "base/clock.h"
#include "face/realtime.h"
#include "identity/backend_token.h"

#include <ctype.h>
#include <string.h>

enum { MS_A_SECOND = 1000 };

static const char *lower(struct arena *a, const char *text)
{
    char *copy = arena_strdup(a, text);

    for (char *p = copy; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return copy;
}

static int refuse_anonymous(struct err *e)
{
    return err_set(e, -EPERM, "BACKEND_TOKEN_REQUIRED",
                   "The app's backend token is of no user: row-level security rejects anonymous requests.");
}

static int user_of_token(struct request *req, const char *token, const char **ret, struct err *e)
{
    const struct face_keys *keys = NULL;
    struct face_caller user;
    struct err why = { 0 };
    int r = realtime_keys(req->api->realtime, &keys, e);

    if (r < 0)
        return r;
    r = face_caller_of_token(keys, slice_of(token), clock_wall_ms() / MS_A_SECOND, &user, &why);
    if (r < 0 && (strcmp(why.code, "JWT_EXPIRED") == 0 || strcmp(why.code, "JWT_NOT_YET") == 0))
        return err_set(e, r, why.code, "The app has to synchronise a fresh backend token: %s", why.text);
    if (r < 0 || user.role == FACE_SERVICE)
        return 0;
    if (user.role == FACE_ANON || !uuid_is_valid(slice_of(user.subject)))
        return refuse_anonymous(e);
    *ret = lower(req->arena, user.subject);
    return 0;
}

static bool is_of_app(const struct caller *c)
{
    return c->app_id && c->kind != CALLER_ADMIN;
}

static int find_user(struct request *req, const char *token, struct activity_rows *rows, struct err *e)
{
    struct backend *b = custom_inner(req->api->backend); /* activities are no table of an app's own */

    if (b->ops->as_user)
        return is_of_app(req->caller) ? b->ops->as_user(b, token, req->arena, &rows->backend, e) : 0;
    return token && req->api->realtime ? user_of_token(req, token, &rows->user, e) : 0;
}

int activity_rows(struct request *req, struct activity_rows *ret, struct err *e)
{
    struct activity_rows rows = { .backend = req->api->backend };
    const char *token = NULL;
    int r = backend_token_require(req->api->identity, req->caller, req->arena, &token, e);

    rows.table = arena_printf(req->arena, "%s_activities", rows.backend->abbr);
    if (r == 0)
        r = find_user(req, token, &rows, e);
    if (r == 0)
        *ret = rows;
    return r;
}
