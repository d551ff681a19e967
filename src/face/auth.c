#include "face/auth.h"

#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "face/attempts.h"
#include "face/password.h"
#include "face/refresh_token.h"

#include <stdlib.h>

enum { MS_A_SECOND = 1000 };

struct face_auth {
    struct store *store;                      /* borrowed */
    struct attempts *of_account, *of_address; /* owned */
};

struct face_auth *face_auth_new(struct store *store)
{
    struct face_auth *auth = xcalloc(1, sizeof(*auth));

    auth->store = store;
    auth->of_account = attempts_new(LIMIT_FACE_ACCOUNT_TRIES, LIMIT_FACE_ACCOUNT_TRY_MS);
    auth->of_address = attempts_new(LIMIT_FACE_ADDRESS_TRIES, LIMIT_FACE_ADDRESS_TRY_MS);
    return auth;
}

struct face_auth *face_auth_free(struct face_auth *auth)
{
    if (!auth)
        return NULL;
    attempts_free(auth->of_account);
    attempts_free(auth->of_address);
    free(auth);
    return NULL;
}

/* ---- sign-up ---- */

static int check_data(const char *user_data, struct err *e)
{
    if (strlen(user_data) > LIMIT_FACE_USER_DATA)
        return err_add_field(e, "data", "must be at most %d bytes", LIMIT_FACE_USER_DATA);
    return 0;
}

static int insert_user(struct store *store, const char *email, const struct auth_claimant *who, struct arena *a,
                       struct face_user_row *ret, struct err *e)
{
    char id[UUID_SIZE], hash[PASSWORD_HASH_SIZE];
    const struct face_user_row row = { .id = id, .email = email, .password = hash, .user_data = who->user_data };
    int r = password_hash(who->password, hash, e);

    uuid_v4(id);
    if (r == 0)
        r = store_face_users_insert(store, &row, e);
    return r < 0 ? r : store_face_users_find(store, a, id, ret, e);
}

static int check_claimant(const struct auth_claimant *who, char *email, struct err *e)
{
    int r = email_normalize(email, e);

    if (r == 0)
        r = password_check(who->password, e);
    return r < 0 ? r : check_data(who->user_data, e);
}

int auth_add_user(struct store *store, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                  struct err *e)
{
    char *email = arena_strdup(a, who->email);
    int r = check_claimant(who, email, e);

    return r < 0 ? r : insert_user(store, email, who, a, ret, e);
}

int auth_sign_up(struct face_auth *auth, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                 struct err *e)
{
    char *email = arena_strdup(a, who->email);
    int r = check_claimant(who, email, e);

    if (r == 0)
        r = attempts_take(auth->of_address, slice_of(who->address), clock_mono_ms(), e);
    return r < 0 ? r : insert_user(auth->store, email, who, a, ret, e);
}

/* ---- sign-in ---- */

/* An attempt counts before its password is judged, so that attempts at the same time are no way around the limit. */
static int take_attempt(struct face_auth *auth, const char *email, const char *address, struct err *e)
{
    int64_t now_ms = clock_mono_ms();
    int r = attempts_take(auth->of_address, slice_of(address), now_ms, e);

    if (r < 0)
        return r;
    r = attempts_take(auth->of_account, slice_of(email), now_ms, e);
    if (r < 0)
        attempts_give_back(auth->of_address, slice_of(address)); /* nothing was tried */
    return r;
}

static int refuse_claimant(struct err *e)
{
    return err_set(e, -EACCES, "INVALID_CREDENTIALS", "Invalid login credentials");
}

int auth_sign_in(struct face_auth *auth, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                 struct err *e)
{
    char *email = arena_strdup(a, who->email);
    struct face_user_row user = { 0 };
    int r;

    if (email_normalize(email, NULL) < 0 || strlen(who->password) > LIMIT_FACE_PASSWORD)
        return refuse_claimant(e); /* no account can have these */
    r = take_attempt(auth, email, who->address, e);
    if (r < 0)
        return r;
    r = store_face_users_find(auth->store, a, email, &user, NULL);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The user could not be read.");
    r = password_verify(user.password, who->password, e);
    if (r != 0) {
        attempts_give_back(auth->of_address, slice_of(who->address));
        attempts_give_back(auth->of_account, slice_of(email));
    }
    if (r <= 0 || !user.id)
        return r < 0 ? r : refuse_claimant(e);
    *ret = user;
    return 0;
}

/* ---- sessions ---- */

static void write_claims(struct json_writer *w, const struct auth_issuer *issuer, const struct face_user_row *user,
                         const char *session, int64_t now_s)
{
    static const char *const providers[] = { "email" };

    json_begin_object(w);
    json_add_string(w, "iss", issuer->url);
    json_add_string(w, "sub", user->id);
    json_add_string(w, "aud", "authenticated");
    json_add_int(w, "exp", now_s + LIMIT_FACE_ACCESS_S);
    json_add_int(w, "iat", now_s);
    json_add_string(w, "email", user->email);
    json_add_string(w, "phone", "");
    json_begin_object_as(w, "app_metadata");
    json_add_string(w, "provider", "email");
    json_add_strings(w, "providers", providers, 1);
    json_end(w);
    json_add_raw(w, "user_metadata", user->user_data);
    json_add_string(w, "role", face_role_name(FACE_AUTHENTICATED));
    json_add_string(w, "aal", "aal1");
    json_add_string(w, "session_id", session);
    json_add_bool(w, "is_anonymous", false);
    json_end(w);
}

static int issue(const struct auth_issuer *issuer, const struct face_user_row *user, const struct refresh_token *token,
                 struct arena *a, struct auth_session *ret, struct err *e)
{
    char refresh[REFRESH_TOKEN_CHARS + 1];
    int64_t now_s = clock_wall_ms() / MS_A_SECOND;
    struct json_writer w;
    struct buf claims, access;
    int r;

    buf_init(&claims, LIMIT_JWT_BYTES);
    buf_init(&access, LIMIT_JWT_BYTES);
    json_write_init(&w, &claims);
    write_claims(&w, issuer, user, token->session, now_s);
    jwt_sign(&access, buf_slice(&claims), slice_of(issuer->keys->jwt_secret));
    r = buf_check(&access, e);
    refresh_token_write(token, slice_of(issuer->keys->refresh_secret), refresh);
    if (r == 0)
        *ret = (struct auth_session){ .access_token = buf_to_arena(&access, a),
                                      .refresh_token = arena_strdup(a, refresh),
                                      .expires_at_s = now_s + LIMIT_FACE_ACCESS_S };
    buf_clear(&claims);
    buf_clear(&access);
    return r;
}

int auth_begin_session(struct face_auth *auth, const struct auth_issuer *issuer, const struct face_user_row *user,
                       struct arena *a, struct auth_session *ret, struct err *e)
{
    struct refresh_token token = { .counter = 0 };
    int r;

    uuid_v4(token.session);
    r = store_face_sessions_begin(auth->store, token.session, user->id, e);
    return r < 0 ? r : issue(issuer, user, &token, a, ret, e);
}

int auth_refresh(struct face_auth *auth, const struct auth_issuer *issuer, const char *refresh_token, struct arena *a,
                 struct face_user_row *ret_user, struct auth_session *ret, struct err *e)
{
    struct refresh_token token;
    struct face_refresh refresh = { .arena = a };
    int r = refresh_token_read(slice_of(refresh_token), slice_of(issuer->keys->refresh_secret), &token, e);

    if (r < 0)
        return r;
    refresh.session_id = token.session;
    refresh.counter = token.counter;
    r = store_face_sessions_refresh(auth->store, &refresh, e);
    if (r == 0)
        r = store_face_users_find(auth->store, a, refresh.user_id, ret_user, e);
    token.counter = (uint32_t)refresh.newest;
    return r < 0 ? r : issue(issuer, ret_user, &token, a, ret, e);
}

/* ---- a signed-in user ---- */

static int need_user(const struct face_caller *caller, struct err *e)
{
    return caller->role == FACE_AUTHENTICATED && caller->subject[0]
               ? 0
               : err_set(e, -EACCES, "NO_AUTHORIZATION", "This endpoint requires a valid Bearer token");
}

int auth_user_of(struct face_auth *auth, const struct face_caller *caller, struct arena *a, struct face_user_row *ret,
                 struct err *e)
{
    int r = need_user(caller, e);

    if (r == 0)
        r = store_face_users_find(auth->store, a, caller->subject, ret, e);
    if (r == -ENOENT)
        return err_set(e, r, "USER_NOT_FOUND", "User from sub claim in JWT does not exist");
    if (r < 0 || !caller->session[0])
        return r;
    return store_face_sessions_check(auth->store, caller->session, ret->id, e);
}

/* Members that are null go away, as the hosted service does it. */
static int merge_data(struct arena *a, const char *before, struct json_value more, const char **ret, struct err *e)
{
    struct json_value old = { 0 }, v;
    struct json_writer w;
    struct slice name;
    struct buf out;
    int r = json_parse(a, slice_of(before), &old, e);

    if (r < 0)
        return r;
    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (struct json_iter it = json_iter(old); json_next(&it, &name, &v);)
        if (json_type(json_get(more, arena_slicedup(a, name))) == JSON_ABSENT)
            json_add_value(&w, arena_slicedup(a, name), v);
    for (struct json_iter it = json_iter(more); json_next(&it, &name, &v);)
        if (json_type(v) != JSON_NULL)
            json_add_value(&w, arena_slicedup(a, name), v);
    json_end(&w);
    r = buf_check(&out, e);
    *ret = buf_to_arena(&out, a);
    return r < 0 ? r : check_data(*ret, e);
}

static int hash_new(const struct face_user_row *user, const char *password, char hash[PASSWORD_HASH_SIZE],
                    struct err *e)
{
    int r = password_check(password, e);

    if (r == 0)
        r = password_verify(user->password, password, e);
    if (r > 0)
        return err_set(e, -EINVAL, "SAME_PASSWORD", "New password should be different from the old password.");
    return r < 0 ? r : password_hash(password, hash, e);
}

int auth_change(struct face_auth *auth, const struct face_caller *caller, const struct auth_change *change,
                struct arena *a, struct face_user_row *ret, struct err *e)
{
    char hash[PASSWORD_HASH_SIZE], *email = change->email ? arena_strdup(a, change->email) : NULL;
    struct face_user_change row = { .email = email, .kept_session = caller->session };
    struct face_user_row user = { 0 };
    int r = auth_user_of(auth, caller, a, &user, e);

    if (r == 0 && email)
        r = email_normalize(email, e);
    if (r == 0 && !json_is_absent(change->data))
        r = merge_data(a, user.user_data, change->data, &row.user_data, e);
    if (r == 0 && change->password)
        r = hash_new(&user, change->password, hash, e);
    if (r < 0)
        return r;
    row.id = user.id;
    row.password = change->password ? hash : NULL;
    r = store_face_users_change(auth->store, &row, e);
    return r < 0 ? r : store_face_users_find(auth->store, a, user.id, ret, e);
}

int auth_sign_out(struct face_auth *auth, const struct face_caller *caller, enum face_sessions_ended which,
                  struct err *e)
{
    int r = need_user(caller, e);

    return r < 0 ? r : store_face_sessions_end(auth->store, caller->session, caller->subject, which, e);
}

int auth_reset_password(struct store *store, const char *user_id, const char *password, struct err *e)
{
    char hash[PASSWORD_HASH_SIZE];
    const struct face_user_change change = { .id = user_id, .password = hash };
    int r = password_check(password, e);

    if (r == 0)
        r = password_hash(password, hash, e);
    return r < 0 ? r : store_face_users_change(store, &change, e);
}
