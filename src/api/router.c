#include "api/router.h"

#include "api/compat/v1.h"
#include "api/envelope.h"
#include "api/resources/face_form.h"

#include <string.h>

#define TOKEN "{token}"
#define TOKEN_ALWAYS "svc"

const struct field api_nothing[] = { FIELD_END };

struct router {
    struct arena *arena;          /* owned; of entries and paths */
    struct http_matcher *matcher; /* owned */
    struct route_entry **entries;
    size_t n, cap;
};

static int refuse(const struct route *route, struct err *e, const char *rule)
{
    return err_set(e, -EINVAL, "BAD_ROUTE", "The route %s %s %s.", http_method_name(route->method), route->path, rule);
}

static bool is_permission(const char *name)
{
    static const char *const special[] = { PERM_PUBLIC, PERM_NONE, PERM_ADMIN, PERM_BODY };

    for (size_t i = 0; i < ARRAY_SIZE(special); i++)
        if (strcmp(special[i], name) == 0)
            return true;
    return permission_find(name) != NULL;
}

/* The loop thread may read neither grants nor sessions. */
static bool may_be_inline(const struct route *route)
{
    return strcmp(route->permission, PERM_PUBLIC) == 0 || strcmp(route->permission, PERM_NONE) == 0;
}

static int check_row(const struct route *route, struct err *e)
{
    if (!route->permission || !is_permission(route->permission))
        return refuse(route, e, "needs a permission of identity/permissions.h");
    if (!route->handler)
        return refuse(route, e, "needs a handler");
    if (!route->summary || !route->tag)
        return refuse(route, e, "needs a summary and a tag");
    if (route->defines && strcmp(route->permission, PERM_ADMIN) != 0)
        return refuse(route, e, "defines what runs, which is the administrator's");
    if (route->defines_when && !route->defines)
        return refuse(route, e, "says when it defines what runs, but not that it does");
    if (!route->body != !route->body_size || !route->query != !route->query_size)
        return refuse(route, e, "needs ROUTE_BODY and ROUTE_QUERY for its tables");
    if (route->check_body && !route->body)
        return refuse(route, e, "checks a body it does not have");
    if (route->body && route->method == HTTP_GET)
        return refuse(route, e, "may not have a body");
    if (!route->answer && !route->answer_type && !route->is_refused)
        return refuse(route, e, "needs an answer or an answer_type");
    if (route->kind == ROUTE_INLINE && !may_be_inline(route))
        return refuse(route, e, "may not be ROUTE_INLINE with this permission");
    if (route->is_refused ? route->status < 400 || route->status > 599
                          : route->status && route->status != 101 && (route->status < 200 || route->status > 399))
        return refuse(route, e, route->is_refused ? "needs a status of failure" : "needs a status of success");
    return 0;
}

static int add_entry(struct router *r, const struct route *route, const char *path, struct err *e)
{
    struct route_entry *entry = ARENA_NEW(r->arena, struct route_entry);

    entry->route = route;
    entry->path = path;
    tally_init(&entry->tally, path, http_method_name(route->method));
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->entries = xrealloc(r->entries, r->cap * sizeof(*r->entries));
    }
    r->entries[r->n++] = entry;
    return http_matcher_add(r->matcher, route->method, path, entry, e);
}

static int add_path(struct router *r, const struct route *route, const char *path, struct err *e)
{
    int rc;

    rc = add_entry(r, route, path, e);
    if (rc == 0 && route->is_sdk)
        rc = add_entry(r, route, arena_printf(r->arena, "/api%s", path), e);
    return rc;
}

static int add_row(struct router *r, const struct route *route, const char *token, struct err *e)
{
    const char *at = strstr(route->path, TOKEN);
    int rc;

    rc = check_row(route, e);
    if (rc < 0)
        return rc;
    if (!at)
        return add_path(r, route, route->path, e);
    rc = add_path(
        r, route,
        arena_printf(r->arena, "%.*s%s%s", (int)(at - route->path), route->path, TOKEN_ALWAYS, at + strlen(TOKEN)), e);
    if (rc == 0 && strcmp(token, TOKEN_ALWAYS) != 0)
        rc = add_path(
            r, route,
            arena_printf(r->arena, "%.*s%s%s", (int)(at - route->path), route->path, token, at + strlen(TOKEN)), e);
    return rc;
}

int router_new(const struct route *const *tables, struct settings *s, struct router **ret, struct err *e)
{
    struct router *r = xcalloc(1, sizeof(*r));
    const char *token;
    int rc = 0;

    r->arena = arena_new();
    r->matcher = http_matcher_new();
    token = settings_string(s, r->arena, SETTING_IDENTITY_TOKEN);
    for (const struct route *const *table = tables; rc == 0 && *table; table++)
        for (const struct route *route = *table; rc == 0 && route->path; route++)
            rc = add_row(r, route, token, e);
    if (rc < 0) {
        router_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

struct router *router_free(struct router *r)
{
    if (!r)
        return NULL;
    http_matcher_free(r->matcher);
    arena_free(r->arena);
    free(r->entries);
    free(r);
    return NULL;
}

struct route_entry *router_find(struct router *r, enum http_method method, const char *path,
                                struct http_match *ret_match)
{
    http_matcher_find(r->matcher, method, path, ret_match);
    return (struct route_entry *)(uintptr_t)ret_match->row;
}

const struct error_form *router_error_form(struct router *r, const struct route_entry *entry,
                                           const struct http_request *req)
{
    const struct error_form *form;
    struct http_match match;

    for (int method = 0; !entry && method < HTTP_METHODS; method++)
        entry = router_find(r, (enum http_method)method, req->path, &match);
    form = entry ? entry->route->error_form : v1_error_form(req);
    if (!entry && !form)
        form = face_error_form(req);
    return form ? form : &error_envelope;
}

size_t router_count(const struct router *r)
{
    return r->n;
}

const struct route_entry *router_entry(const struct router *r, size_t i)
{
    return r->entries[i];
}
