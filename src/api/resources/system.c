/* For operators: liveness, readiness, metrics, OpenAPI. */
#include "api/api.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "backend/backend_providers.h"
#include "base/build_id.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "os/files.h"
#include "store/meta.h"

#include <libgen.h>

static const struct field health_answer[] = {
    SHAPE_STRING("version"),
    SHAPE_STRING("url", .flags = FIELD_NULLABLE,
                 .help = "where programs of this machine reach the service; over its Unix socket only"),
    SHAPE_STRING("build", .flags = FIELD_NULLABLE,
                 .help = "the linker's id of the running program; over its Unix socket only"),
    FIELD_END,
};

static const struct field ready_answer[] = {
    SHAPE_STRING("store", .help = "ready"),
    SHAPE_STRING("backend", .help = "ready"),
    SHAPE_STRING("disk", .help = "ready: it can be written and is not full"),
    FIELD_END,
};

static int report_health(struct request *req, struct response *res, struct err *e)
{
    bool is_local = http_is_local(&req->exchange->request);
    char build[BUILD_ID_SIZE];

    build_id(build);
    json_add_string(&res->json, "version", HEARTH_VERSION);
    json_add_string(&res->json, "url", is_local && *req->api->base_url ? req->api->base_url : NULL);
    json_add_string(&res->json, "build", is_local ? build : NULL);
    return 0;
}

static int not_ready(struct err *e, const char *part, const struct err *why)
{
    err_set(e, -EAGAIN, "NOT_READY", "The %s is not ready: %s", part, why->text);
    err_add_extra(e, "reason", part);
    return -EAGAIN;
}

/* Any read is sufficient; this value exists since identity was opened. */
static int read_store(struct request *req, struct err *e)
{
    char *value;

    return store_meta_get(req->api->store, req->arena, META_KEY_HASH_KEY, &value, e);
}

/* The folders of both databases, which may be on two disks. */
static int check_disks(struct request *req, struct err *e)
{
    const struct backend_file rows = backend_provider_file(req->api->settings, req->api->data_dir, req->arena);
    int r = disk_check(req->api->data_dir, LIMIT_DISK_FLOOR, e);

    return r < 0 || !rows.is_elsewhere ? r
                                       : disk_check(dirname(arena_strdup(req->arena, rows.path)), LIMIT_DISK_FLOOR, e);
}

static int report_ready(struct request *req, struct response *res, struct err *e)
{
    struct backend *backend = req->api->backend;
    struct err why = { 0 };

    if (check_disks(req, &why) < 0)
        return not_ready(e, "disk", &why);
    if (read_store(req, &why) < 0)
        return not_ready(e, "store", &why);
    if (backend->ops->is_ready(backend, &why) < 0)
        return not_ready(e, "backend", &why);
    json_add_string(&res->json, "store", "ready");
    json_add_string(&res->json, "backend", "ready");
    json_add_string(&res->json, "disk", "ready");
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

/* PERM_PUBLIC and similar words begin with a dash, which is omitted here. */
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
    { .method = HTTP_GET,
      .path = "/healthz",
      .permission = PERM_PUBLIC,
      .kind = ROUTE_INLINE,
      .answer = health_answer,
      .handler = report_health,
      .summary = "Is the service alive",
      .tag = "System" },
    { .method = HTTP_GET,
      .path = "/readyz",
      .permission = PERM_PUBLIC,
      .uses_rows = true,
      .answer = ready_answer,
      .handler = report_ready,
      .summary = "Can the service work: store, backend, disk",
      .tag = "System" },
    { .method = HTTP_GET,
      .path = "/metrics",
      .permission = PERM_PUBLIC,
      .answer_type = "text/plain",
      .handler = print_metrics,
      .summary = "Measurements for Prometheus",
      .tag = "System" },
    { .method = HTTP_GET,
      .path = "/openapi.json",
      .permission = PERM_PUBLIC,
      .answer_type = "application/json",
      .handler = print_openapi,
      .summary = "This description",
      .tag = "System" },
    { .method = HTTP_GET,
      .path = "/api/routes",
      .permission = PERM_ADMIN,
      .answer = routes_answer,
      .handler = list_routes,
      .summary = "Every route with its aliases",
      .tag = "System" },
    ROUTE_END,
};
