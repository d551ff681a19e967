#include "face/rest_private.h"

#include <strings.h>

static int check_profile(const char *profile, struct err *e)
{
    if (!profile || strcmp(profile, "public") == 0)
        return 0;
    err_set(e, -ENOTSUP, "SCHEMA_NOT_SERVED", "Invalid schema: %.64s", profile);
    err_add_extra(e, "hint", "Only the following schemas are exposed: public");
    return -ENOTSUP;
}

int rest_read_headers(struct rest_work *w, struct err *e)
{
    int r = check_profile(w->in->profile, e);

    if (r == 0)
        r = rest_prefer_read(w->arena, w->in->prefer, &w->prefer, e);
    return r < 0 ? r : rest_accept_read(w->in->accept, &w->wants_object, e);
}

int rest_check_caller(const struct rest_work *w, const char *what, struct err *e)
{
    if (w->who->role == FACE_ANON)
        return err_set(e, -EACCES, "SIGN_IN_REQUIRED", "permission denied for %s %s", what, w->in->name);
    if (w->who->role == FACE_AUTHENTICATED && !w->who->subject[0])
        return err_set(e, -EACCES, "SIGN_IN_REQUIRED", "permission denied for %s %s: the token has no claim sub", what,
                       w->in->name);
    return 0;
}

const char *rest_only_user(const struct rest_work *w)
{
    return w->who->role == FACE_SERVICE ? NULL : w->who->subject;
}

int rest_read_body(const struct rest_work *w, struct json_value *ret, struct err *e)
{
    const char *type = w->in->content_type;
    size_t n = type ? strcspn(type, "; \t") : 0;

    if (type && (n != 16 || strncasecmp(type, "application/json", n) != 0))
        return err_set(e, -EINVAL, "BAD_REST_BODY", "Content-Type not acceptable: %.100s", type);
    return json_parse(w->arena, w->in->body, ret, e);
}

const char *rest_content_range(struct arena *a, int64_t first, int64_t last, int64_t all)
{
    const char *total = all < 0 ? "*" : arena_printf(a, "%lld", (long long)all);

    if (all == 0 || first > last)
        return arena_printf(a, "*/%s", total);
    return arena_printf(a, "%lld-%lld/%s", (long long)first, (long long)last, total);
}
