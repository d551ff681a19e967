/* Developer keys, for the local administrator (decision D3). */
#include "identity/keys.h"

#include "api/api.h"
#include "api/routes.h"

struct new_key_body { const char *name; };

static const struct field new_key_fields[] = {
    FIELD_STRING(struct new_key_body, name, "name", .max = LIMIT_NAME_CHARS, .def_str = "", .help = "what it is for"),
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

static int revoke_key(struct request *req, struct response *res, struct err *e)
{
    return key_revoke(req->api->identity, req->params[0], req->caller->actor, e);
}

const struct route key_routes[] = {
    { .method = HTTP_GET, .path = "/api/keys", .permission = PERM_ADMIN, .answer = keys_answer, .handler = list_keys,
      .summary = "Developer keys, revoked ones too", .tag = "Keys" },
    { .method = HTTP_POST, .path = "/api/keys", .permission = PERM_ADMIN, ROUTE_BODY(new_key_fields, struct new_key_body),
      .is_body_optional = true, .status = 201, .answer = new_key_answer, .handler = create_key,
      .summary = "Make a developer key", .tag = "Keys" },
    { .method = HTTP_DELETE, .path = "/api/keys/:id", .permission = PERM_ADMIN, .answer = api_nothing,
      .handler = revoke_key, .summary = "Revoke a developer key, at once", .tag = "Keys" },
    ROUTE_END,
};
