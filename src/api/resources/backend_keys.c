/* The keys that apps of the hosted service use on this machine, for the local administrator. */
#include "api/api.h"
#include "api/routes.h"
#include "base/secret.h"
#include "face/keys.h"

static const struct field keys_answer[] = {
    SHAPE_STRING("publishable", .help = "for programs of users: sb_publishable_..."),
    SHAPE_STRING("secret", .help = "for servers, sees every row: sb_secret_..."),
    SHAPE_STRING("jwt_secret", .help = "signs the tokens of users (HS256)"),
    FIELD_END,
};

static int show_keys(struct request *req, struct response *res, struct err *e)
{
    struct face_keys *keys;
    int r = face_keys_open(req->api->store, req->api->identity, &keys, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "publishable", keys->publishable);
    json_add_string(&res->json, "secret", keys->secret);
    json_add_string(&res->json, "jwt_secret", keys->jwt_secret);
    secret_free(keys);
    return 0;
}

const struct route backend_key_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/backend/keys",
      .permission = PERM_ADMIN,
      .is_bare = true,
      .answer = keys_answer,
      .handler = show_keys,
      .summary = "Keys for apps of the hosted service, made at the first use",
      .tag = "Backend" },
    ROUTE_END,
};
