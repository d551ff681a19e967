/* The user's token and the configuration, with which an app reaches its database (decision D6). */
#include "identity/backend_token.h"

#include "api/api.h"
#include "api/routes.h"
#include "apps/apps.h"
#include "backend/custom/custom.h"
#include "face/realtime.h"

struct sync_body {
    const char *token;
};

static const struct field sync_fields[] = {
    FIELD_STRING(struct sync_body, token, "token", FIELD_REQUIRED, .max = 16384, .help = "empty: forget it"),
    FIELD_END,
};

static const struct field sync_answer[] = {
    SHAPE_STRING("message"),
    SHAPE_BOOL("hasToken"),
    SHAPE_TIME("syncedAt", .flags = FIELD_NULLABLE),
    SHAPE_STRING("source", .flags = FIELD_NULLABLE, .help = "who handed it over: app"),
    FIELD_END,
};

static const struct field token_answer[] = {
    SHAPE_STRING("token"),
    SHAPE_BOOL("hasToken"),
    SHAPE_TIME("syncedAt"),
    SHAPE_STRING("source", .help = "who handed it over: app"),
    FIELD_END,
};

static const struct field config_shape[] = {
    SHAPE_STRING("url", .help = "of this service, or of the project of the hosted backend"),
    SHAPE_STRING("anonKey",
                 .help = "the project's publishable key, or that of `hearth backend keys`; empty: the face is off"),
    SHAPE_STRING("mode"),
    SHAPE_STRINGS("tables"),
    SHAPE_INT("max_concurrent_tasks"),
    FIELD_END,
};
static const struct field config_answer[] = { SHAPE_OBJECT("config", config_shape), FIELD_END };

static int sync_token(struct request *req, struct response *res, struct err *e)
{
    const struct sync_body *body = req->body;
    const char *synced_at = NULL;
    int r;

    r = backend_token_set(req->api->identity, req->caller, body->token, req->arena, &synced_at, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "message", synced_at ? "The token is synchronised" : "The token is forgotten");
    json_add_bool(&res->json, "hasToken", synced_at != NULL);
    json_add_string(&res->json, "syncedAt", synced_at);
    json_add_string(&res->json, "source", synced_at ? "app" : NULL);
    return 0;
}

static int show_token(struct request *req, struct response *res, struct err *e)
{
    struct backend_token token = { 0 };
    int r;

    r = request_need_proof(req, e);
    if (r == 0)
        r = backend_token_get(req->api->identity, req->caller, req->arena, &token, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "token", token.token);
    json_add_bool(&res->json, "hasToken", true);
    json_add_string(&res->json, "syncedAt", token.synced_at);
    json_add_string(&res->json, "source", "app");
    return 0;
}

/* Where an app reaches the rows by itself: the face, whose key is "" when it is off, or the place of the backend. */
static int find_reach(struct request *req, struct backend_reach *ret, struct err *e)
{
    struct backend *b = custom_inner(req->api->backend);
    const struct face_keys *keys = NULL;
    int r;

    if (b->ops->reach)
        return b->ops->reach(b, req->arena, ret, e);
    r = req->api->realtime ? realtime_keys(req->api->realtime, &keys, e) : 0;
    *ret = (struct backend_reach){ req->api->base_url, keys ? keys->publishable : "" };
    return r;
}

/* A caller without an app (a developer key alone) gets the configuration of an app without a backend block. */
static int show_config(struct request *req, struct response *res, struct err *e)
{
    struct app_config app = { .backend = { .mode = "compatible", .max_concurrent_tasks = 1 } };
    struct backend_reach reach = { 0 };
    int r = find_reach(req, &reach, e);

    if (r == 0 && req->caller->app_id)
        r = app_find(req->api->apps, req->caller->app_id, req->arena, &app, e);
    if (r < 0)
        return r;
    json_begin_object_as(&res->json, "config");
    json_add_string(&res->json, "url", reach.url);
    json_add_string(&res->json, "anonKey", reach.key);
    json_add_string(&res->json, "mode", app.backend.mode);
    json_add_strings(&res->json, "tables", app.backend.tables.items, app.backend.tables.n);
    json_add_int(&res->json, "max_concurrent_tasks", app.backend.max_concurrent_tasks);
    json_end(&res->json);
    return 0;
}

const struct route backend_token_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/auth/sync-backend-token",
      .permission = PERM_NONE,
      .is_sdk = true,
      ROUTE_BODY(sync_fields, struct sync_body),
      .answer = sync_answer,
      .handler = sync_token,
      .summary = "Hand over the signed-in user's backend token",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/sdk/auth/sync-supabase-token",
      .permission = PERM_NONE,
      .is_sdk = true,
      ROUTE_BODY(sync_fields, struct sync_body),
      .answer = sync_answer,
      .handler = sync_token,
      .summary = "The same under the name that clients of the hosted backend use",
      .tag = "Backend" },
    { .method = HTTP_GET,
      .path = "/sdk/auth/token",
      .permission = PERM_NONE,
      .is_sdk = true,
      .answer = token_answer,
      .handler = show_token,
      .summary = "The caller's own backend token",
      .tag = "Backend" },
    { .method = HTTP_GET,
      .path = "/sdk/database/config",
      .permission = PERM_DATABASE_CONFIG,
      .is_sdk = true,
      .answer = config_answer,
      .handler = show_config,
      .summary = "The caller's database configuration",
      .tag = "Backend" },
    ROUTE_END,
};
