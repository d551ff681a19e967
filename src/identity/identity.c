#include "identity/audit.h"
#include "identity/claim.h"
#include "identity/consent.h"
#include "identity/decision.h"
#include "identity/permissions.h"
#include "identity/sessions.h"
#include "identity/state.h"
#include "store/grants.h"
#include "store/meta.h"

#include <strings.h>

#define BEARER "Bearer "

void identity_hash(const struct identity *id, const char *secret, unsigned char ret_hash[HASH_BYTES])
{
    hash_blake2b(slice_of(secret), (struct slice){ (const char *)id->keys->hash, sizeof(id->keys->hash) }, ret_hash);
}

/* The key of all stored hashes: made once for a database and kept in it, so that a backup carries it. */
static int read_hash_key(struct identity *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    unsigned char fresh[HASH_BYTES];
    char fresh_hex[HASH_HEX_SIZE], *kept = NULL;
    int r;

    random_bytes(fresh, sizeof(fresh));
    hash_hex(fresh, sizeof(fresh), fresh_hex);
    r = store_meta_keep(id->store, a, META_KEY_HASH_KEY, fresh_hex, &kept, e);
    if (r < 0)
        return r;
    hash_blake2b(slice_of(kept), (struct slice){ 0 }, id->keys->hash);
    secret_wipe(kept, strlen(kept));
    return 0;
}

static int load_keys(struct identity *id, struct err *e)
{
    int r;

    id->keys = secret_new(sizeof(*id->keys));
    if (!id->keys)
        return err_set(e, -ENOMEM, "INTERNAL_ERROR", "There is no memory that can be locked for the keys.");
    r = seal_load(id->data_dir, id->keys->seal, e);
    if (r == 0)
        r = read_hash_key(id, e);
    secret_freeze(id->keys);
    return r;
}

static int load(struct identity *id, struct err *e)
{
    int r;

    r = load_keys(id, e);
    if (r == 0)
        r = store_grants_clear_until_stop(id->store, NULL, e);
    if (r == 0)
        r = roster_load_keys(&id->roster, id->store, e);
    if (r == 0)
        r = roster_load_apps(&id->roster, id->store, e);
    if (r < 0)
        return r;
    id->clerk = clerk_start(id->store);
    return id->clerk ? 0 : err_set(e, -EAGAIN, "INTERNAL_ERROR", "A thread for identity could not be started.");
}

int identity_open(struct store *store, struct settings *settings, const char *data_dir, struct identity **ret, struct err *e)
{
    struct identity *id = xcalloc(1, sizeof(*id));
    int r;

    id->store = store;
    id->settings = settings;
    id->data_dir = xstrdup(data_dir);
    roster_init(&id->roster);
    board_init(&id->board);
    confirmations_init(&id->confirmations);
    pthread_mutex_init(&id->seen.lock, NULL);
    pthread_mutex_init(&id->order, NULL);
    r = load(id, e);
    if (r < 0) {
        identity_close(id);
        return r;
    }
    *ret = id;
    return 0;
}

struct identity *identity_close(struct identity *id)
{
    if (!id)
        return NULL;
    clerk_stop(id->clerk);
    roster_clear(&id->roster);
    board_clear(&id->board);
    confirmations_clear(&id->confirmations);
    pthread_mutex_destroy(&id->seen.lock);
    pthread_mutex_destroy(&id->order);
    secret_free(id->keys);
    free(id->data_dir);
    free(id);
    return NULL;
}

int identity_reload_apps(struct identity *id, struct err *e)
{
    return roster_load_apps(&id->roster, id->store, e);
}

bool identity_knows_app(struct identity *id, const char *app_id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *known_id, *name;

    return roster_find_app(&id->roster, app_id, a, &known_id, &name);
}

const char *identity_bearer(const char *authorization)
{
    if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
        return NULL;
    return authorization + strlen(BEARER) + strspn(authorization + strlen(BEARER), " ");
}

static bool find_key(struct identity *id, const char *text, struct arena *a, struct caller *ret)
{
    unsigned char hash[HASH_BYTES];
    struct roster_key key;
    bool is_due;

    if (!text || !*text)
        return false;
    identity_hash(id, text, hash);
    if (!roster_find_key(&id->roster, hash, &key, &is_due))
        return false;
    if (is_due)
        clerk_note_key(id->clerk, key.id);
    ret->kind = CALLER_KEY;
    ret->key_id = arena_strdup(a, key.id);
    ret->key_fingerprint = arena_strdup(a, key.fingerprint);
    ret->actor = arena_printf(a, "key:%s", key.fingerprint);
    return true;
}

static bool find_admin(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret)
{
    const char *session = NULL;

    if (!c->is_local_admin && !session_find(id, c->session_cookie, c->session_proof, a, &session))
        return false;
    if (!c->is_local_admin)
        identity_remember_session(id, c->session_cookie, c->session_proof);
    *ret = (struct caller){ .kind = CALLER_ADMIN, .scope = "admin", .actor = "admin", .session = session };
    return true;
}

/* The app that header or body names: 0, -ENOENT for an unknown id. */
static int name_app(struct identity *id, const char *app_id, struct arena *a, struct caller *ret)
{
    return roster_find_app(&id->roster, app_id, a, &ret->app_id, &ret->app_name) ? 0 : -ENOENT;
}

int identity_caller(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret, struct err *e)
{
    const char *app_id = c->x_app_id && *c->x_app_id ? c->x_app_id : c->body_app_id;
    struct caller caller = { .kind = CALLER_NOBODY };
    bool has_key = find_key(id, identity_bearer(c->authorization), a, &caller) || find_key(id, c->x_api_key, a, &caller);
    bool has_app = app_id && *app_id && name_app(id, app_id, a, &caller) == 0;

    if (!has_key && app_id && *app_id && !has_app)
        return err_set(e, -EACCES, "INVALID_APP_ID", "Invalid app ID: %.200s", app_id);
    if (!has_key && !has_app) {
        if (find_admin(id, c, a, ret))
            return 0;
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    }
    if (!has_key) {
        caller.kind = CALLER_APP;
        caller.actor = arena_printf(a, "app:%s", caller.app_id);
    }
    caller.scope = has_app ? caller.app_id : caller.key_fingerprint;
    *ret = caller;
    return 0;
}

int identity_refuse_admin(struct err *e)
{
    return err_set(e, -EACCES, "ADMIN_REQUIRED",
                   "Only the local administrator may do this: `hearth open` signs this browser in.");
}

int identity_admin(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret, struct err *e)
{
    return find_admin(id, c, a, ret) ? 0 : identity_refuse_admin(e);
}

/* "PERMISSION_REQUIRED" stands in `error` too, for client programs look for it there (decision D4). */
static int refuse(const struct caller *c, const char *permission, bool is_denied, struct err *e)
{
    const char *code = is_denied ? "PERMISSION_DENIED" : "PERMISSION_REQUIRED";
    char message[200];

    snprintf(message, sizeof(message), is_denied ? "The permission %.60s was denied to the app %.60s."
                                                 : "The permission %.60s has not been granted to the app %.60s yet.",
             permission, c->app_name);
    err_set(e, -EPERM, code, "%s", code);
    err_add_extra(e, "permission", permission);
    err_add_extra(e, "message", message);
    return -EPERM;
}

static int read_decision(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                         struct grant_row *row, enum decision *ret, struct err *e)
{
    int r;

    r = store_grants_get(id->store, a, c->app_id, permission, row, NULL);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, "STORE_ERROR", "The grants could not be read.");
    *ret = decision_now(r == 0 ? row : NULL, clock_wall_ms());
    return 0;
}

/* Takes the one use of a `once` grant, or notes the use of a longer one. */
static int use_grant(struct identity *id, const struct caller *c, const struct grant_row *row, struct err *e)
{
    int r = 0;

    if (decision_is_single(row)) {
        r = store_grants_use_once(id->store, c->app_id, row->permission, NULL);
        if (r == -ENOENT)
            return refuse(c, row->permission, false, e);
        if (r < 0)
            return err_set(e, r, "STORE_ERROR", "The use of the grant could not be stored.");
    } else if (!decision_is_noted(row, clock_wall_ms())) {
        clerk_note_grant(id->clerk, c->app_id, row->permission);
    }
    return r;
}

static int find_grant(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                      struct grant_row *ret, struct err *e)
{
    enum decision decision = DECISION_DENIED;
    int r;

    r = read_decision(id, c, permission, a, ret, &decision, e);
    if (r < 0 || decision == DECISION_ALLOWED)
        return r;
    if (decision == DECISION_NONE) {    /* the person sees the question even if the app never asks; a full list may not stop the answer */
        r = consent_app_misses(id, c->app_id, permission, NULL);
        (void)r;
    }
    return refuse(c, permission, decision == DECISION_DENIED, e);
}

static int require_grant(struct identity *id, const struct caller *c, const char *permission, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row row = { 0 };
    int r;

    r = find_grant(id, c, permission, a, &row, e);
    return r < 0 ? r : use_grant(id, c, &row, e);
}

int identity_check(struct identity *id, const struct caller *c, const char *permission, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row row = { 0 };

    if (c->kind == CALLER_NOBODY)
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    return c->kind == CALLER_APP ? find_grant(id, c, permission, a, &row, e) : 0;
}

int identity_require(struct identity *id, const struct caller *c, const char *permission, struct err *e)
{
    const struct permission *known = permission_find(permission);
    int r = 0;

    if (c->kind == CALLER_NOBODY)
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    if (c->kind == CALLER_APP)
        r = require_grant(id, c, permission, e);
    if (r == 0 && known && known->is_dangerous)
        r = audit_append_permission(id, c->actor, "permission.use", c->app_id, permission, NULL, e);
    return r;
}

void identity_seal(const struct identity *id, struct slice plain, struct buf *out)
{
    seal_bytes(id->keys->seal, plain, out);
}

int identity_unseal(const struct identity *id, struct slice sealed, struct arena *a, struct slice *ret, struct err *e)
{
    return seal_open(id->keys->seal, sealed, a, ret, e);
}

bool identity_keys_are_locked(const struct identity *id)
{
    return secret_is_locked(id->keys, sizeof(*id->keys));
}
