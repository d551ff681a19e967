#include "api/inner.h"

#include "api/api.h"
#include "base/budget.h"
#include "base/limits.h"
#include "http/local.h"

#include <assert.h>

const struct route *inner_find_route(const struct inner_route *which)
{
    const struct route *route = which->table;

    while (route->path && (route->method != which->method || strcmp(route->path, which->path) != 0))
        route++;
    assert(route->path);
    return route;
}

static void free_exchange(void *x)
{
    http_local_free(x);
}

static struct http_exchange *new_exchange(const struct inner_call *c, const struct route *route)
{
    struct http_exchange *x = http_local_new(route->method, route->path, "", (struct slice){ 0 });

    arena_defer(c->arena, free_exchange, x);
    if (c->holder)
        purse_open(&x->purse, c->holder);
    return x;
}

/* A body over HTTP is refused by its length; these arguments were read already, so their length is measured. */
static int check_size(const struct request *inner, struct err *e)
{
    const size_t max = inner->route->max_body ? (size_t)inner->route->max_body : (size_t)LIMIT_BODY_DEFAULT;
    struct buf text;
    bool fits;

    buf_init(&text, max);
    json_print(&text, inner->body_json);
    fits = !text.overflowed;
    buf_clear(&text);
    return fits ? 0 : err_set(e, -E2BIG, "BODY_TOO_LARGE", "The arguments must have at most %zu bytes.", max);
}

static int read_parameter(struct request *inner, const char *name, struct err *e)
{
    const char *text = json_cstr(json_get(inner->body_json, name));

    if (!text || !*text)
        return err_add_field(e, name, "is required: a string");
    inner->params[0] = text;
    return 0;
}

/* Body and query of a route come from the same object. */
static int read_table(struct request *inner, const struct field *table, size_t size, const void **ret, struct err *e)
{
    struct arena *a = http_exchange_body_arena(inner->exchange);
    void *into;

    if (!table)
        return 0;
    into = arena_alloc(a, size);
    *ret = into;
    return fields_read(table, inner->body_json, into, a, "", e);
}

static int read_arguments(struct request *inner, const char *param, struct err *e)
{
    const struct route *route = inner->route;
    int r = param ? read_parameter(inner, param, e) : 0, more;

    more = read_table(inner, route->query, route->query_size, &inner->query, e);
    r = r < 0 ? r : more;
    more = read_table(inner, route->body, route->body_size, &inner->body, e);
    if (route->check_body && (more == 0 || more == -EINVAL)) {
        int further = route->check_body(inner, inner->body, e);

        more = more < 0 ? more : further;
    }
    return r < 0 ? r : more;
}

static int take_permission(const struct request *inner, struct err *e)
{
    const struct route *route = inner->route;
    int r = 0;

    if (route->stores && inner->exchange->purse.holder)
        r = budget_check(inner->exchange->purse.holder, BUDGET_DISK, 1, e);
    if (r < 0 || strcmp(route->permission, PERM_BODY) == 0) /* such a handler takes its permission itself */
        return r;
    return identity_require(inner->api->identity, inner->caller, route->permission, e);
}

static int handle(struct request *inner, struct slice *ret, struct err *e)
{
    struct buf *out = &inner->exchange->response.body;
    struct response res = { .exchange = inner->exchange };
    int r;

    json_write_init(&res.json, out);
    json_begin_object(&res.json);
    r = inner->route->handler(inner, &res, e);
    if (r < 0)
        return r;
    assert(!res.is_streamed && !res.is_raw);
    json_end(&res.json);
    *ret = buf_slice(out);
    return out->overflowed
               ? err_set(e, -EFBIG, "REPLY_TOO_LARGE", "The answer is larger than the service allows; ask for less.")
               : 0;
}

int inner_run(const struct inner_call *c, const struct inner_route *which, struct json_value arguments,
              struct slice *ret, struct err *e)
{
    const struct route *route = inner_find_route(which);
    struct http_exchange *x = new_exchange(c, route);
    struct request inner = { .api = c->api,
                             .arena = x->arena,
                             .route = route,
                             .caller = c->caller,
                             .body_json = arguments,
                             .exchange = x,
                             .trace = c->trace,
                             .trigger_depth = c->trigger_depth };
    int r = check_size(&inner, e);

    if (r == 0)
        r = read_arguments(&inner, which->param, e);
    if (r == 0)
        r = take_permission(&inner, e);
    if (r < 0)
        return r;
    if (c->attach)
        c->attach(c->arg, &x->is_gone);
    r = handle(&inner, ret, e);
    if (c->attach)
        c->attach(c->arg, NULL);
    return r;
}
