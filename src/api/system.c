/* For whoever runs the service: alive, ready, measured, described. */
#include "api/api.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "backend/backend.h"
#include "base/metrics.h"
#include "store/meta.h"

static const struct field health_answer[] = { SHAPE_STRING("version"), FIELD_END };

static const struct field ready_answer[] = {
    SHAPE_STRING("store", .help = "ready"),
    SHAPE_STRING("backend", .help = "ready"),
    FIELD_END,
};

static int tell_health(struct request *req, struct response *res, struct err *e)
{
    json_add_string(&res->json, "version", HEARTH_VERSION);
    return 0;
}

static int not_ready(struct err *e, const char *part, const struct err *why)
{
    err_set(e, -EAGAIN, "NOT_READY", "The %s is not ready: %s", part, why->text);
    err_add_extra(e, "reason", part);
    return -EAGAIN;
}

/* Any reading will do; this value is there since identity was opened. */
static int read_store(struct request *req, struct err *e)
{
    char *value;

    return store_meta_get(req->api->store, req->arena, META_KEY_HASH_KEY, &value, e);
}

static int tell_ready(struct request *req, struct response *res, struct err *e)
{
    struct backend *backend = req->api->backend;
    struct err why = { 0 };

    if (read_store(req, &why) < 0)
        return not_ready(e, "store", &why);
    if (backend->ops->is_ready(backend, &why) < 0)
        return not_ready(e, "backend", &why);
    json_add_string(&res->json, "store", "ready");
    json_add_string(&res->json, "backend", "ready");
    return 0;
}

static int print_metrics(struct request *req, struct response *res, struct err *e)
{
    metrics_print(response_start_raw(res, "text/plain; version=0.0.4; charset=utf-8"));
    return 0;
}

static int print_openapi(struct request *req, struct response *res, struct err *e)
{
    openapi_write(req->api->dispatch, response_start_raw(res, "application/json"));
    return 0;
}

static const struct field route_shape[] = {
    SHAPE_STRING("method"),
    SHAPE_STRING("path"),
    SHAPE_STRING("permission", .help = "a permission, or who may call: public, identified, admin, body"),
    SHAPE_BOOL("defines", .help = "changes what runs: a browser session needs a fresh confirmation"),
    SHAPE_STRING("summary"),
    SHAPE_STRING("tag"),
    FIELD_END,
};
static const struct field routes_answer[] = { SHAPE_LIST("routes", route_shape), FIELD_END };

/* PERM_PUBLIC and its kin begin with a dash that only tables need. */
static void write_route(const struct route *route, const char *path, void *arg)
{
    struct json_writer *w = arg;

    json_begin_object(w);
    json_add_string(w, "method", http_method_name(route->method));
    json_add_string(w, "path", path);
    json_add_string(w, "permission", route->permission + (*route->permission == '-'));
    json_add_bool(w, "defines", route->defines);
    json_add_string(w, "summary", route->summary);
    json_add_string(w, "tag", route->tag);
    json_end(w);
}

static int list_routes(struct request *req, struct response *res, struct err *e)
{
    json_begin_array_as(&res->json, "routes");
    dispatch_each_route(req->api->dispatch, write_route, &res->json);
    json_end(&res->json);
    return 0;
}

const struct route system_routes[] = {
    { .method = HTTP_GET, .path = "/healthz", .permission = PERM_PUBLIC, .kind = ROUTE_INLINE, .answer = health_answer,
      .handler = tell_health, .summary = "Is the service alive", .tag = "System" },
    { .method = HTTP_GET, .path = "/readyz", .permission = PERM_PUBLIC, .answer = ready_answer, .handler = tell_ready,
      .summary = "Can the service work: store and backend", .tag = "System" },
    { .method = HTTP_GET, .path = "/metrics", .permission = PERM_PUBLIC, .answer_type = "text/plain", .handler = print_metrics,
      .summary = "Measurements for Prometheus", .tag = "System" },
    { .method = HTTP_GET, .path = "/openapi.json", .permission = PERM_PUBLIC, .answer_type = "application/json",
      .handler = print_openapi, .summary = "This description", .tag = "System" },
    { .method = HTTP_GET, .path = "/api/routes", .permission = PERM_ADMIN, .answer = routes_answer, .handler = list_routes,
      .summary = "Every route with its aliases", .tag = "System" },
    ROUTE_END,
};
