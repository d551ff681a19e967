/* Developer keys, for the local administrator (decision D3). */
#include "identity/keys.h"

#include "api/api.h"
#include "api/routes.h"
#include "store/tables/apps.h"

struct new_key_body {
    const char *name;
};

static const struct field new_key_fields[] = {
    FIELD_STRING(struct new_key_body, name, "name", .max = LIMIT_NAME_CHARS, .def_str = "", .help = "what it is for"),
    FIELD_END,
};

struct import_body {
    const char *app, *key, *name;
};

static const struct field import_fields[] = {
    FIELD_STRING(struct import_body, app, "app", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "id or name of the app it stands for"),
    FIELD_STRING(struct import_body, key, "key", FIELD_REQUIRED, .min = LIMIT_KEY_IMPORT_MIN,
                 .max = LIMIT_KEY_IMPORT_MAX, .help = "kept hashed, never shown"),
    FIELD_STRING(struct import_body, name, "name", .max = LIMIT_NAME_CHARS, .def_str = "", .help = "what it is for"),
    FIELD_END,
};

static const struct field import_answer[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("last4", .help = "the last characters of the key"),
    SHAPE_STRING("app_id"),
    SHAPE_STRING("app"),
    FIELD_END,
};

static const struct field new_key_answer[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("key", .help = "shown this one time"),
    FIELD_END,
};

static const struct field key_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("name"),
    SHAPE_STRING("last4", .help = "the last characters of the key"),
    SHAPE_STRING("fingerprint", .help = "names the data folder of callers with this key"),
    SHAPE_STRING("app_id", .flags = FIELD_NULLABLE, .help = "the one app it stands for"),
    SHAPE_STRING("app", .flags = FIELD_NULLABLE, .help = "its name"),
    SHAPE_STRING("may", .help = "everything, or what the app was granted"),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("last_used_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("revoked_at", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static const struct field keys_answer[] = { SHAPE_LIST("keys", key_shape), FIELD_END };

static int list_keys(struct request *req, struct response *res, struct err *e)
{
    struct key_row *rows;
    size_t n;
    int r;

    r = store_keys_list(req->api->store, req->arena, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "keys");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(&res->json);
        json_add_string(&res->json, "id", rows[i].id);
        json_add_string(&res->json, "name", rows[i].name);
        json_add_string(&res->json, "last4", rows[i].last4);
        json_add_string(&res->json, "fingerprint", rows[i].fingerprint);
        json_add_string(&res->json, "app_id", rows[i].app_id);
        json_add_string(&res->json, "app", rows[i].app_name);
        json_add_string(&res->json, "may",
                        rows[i].app_id ? arena_printf(req->arena, "what %s was granted", rows[i].app_name)
                                       : "everything");
        json_add_string(&res->json, "created_at", rows[i].created_at);
        json_add_string(&res->json, "last_used_at", rows[i].last_used_at);
        json_add_string(&res->json, "revoked_at", rows[i].revoked_at);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static int create_key(struct request *req, struct response *res, struct err *e)
{
    const struct new_key_body *body = req->body;
    char key[KEY_TEXT_SIZE], id[UUID_SIZE];
    int r;

    r = key_new(req->api->identity, body->name, req->caller->actor, key, id, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "id", id);
    json_add_string(&res->json, "key", key);
    return 0;
}

static int check_import(const struct request *req, const void *given, struct err *e)
{
    const struct import_body *body = given;
    const char *rule = body->key ? key_import_rule(body->key) : NULL;

    return rule ? err_add_field(e, "key", "%s", rule) : 0;
}

static int import_key(struct request *req, struct response *res, struct err *e)
{
    const struct import_body *body = req->body;
    struct app_row app;
    const char *id = NULL;
    int r = store_apps_find(req->api->store, req->arena, body->app, &app, e);

    if (r == 0)
        r = key_import(req->api->identity, &(struct key_import){ body->key, body->name, app.app_id },
                       req->caller->actor, req->arena, &id, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "id", id);
    json_add_string(&res->json, "last4", body->key + strlen(body->key) - 4);
    json_add_string(&res->json, "app_id", app.app_id);
    json_add_string(&res->json, "app", app.name);
    return 0;
}

static int revoke_key(struct request *req, struct response *res, struct err *e)
{
    return key_revoke(req->api->identity, req->params[0], req->caller->actor, e);
}

const struct route key_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/keys",
      .permission = PERM_ADMIN,
      .answer = keys_answer,
      .handler = list_keys,
      .summary = "Developer keys, revoked ones too",
      .tag = "Keys" },
    { .method = HTTP_POST,
      .path = "/api/keys",
      .permission = PERM_ADMIN,
      ROUTE_BODY(new_key_fields, struct new_key_body),
      .is_body_optional = true,
      .status = 201,
      .answer = new_key_answer,
      .handler = create_key,
      .summary = "Make a developer key",
      .tag = "Keys" },
    { .method = HTTP_POST,
      .path = "/api/keys/import",
      .permission = PERM_ADMIN,
      ROUTE_BODY(import_fields, struct import_body),
      .check_body = check_import,
      .status = 201,
      .answer = import_answer,
      .handler = import_key,
      .summary = "Tie a key that was made elsewhere to one app",
      .tag = "Keys" },
    { .method = HTTP_DELETE,
      .path = "/api/keys/:id",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = revoke_key,
      .summary = "Revoke a developer key, at once",
      .tag = "Keys" },
    ROUTE_END,
};
