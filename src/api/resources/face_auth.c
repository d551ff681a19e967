/* Sign-up and sign-in of the users of apps, in the form of the hosted service's auth service (docs/offline-face.md). */
#include "face/auth.h"

#include "api/api.h"
#include "api/resources/face_form.h"
#include "api/resources/face_request.h"
#include "api/routes.h"
#include "base/clock.h"
#include "face/realtime.h"

#include <string.h>

enum { MAX_BODY = 64 << 10, MAX_PASSWORD = 1000, MS_A_SECOND = 1000 };

/* ---- shapes ---- */

struct sign_up_body {
    const char *email, *phone, *password;
    struct json_value data;
};

static const struct field sign_up_fields[] = {
    FIELD_STRING(struct sign_up_body, email, "email", .max = LIMIT_FACE_EMAIL),
    FIELD_STRING(struct sign_up_body, password, "password", .max = MAX_PASSWORD, .help = "6 to 72 bytes"),
    FIELD_OBJECT(struct sign_up_body, data, "data", .help = "what the user says of itself: user_metadata"),
    FIELD_STRING(struct sign_up_body, phone, "phone", .max = MAX_PASSWORD, .help = "refused"),
    FIELD_END,
};

struct token_query {
    const char *grant_type;
};

static const struct field token_query[] = {
    FIELD_STRING(struct token_query, grant_type, "grant_type", .max = 100, .def_str = "",
                 .help = "password or refresh_token"),
    FIELD_END,
};

struct token_body {
    const char *email, *phone, *password, *refresh_token;
};

static const struct field token_fields[] = {
    FIELD_STRING(struct token_body, email, "email", .max = LIMIT_FACE_EMAIL),
    FIELD_STRING(struct token_body, password, "password", .max = MAX_PASSWORD),
    FIELD_STRING(struct token_body, refresh_token, "refresh_token", .max = MAX_PASSWORD),
    FIELD_STRING(struct token_body, phone, "phone", .max = MAX_PASSWORD, .help = "refused"),
    FIELD_END,
};

struct user_body {
    const char *email, *phone, *password;
    struct json_value data;
};

static const struct field user_fields[] = {
    FIELD_STRING(struct user_body, email, "email", .min = 1, .max = LIMIT_FACE_EMAIL),
    FIELD_STRING(struct user_body, password, "password", .min = 1, .max = MAX_PASSWORD),
    FIELD_OBJECT(struct user_body, data, "data", .help = "members to change; null removes one"),
    FIELD_STRING(struct user_body, phone, "phone", .max = MAX_PASSWORD, .help = "refused"),
    FIELD_END,
};

struct sign_out_query {
    const char *scope;
};

static const char *const scopes[] = { "global", "local", "others", NULL };
static const struct field sign_out_query[] = {
    FIELD_STRING(struct sign_out_query, scope, "scope", .one_of = scopes, .def_str = "global"),
    FIELD_END,
};

static const struct field user_shape[] = {
    SHAPE_STRING("id", .format = "uuid"),
    SHAPE_STRING("aud"),
    SHAPE_STRING("role"),
    SHAPE_STRING("email"),
    SHAPE_TIME("email_confirmed_at"),
    SHAPE_STRING("phone"),
    SHAPE_TIME("confirmed_at"),
    SHAPE_TIME("last_sign_in_at", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("app_metadata", NULL),
    SHAPE_OBJECT("user_metadata", NULL),
    SHAPE_LIST("identities", NULL),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("updated_at"),
    SHAPE_BOOL("is_anonymous"),
    FIELD_END,
};

static const struct field session_shape[] = {
    SHAPE_STRING("access_token"),
    SHAPE_STRING("token_type"),
    SHAPE_INT("expires_in", .help = "seconds"),
    SHAPE_INT("expires_at", .help = "seconds since 1970"),
    SHAPE_STRING("refresh_token"),
    SHAPE_OBJECT("user", user_shape),
    FIELD_END,
};

static const struct field health_answer[] = { SHAPE_STRING("version"), SHAPE_STRING("name"),
                                              SHAPE_STRING("description"), FIELD_END };

static const struct field settings_answer[] = {
    SHAPE_OBJECT("external", NULL, .help = "ways to sign in: only email is true"),
    SHAPE_BOOL("disable_signup", .help = "for this sender: see the setting face.signup"),
    SHAPE_BOOL("mailer_autoconfirm"),
    SHAPE_BOOL("phone_autoconfirm"),
    SHAPE_STRING("sms_provider"),
    SHAPE_BOOL("saml_enabled"),
    FIELD_END,
};

static const struct field nothing[] = { FIELD_END };

/* ---- writing ---- */

static void write_app_metadata(struct json_writer *w)
{
    static const char *const providers[] = { "email" };

    json_begin_object_as(w, "app_metadata");
    json_add_string(w, "provider", "email");
    json_add_strings(w, "providers", providers, ARRAY_SIZE(providers));
    json_end(w);
}

static void write_identity(struct json_writer *w, const struct face_user_row *user)
{
    json_begin_object(w);
    json_add_string(w, "identity_id", user->id);
    json_add_string(w, "id", user->id);
    json_add_string(w, "user_id", user->id);
    json_begin_object_as(w, "identity_data");
    json_add_string(w, "email", user->email);
    json_add_bool(w, "email_verified", false);
    json_add_bool(w, "phone_verified", false);
    json_add_string(w, "sub", user->id);
    json_end(w);
    json_add_string(w, "provider", "email");
    json_add_string(w, "last_sign_in_at", user->last_sign_in_at);
    json_add_string(w, "created_at", user->created_at);
    json_add_string(w, "updated_at", user->updated_at);
    json_add_string(w, "email", user->email);
    json_end(w);
}

static void write_user(struct json_writer *w, const struct face_user_row *user)
{
    json_add_string(w, "id", user->id);
    json_add_string(w, "aud", "authenticated");
    json_add_string(w, "role", face_role_name(FACE_AUTHENTICATED));
    json_add_string(w, "email", user->email);
    json_add_string(w, "email_confirmed_at", user->created_at);
    json_add_string(w, "phone", "");
    json_add_string(w, "confirmed_at", user->created_at);
    json_add_string(w, "last_sign_in_at", user->last_sign_in_at);
    write_app_metadata(w);
    json_add_raw(w, "user_metadata", user->user_data);
    json_begin_array_as(w, "identities");
    write_identity(w, user);
    json_end(w);
    json_add_string(w, "created_at", user->created_at);
    json_add_string(w, "updated_at", user->updated_at);
    json_add_bool(w, "is_anonymous", false);
}

static void write_session(struct json_writer *w, const struct auth_session *session, const struct face_user_row *user)
{
    json_add_string(w, "access_token", session->access_token);
    json_add_string(w, "token_type", "bearer");
    json_add_int(w, "expires_in", LIMIT_FACE_ACCESS_S);
    json_add_int(w, "expires_at", session->expires_at_s);
    json_add_string(w, "refresh_token", session->refresh_token);
    json_begin_object_as(w, "user");
    write_user(w, user);
    json_end(w);
}

/* ---- who asks ---- */

static int issuer_of(const struct request *req, struct auth_issuer *ret, struct err *e)
{
    ret->url = arena_printf(req->arena, "%s/auth/v1", req->api->base_url);
    return realtime_keys(req->api->realtime, &ret->keys, e);
}

/* The key, and the token of a user. A token that has expired is refused, whatever is asked. */
static int read_sender(const struct request *req, struct face_caller *ret, struct err *e)
{
    return face_request_caller(req, NULL, ret, e);
}

/* For what a person without a token asks: a token that comes along counts for nothing. */
static int check_key(const struct request *req, struct err *e)
{
    const struct face_keys *keys = NULL;
    struct face_caller ignored;
    int r = face_request_need(req, e);

    if (r == 0)
        r = realtime_keys(req->api->realtime, &keys, e);
    return r < 0 ? r
                 : face_caller_of_key(keys, face_request_key(req, NULL), clock_wall_ms() / MS_A_SECOND, &ignored, e);
}

static int need_email(const char *email, const char *phone, const char *password, struct err *e)
{
    if (phone && *phone)
        return err_set(e, -EINVAL, "PHONE_PROVIDER_DISABLED",
                       "Phone numbers are not supported: Hearth has no service that sends SMS.");
    if (!email || !*email)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "missing email or phone");
    return password && *password ? 0 : err_set(e, -EINVAL, "VALIDATION_ERROR", "missing password");
}

/* ---- sign-up and sign-in ---- */

static bool may_sign_up(const struct request *req)
{
    const char *who = settings_string(req->api->settings, req->arena, SETTING_FACE_SIGNUP);
    const struct http_peer *peer = req->exchange->request.connection;

    if (strcmp(who, "local") == 0)
        return !peer || http_peer_is_loopback(peer);
    return strcmp(who, "open") == 0;
}

static int check_sign_up(const struct request *req, const struct sign_up_body *body, struct err *e)
{
    int r = check_key(req, e);

    if (r < 0)
        return r;
    if (!may_sign_up(req))
        return err_set(e, -EPERM, "SIGNUP_DISABLED", "Signups not allowed for this instance");
    if ((!body->email || !*body->email) && (!body->phone || !*body->phone) && (!body->password || !*body->password))
        return err_set(e, -EINVAL, "ANONYMOUS_PROVIDER_DISABLED", "Anonymous sign-ins are disabled");
    return need_email(body->email, body->phone, body->password, e);
}

static int answer_session(struct request *req, struct response *res, const struct face_user_row *user, struct err *e)
{
    struct auth_issuer issuer = { 0 };
    struct auth_session session = { 0 };
    struct face_user_row again = { 0 };
    int r = issuer_of(req, &issuer, e);

    if (r == 0)
        r = auth_begin_session(req->api->face_auth, &issuer, user, req->arena, &session, e);
    if (r == 0) /* with the time of this sign-in */
        r = store_face_users_find(req->api->store, req->arena, user->id, &again, e);
    if (r == 0)
        write_session(&res->json, &session, &again);
    return r;
}

static int sign_up(struct request *req, struct response *res, struct err *e)
{
    const struct sign_up_body *body = req->body;
    const struct auth_claimant who = {
        .email = body->email,
        .password = body->password,
        .address = req->exchange->request.peer,
        .user_data = json_is_absent(body->data) ? "{}" : json_to_str(req->arena, body->data),
    };
    struct face_user_row user = { 0 };
    int r = check_sign_up(req, body, e);

    if (r == 0)
        r = auth_sign_up(req->api->face_auth, &who, req->arena, &user, e);
    return r < 0 ? r : answer_session(req, res, &user, e);
}

static int sign_in(struct request *req, struct response *res, struct err *e)
{
    const struct token_body *body = req->body;
    const struct auth_claimant who = { .email = body->email,
                                       .password = body->password,
                                       .address = req->exchange->request.peer };
    struct face_user_row user = { 0 };
    int r = need_email(body->email, body->phone, body->password, e);

    if (r == 0)
        r = auth_sign_in(req->api->face_auth, &who, req->arena, &user, e);
    return r < 0 ? r : answer_session(req, res, &user, e);
}

static int refresh(struct request *req, struct response *res, struct err *e)
{
    const struct token_body *body = req->body;
    struct auth_issuer issuer = { 0 };
    struct auth_session session = { 0 };
    struct face_user_row user = { 0 };
    int r = issuer_of(req, &issuer, e);

    if (!body->refresh_token || !*body->refresh_token)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "refresh_token is required");
    if (r == 0)
        r = auth_refresh(req->api->face_auth, &issuer, body->refresh_token, req->arena, &user, &session, e);
    if (r == 0)
        write_session(&res->json, &session, &user);
    return r;
}

static bool is_grant(const struct request *req, const char *type)
{
    const struct token_query *query = req->query;

    return strcmp(query->grant_type, type) == 0;
}

static bool needs_hashing(const struct request *req)
{
    return is_grant(req, "password");
}

static int give_token(struct request *req, struct response *res, struct err *e)
{
    const struct token_query *query = req->query;
    int r = check_key(req, e);

    if (r < 0)
        return r;
    if (is_grant(req, "password"))
        return sign_in(req, res, e);
    if (is_grant(req, "refresh_token"))
        return refresh(req, res, e);
    return err_set(e, -EINVAL, "UNSUPPORTED_GRANT_TYPE",
                   "The grant_type \"%.40s\" is not supported here, only password and refresh_token.",
                   query->grant_type);
}

/* ---- a user ---- */

static int show_user(struct request *req, struct response *res, struct err *e)
{
    struct face_caller caller;
    struct face_user_row user = { 0 };
    int r = read_sender(req, &caller, e);

    if (r == 0)
        r = auth_user_of(req->api->face_auth, &caller, req->arena, &user, e);
    if (r == 0)
        write_user(&res->json, &user);
    return r;
}

static bool has_password(const struct request *req)
{
    return ((const struct user_body *)req->body)->password != NULL;
}

static int change_user(struct request *req, struct response *res, struct err *e)
{
    const struct user_body *body = req->body;
    const struct auth_change change = { .email = body->email, .password = body->password, .data = body->data };
    struct face_caller caller;
    struct face_user_row user = { 0 };
    int r = read_sender(req, &caller, e);

    if (r == 0 && body->phone && *body->phone)
        r = need_email(NULL, body->phone, NULL, e);
    if (r == 0)
        r = auth_change(req->api->face_auth, &caller, &change, req->arena, &user, e);
    if (r == 0)
        write_user(&res->json, &user);
    return r;
}

static int sign_out(struct request *req, struct response *res, struct err *e)
{
    const struct sign_out_query *query = req->query;
    enum face_sessions_ended which = strcmp(query->scope, "local") == 0    ? FACE_THIS_SESSION
                                     : strcmp(query->scope, "others") == 0 ? FACE_OTHER_SESSIONS
                                                                           : FACE_ALL_SESSIONS;
    struct face_caller caller;
    int r = read_sender(req, &caller, e);

    if (r == 0)
        r = auth_sign_out(req->api->face_auth, &caller, which, e);
    if (r == 0)
        (void)!response_start_raw(res, "application/json"); /* 204 has no body */
    return r;
}

/* ---- about the service ---- */

static int show_health(struct request *req, struct response *res, struct err *e)
{
    int r = check_key(req, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "version", HEARTH_VERSION);
    json_add_string(&res->json, "name", "Hearth");
    json_add_string(&res->json, "description",
                    "Users of apps on this machine, with the interface of the hosted service");
    return 0;
}

static int show_settings(struct request *req, struct response *res, struct err *e)
{
    static const char *const off[] = { "anonymous_users", "apple", "azure", "github", "google", "phone" };
    int r = check_key(req, e);

    if (r < 0)
        return r;
    json_begin_object_as(&res->json, "external");
    for (size_t i = 0; i < ARRAY_SIZE(off); i++)
        json_add_bool(&res->json, off[i], false);
    json_add_bool(&res->json, "email", true);
    json_end(&res->json);
    json_add_bool(&res->json, "disable_signup", !may_sign_up(req));
    json_add_bool(&res->json, "mailer_autoconfirm", true);
    json_add_bool(&res->json, "phone_autoconfirm", false);
    json_add_string(&res->json, "sms_provider", "");
    json_add_bool(&res->json, "saml_enabled", false);
    return 0;
}

const struct route face_auth_routes[] = {
    { .method = HTTP_POST,
      .path = "/auth/v1/signup",
      .permission = PERM_PUBLIC,
      .kind = ROUTE_LONG,
      ROUTE_BODY(sign_up_fields, struct sign_up_body),
      .max_body = MAX_BODY,
      .answer = session_shape,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = sign_up,
      .summary = "Make a user of apps of the hosted service, who is signed in at once",
      .tag = "Face" },
    { .method = HTTP_POST,
      .path = "/auth/v1/token",
      .permission = PERM_PUBLIC,
      .needs_long = needs_hashing,
      ROUTE_QUERY(token_query, struct token_query),
      ROUTE_BODY(token_fields, struct token_body),
      .max_body = MAX_BODY,
      .answer = session_shape,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = give_token,
      .summary = "Sign in with a password, or refresh a session",
      .tag = "Face" },
    { .method = HTTP_GET,
      .path = "/auth/v1/user",
      .permission = PERM_PUBLIC,
      .answer = user_shape,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = show_user,
      .summary = "The user of the token in Authorization",
      .tag = "Face" },
    { .method = HTTP_PUT,
      .path = "/auth/v1/user",
      .permission = PERM_PUBLIC,
      .needs_long = has_password,
      ROUTE_BODY(user_fields, struct user_body),
      .max_body = MAX_BODY,
      .answer = user_shape,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = change_user,
      .summary = "Change one's own e-mail address, password or user_metadata",
      .tag = "Face" },
    { .method = HTTP_POST,
      .path = "/auth/v1/logout",
      .permission = PERM_PUBLIC,
      .status = 204,
      ROUTE_QUERY(sign_out_query, struct sign_out_query),
      .answer = nothing,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = sign_out,
      .summary = "End this session, the user's others, or all",
      .tag = "Face" },
    { .method = HTTP_GET,
      .path = "/auth/v1/health",
      .permission = PERM_PUBLIC,
      .answer = health_answer,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = show_health,
      .summary = "Whether users can sign in",
      .tag = "Face" },
    { .method = HTTP_GET,
      .path = "/auth/v1/settings",
      .permission = PERM_PUBLIC,
      .answer = settings_answer,
      .is_bare = true,
      .error_form = &face_auth_error,
      .handler = show_settings,
      .summary = "Ways to sign in",
      .tag = "Face" },
    ROUTE_END,
};
