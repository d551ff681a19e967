/* The users of apps of the hosted service (face/auth.h), for the local administrator. */
#include "face/auth.h"

#include "api/api.h"
#include "api/routes.h"
#include "identity/audit.h"

enum { MAX_PASSWORD = 1000 };

struct new_user {
    const char *email, *password;
};

static const struct field new_user_fields[] = {
    FIELD_STRING(struct new_user, email, "email", FIELD_REQUIRED, .min = 1, .max = LIMIT_FACE_EMAIL),
    FIELD_STRING(struct new_user, password, "password", FIELD_REQUIRED, .min = 1, .max = MAX_PASSWORD,
                 .help = "6 to 72 bytes; kept hashed"),
    FIELD_END,
};

struct new_password {
    const char *password;
};

static const struct field new_password_fields[] = {
    FIELD_STRING(struct new_password, password, "password", FIELD_REQUIRED, .min = 1, .max = MAX_PASSWORD,
                 .help = "6 to 72 bytes; kept hashed"),
    FIELD_END,
};

static const struct field user_shape[] = {
    SHAPE_STRING("id", .format = "uuid"),
    SHAPE_STRING("email"),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("last_sign_in_at", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static const struct field one_user[] = { SHAPE_OBJECT("user", user_shape), FIELD_END };
static const struct field many_users[] = { SHAPE_LIST("users", user_shape), FIELD_END };

static void write_user(struct json_writer *w, const char *name, const struct face_user_row *user)
{
    json_begin_object_as(w, name);
    json_add_string(w, "id", user->id);
    json_add_string(w, "email", user->email);
    json_add_string(w, "created_at", user->created_at);
    json_add_string(w, "last_sign_in_at", user->last_sign_in_at);
    json_end(w);
}

static int list_users(struct request *req, struct response *res, struct err *e)
{
    struct face_user_row *users = NULL;
    size_t n = 0;
    int r = store_face_users_list(req->api->store, req->arena, &users, &n, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "users");
    for (size_t i = 0; i < n; i++)
        write_user(&res->json, NULL, &users[i]);
    json_end(&res->json);
    return 0;
}

static int add_user(struct request *req, struct response *res, struct err *e)
{
    const struct new_user *body = req->body;
    const struct auth_claimant who = { .email = body->email, .password = body->password, .user_data = "{}" };
    struct face_user_row user = { 0 };
    int r = audit_append(req->api->identity, req->caller->actor, "backend.user_add", body->email, NULL, e);

    if (r == 0)
        r = auth_add_user(req->api->store, &who, req->arena, &user, e);
    if (r == 0)
        write_user(&res->json, "user", &user);
    return r;
}

/* Finds the user that the path names, and enters what happens to it. */
static int find_user(struct request *req, const char *action, struct face_user_row *ret, struct err *e)
{
    int r = store_face_users_find(req->api->store, req->arena, req->params[0], ret, e);

    return r < 0 ? r : audit_append(req->api->identity, req->caller->actor, action, ret->email, NULL, e);
}

static int remove_user(struct request *req, struct response *res, struct err *e)
{
    struct face_user_row user = { 0 };
    int r = find_user(req, "backend.user_remove", &user, e);

    return r < 0 ? r : store_face_users_remove(req->api->store, user.id, e);
}

static int set_password(struct request *req, struct response *res, struct err *e)
{
    const struct new_password *body = req->body;
    struct face_user_row user = { 0 };
    int r = find_user(req, "backend.user_password", &user, e);

    return r < 0 ? r : auth_reset_password(req->api->store, user.id, body->password, e);
}

const struct route backend_user_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/backend/users",
      .permission = PERM_ADMIN,
      .answer = many_users,
      .handler = list_users,
      .summary = "Users of apps of the hosted service",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/users",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .status = 201,
      ROUTE_BODY(new_user_fields, struct new_user),
      .answer = one_user,
      .handler = add_user,
      .summary = "Add such a user",
      .tag = "Backend" },
    { .method = HTTP_DELETE,
      .path = "/api/backend/users/:user",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = remove_user,
      .summary = "Remove a user, by id or e-mail address; its rows stay",
      .tag = "Backend" },
    { .method = HTTP_PUT,
      .path = "/api/backend/users/:user/password",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(new_password_fields, struct new_password),
      .answer = api_nothing,
      .handler = set_password,
      .summary = "Give a user a new password, which ends the user's sessions",
      .tag = "Backend" },
    ROUTE_END,
};
