/* Specification, "Connectivity and local data"; decision D3. */
#include "api/api.h"
#include "api/routes.h"
#include "base/clock.h"
#include "os/files.h"

static const struct field ping_answer[] = {
    SHAPE_STRING("message"),
    SHAPE_STRING("mode", .help = "development with a developer key, production with an app id"),
    SHAPE_STRING("appId", .flags = FIELD_OPTIONAL),
    SHAPE_TIME("timestamp"),
    FIELD_END,
};

static const struct field data_dir_answer[] = {
    SHAPE_STRING("dataDir", .help = "absolute path of the caller's own folder, made with mode 0700"),
    FIELD_END,
};

static int ping(struct request *req, struct response *res, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    json_add_string(&res->json, "message", "pong");
    json_add_string(&res->json, "mode", req->caller->kind == CALLER_APP ? "production" : "development");
    if (req->caller->app_id)
        json_add_string(&res->json, "appId", req->caller->app_id);
    json_add_string(&res->json, "timestamp", now);
    return 0;
}

static int show_data_dir(struct request *req, struct response *res, struct err *e)
{
    const char *root = arena_printf(req->arena, "%s/local-apps", req->api->data_dir);
    char *path;
    int r;

    r = path_below(req->arena, root, req->caller->scope, &path, e);
    if (r == 0)
        r = dir_make(path, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "dataDir", path);
    return 0;
}

const struct route connectivity_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/ping",
      .permission = PERM_NONE,
      .kind = ROUTE_INLINE,
      .is_sdk = true,
      .answer = ping_answer,
      .handler = ping,
      .summary = "Is the service there and who am I to it",
      .tag = "Connectivity" },
    { .method = HTTP_GET,
      .path = "/sdk/local-apps/data-dir",
      .permission = PERM_NONE,
      .is_sdk = true,
      .answer = data_dir_answer,
      .handler = show_data_dir,
      .summary = "Folder for the caller's own files",
      .tag = "Connectivity" },
    ROUTE_END,
};
