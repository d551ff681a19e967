/* The rows as a user of the project sees them, or an anonymous caller: a view whose requests carry the user's token and
 * the publishable key. The project's row-level security decides what they reach. */
#include "backend/hosted/hosted_query.h"
#include "backend/hosted/hosted_token.h"
#include "base/limits.h"

static const struct backend_ops user_ops = {
    .name = "hosted",
    .insert = hosted_insert,
    .get = hosted_get,
    .list = hosted_list,
    .update = hosted_update,
    .remove = hosted_remove,
    .claim = hosted_claim,
    .complete = hosted_complete,
    .fail = hosted_fail,
    .publications = hosted_publications,
    .shape = hosted_shape,
    .clock = hosted_clock,
};

/* It stands in a header. */
static int check_token(const char *token, struct err *e)
{
    for (const char *at = token; *at; at++)
        if (*at <= ' ' || *at > '~' || at - token >= LIMIT_JWT_BYTES)
            return err_set(e, -EINVAL, "MALFORMED_JWT",
                           "The app's backend token must be printable, without blanks, and at most %d bytes",
                           LIMIT_JWT_BYTES);
    return *token ? 0 : err_set(e, -EINVAL, "MALFORMED_JWT", "The app's backend token is empty");
}

int hosted_as_user(struct backend *b, const char *token, struct arena *a, struct backend **ret, struct err *e)
{
    struct hosted *h = hosted_of(b), *view = ARENA_NEW(a, struct hosted);
    int r = token ? check_token(token, e) : 0;

    if (r == 0)
        r = hosted_rest_of_user(h->rest, token, a, &view->rest, e);
    if (r < 0)
        return r;
    view->backend = (struct backend){ .ops = &user_ops, .abbr = h->abbr };
    view->whole = h;
    view->user = token ? hosted_token_user(a, token) : NULL;
    view->abbr = h->abbr;
    view->activities = h->activities;
    view->deletions = h->deletions;
    *ret = &view->backend;
    return 0;
}
