#include "identity/audit.h"
#include "identity/claim.h"
#include "identity/consent.h"
#include "identity/contacts.h"
#include "identity/decision.h"
#include "identity/permissions.h"
#include "identity/sessions.h"
#include "identity/state.h"
#include "store/tables/grants.h"
#include "store/meta.h"

#include <strings.h>
#include <unistd.h>

#define BEARER "Bearer "

void identity_hash(const struct identity *id, const char *secret, unsigned char ret_hash[HASH_BYTES])
{
    hash_blake2b(slice_of(secret), (struct slice){ (const char *)id->keys->hash, sizeof(id->keys->hash) }, ret_hash);
}

/* The key of all stored hashes: made once for a database and kept in the database, so that a backup carries it. */
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
        r = credential_cache_load_keys(&id->cache, id->store, e);
    if (r == 0)
        r = credential_cache_load_apps(&id->cache, id->store, e);
    if (r < 0)
        return r;
    id->last_used = last_used_start(id->store);
    id->contacts = contacts_start(id);
    return id->last_used && id->contacts
               ? 0
               : err_set(e, -EAGAIN, "INTERNAL_ERROR", "A thread for identity could not be started.");
}

static void read_settings(struct identity *id)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    if (!id->settings)
        return;
    id->peers = peers_mode_of(settings_string(id->settings, a, SETTING_IDENTITY_PEERS));
    id->needs_secret = settings_bool(id->settings, SETTING_IDENTITY_REQUIRE_SECRET);
}

int identity_open(struct store *store, struct settings *settings, const char *data_dir, struct identity **ret,
                  struct err *e)
{
    struct identity *id = xcalloc(1, sizeof(*id));
    int r;

    id->store = store;
    id->settings = settings;
    id->data_dir = xstrdup(data_dir);
    credential_cache_init(&id->cache);
    consent_queue_init(&id->queue);
    confirmations_init(&id->confirmations);
    pthread_mutex_init(&id->seen.lock, NULL);
    peer_kernel_init(&id->kernel);
    id->uid = geteuid();
    launches_init(&id->launches);
    read_settings(id);
    for (size_t i = 0; i < CONSENT_LOCKS; i++)
        pthread_mutex_init(&id->order[i], NULL);
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
    contacts_stop(id->contacts);
    last_used_stop(id->last_used);
    launches_clear(&id->launches);
    peer_kernel_clear(&id->kernel);
    credential_cache_clear(&id->cache);
    consent_queue_clear(&id->queue);
    confirmations_clear(&id->confirmations);
    pthread_mutex_destroy(&id->seen.lock);
    for (size_t i = 0; i < CONSENT_LOCKS; i++)
        pthread_mutex_destroy(&id->order[i]);
    secret_free(id->keys);
    free(id->data_dir);
    free(id);
    return NULL;
}

int identity_reload_apps(struct identity *id, struct err *e)
{
    int r = credential_cache_load_apps(&id->cache, id->store, e);

    return r < 0 ? r
                 : credential_cache_load_keys(&id->cache, id->store,
                                              e); /* the keys of a removed app ended with the app */
}

bool identity_knows_app(struct identity *id, const char *app_id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct cached_app_name found;

    return credential_cache_find_app(&id->cache, app_id, a, &found);
}

void identity_on_contact(struct identity *id, identity_contact_fn *fn, void *arg)
{
    id->on_contact = fn;
    id->on_contact_arg = arg;
}

const char *identity_bearer(const char *authorization)
{
    if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
        return NULL;
    return authorization + strlen(BEARER) + strspn(authorization + strlen(BEARER), " ");
}

static struct caller caller_of_app(const struct cached_app_name *app, struct arena *a)
{
    return (struct caller){ .kind = CALLER_APP,
                            .app_id = app->id,
                            .app_name = app->name,
                            .scope = app->id,
                            .actor = arena_printf(a, "app:%s", app->id) };
}

static bool find_hashed_key(struct identity *id, const unsigned char hash[HASH_BYTES], struct arena *a,
                            struct caller *ret)
{
    struct cached_app_name app;
    struct cached_key key;
    bool is_due;

    if (!credential_cache_find_key(&id->cache, hash, &key, &is_due))
        return false;
    if (key.app_id[0] && !credential_cache_find_app(&id->cache, key.app_id, a, &app))
        return false;
    if (is_due)
        last_used_note_key(id->last_used, key.id);
    if (key.app_id[0]) {
        *ret = caller_of_app(&app, a);
        return true;
    }
    ret->kind = CALLER_KEY;
    ret->key_id = arena_strdup(a, key.id);
    ret->key_fingerprint = arena_strdup(a, key.fingerprint);
    ret->actor = arena_printf(a, "key:%s", key.fingerprint);
    return true;
}

static bool find_key_text(struct identity *id, const char *text, struct arena *a, struct caller *ret)
{
    unsigned char hash[HASH_BYTES];

    if (!text || !*text)
        return false;
    identity_hash(id, text, hash);
    return find_hashed_key(id, hash, a, ret);
}

/* A key that identity_claim() found may have been revoked since, so it is looked up again. */
static bool find_key(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret)
{
    return (c->key_hash && find_hashed_key(id, c->key_hash, a, ret)) ||
           find_key_text(id, identity_bearer(c->authorization), a, ret) || find_key_text(id, c->x_api_key, a, ret);
}

static bool find_admin(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret)
{
    const char *session = NULL;

    if (!c->is_local_admin &&
        (!session_find(id, c->session_cookie, c->session_proof, a, &session) || !peers_may_be_admin(id, c->connection)))
        return false;
    if (!c->is_local_admin)
        identity_remember_session(id, c->session_cookie, c->session_proof);
    *ret = (struct caller){ .kind = CALLER_ADMIN, .scope = "admin", .actor = "admin", .session = session };
    return true;
}

/* ---- secrets of programs that Hearth started (identity/launches.h) ---- */

/* The secret with that prefix, from its own header or as Bearer; such a Bearer value is not a key. */
static const char *secret_of(const struct credentials *c, const char *prefix)
{
    const char *bearer = identity_bearer(c->authorization);

    if (c->x_app_secret && strncmp(c->x_app_secret, prefix, strlen(prefix)) == 0)
        return c->x_app_secret;
    return bearer && strncmp(bearer, prefix, strlen(prefix)) == 0 ? bearer : NULL;
}

bool identity_launch_of(struct identity *id, const struct credentials *c, struct launch *ret)
{
    const char *secret = secret_of(c, LAUNCH_APP_PREFIX);

    if (!secret)
        secret = secret_of(c, LAUNCH_TASK_PREFIX);
    return secret && launches_find_secret(id, secret, ret);
}

/* 1 with the app that the secret belongs to; 0: no secret came. A value in the secret's own header must be a valid
 * secret. */
static int read_app_secret(struct identity *id, const struct credentials *c, const char *app_id, struct launch *ret,
                           struct err *e)
{
    const char *secret = secret_of(c, LAUNCH_APP_PREFIX);

    if (!secret && !(c->x_app_secret && *c->x_app_secret))
        return 0;
    if (!secret || !launches_find_secret(id, secret, ret) || ret->task_uuid[0])
        return err_set(e, -EACCES, "INVALID_APP_SECRET",
                       "The secret is of no app that Hearth has started and that runs: each start has another one.");
    if (app_id && *app_id && strcmp(app_id, ret->app_id) != 0)
        return err_set(e, -EACCES, "INVALID_APP_SECRET", "The secret is of another app than the app id.");
    return 1;
}

static bool is_remote(const struct credentials *c)
{
    return c->connection && c->connection->remote.any.sa_family != AF_UNIX;
}

/* Checks an app that sends its id alone. */
static int check_bare_id(struct identity *id, const struct credentials *c, const struct cached_app_name *app,
                         struct err *e)
{
    const struct launch_what what = { .app_id = app->id };
    int r = peers_check(id, c->connection, &what, app->is_launchable, e);

    if (r == 0 && c->needs_proof)
        r = peers_check_user(id, c->connection, &what, e);
    if (r < 0 || !id->needs_secret || !is_remote(c) || c->connection->tag)
        return r;
    return err_set(
        e, -EACCES, "APP_SECRET_REQUIRED",
        "Here an app's id is taken with its secret only (identity.require_secret): send the variable that ends "
        "in _APP_SECRET as x-app-secret, or use a developer key.");
}

int identity_agent(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret, struct err *e)
{
    const char *token = secret_of(c, LAUNCH_TASK_PREFIX);
    struct launch launch;

    if (!token)
        return 0;
    if (!launches_find_secret(id, token, &launch))
        return err_set(e, -EPERM, "INVALID_TASK_TOKEN",
                       "The token is of no agent that runs: it ends with the process it was given to.");
    *ret = (struct caller){ .kind = CALLER_AGENT,
                            .task_uuid = arena_strdup(a, launch.task_uuid),
                            .attempt = launch.attempt };
    ret->scope = ret->task_uuid;
    ret->actor = arena_printf(a, "agent:%s", ret->task_uuid);
    return 1;
}

int identity_check_reporter(struct identity *id, const struct credentials *c, const char *task_uuid, struct err *e)
{
    const struct launch_what what = { .task_uuid = task_uuid };
    int r = peers_check(id, c->connection, &what, launches_runs(id, &what, 0), e);

    if (r < 0 || !id->needs_secret || !is_remote(c) || c->connection->tag)
        return r;
    return err_set(e, -EACCES, "TASK_TOKEN_REQUIRED",
                   "Here a report about a task is taken with the agent's token only (identity.require_secret): send "
                   "HEARTH_TASK_TOKEN as Authorization: Bearer, or use a developer key.");
}

/* ---- who calls ---- */

static const char *app_id_of(const struct credentials *c)
{
    return c->x_app_id && *c->x_app_id ? c->x_app_id : c->body_app_id && *c->body_app_id ? c->body_app_id : NULL;
}

#define INVALID_KEY "Invalid API key: it is no developer key of this Hearth, or it was revoked"

/* A Bearer value, an Authorization of another scheme, or x-api-key. */
static bool has_key(const struct credentials *c)
{
    const char *bearer = identity_bearer(c->authorization), *sent = bearer ? bearer : c->authorization;

    return (sent && *sent && strcasecmp(sent, "Bearer") != 0) || (c->x_api_key && *c->x_api_key);
}

int identity_refuse_stranger(const struct credentials *c, struct err *e)
{
    if (!has_key(c))
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    return err_set(e, -EACCES, "INVALID_API_KEY", INVALID_KEY "; `hearth key new` makes one.");
}

int identity_blame_key(const struct credentials *c, int r, struct err *e)
{
    char why[300];

    if (r >= 0 || !has_key(c))
        return r;
    snprintf(why, sizeof(why), "%s", e ? e->text : "");
    return err_set(e, -EACCES, "INVALID_API_KEY", INVALID_KEY ". The app id was not taken either: %s", why);
}

static int find_by_key(struct identity *id, const char *app_id, struct arena *a, struct caller *caller)
{
    struct cached_app_name app = { 0 };

    if (app_id && credential_cache_find_app(&id->cache, app_id, a, &app)) {
        caller->app_id = app.id;
        caller->app_name = app.name;
    }
    caller->scope = app.id ? app.id : caller->key_fingerprint;
    return 0;
}

/* A key that is tied to one app cannot act as another app. Such a key may be published with the app: where an id is not
 * enough, the key proves no more than the id. */
static int check_tied_key(struct identity *id, const struct credentials *c, const char *app_id, struct arena *a,
                          const struct caller *caller, struct err *e)
{
    const struct launch_what what = { .app_id = caller->app_id };
    struct cached_app_name other;

    if (app_id && strcmp(app_id, caller->app_id) != 0 && credential_cache_find_app(&id->cache, app_id, a, &other))
        return err_set(e, -EPERM, "APP_ID_MISMATCH", "The key is tied to the app %.80s; the app id is that of %.80s.",
                       caller->app_name, other.name);
    return c->needs_proof ? peers_check_user(id, c->connection, &what, e) : 0;
}

static int find_by_app(struct identity *id, const struct credentials *c, const char *app_id, bool is_proven,
                       struct arena *a, struct caller *caller, struct err *e)
{
    struct cached_app_name app;
    int r = 0;

    if (!credential_cache_find_app(&id->cache, app_id, a, &app))
        return err_set(e, -EACCES, "INVALID_APP_ID", "Invalid app ID: %.200s", app_id);
    if (!is_proven)
        r = check_bare_id(id, c, &app, e);
    *caller = caller_of_app(&app, a);
    return r;
}

int identity_caller(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret,
                    struct err *e)
{
    const char *app_id = app_id_of(c);
    struct caller caller = { .kind = CALLER_NOBODY };
    struct launch launch;
    int r;

    if (find_key(id, c, a, &caller)) {
        r = caller.kind == CALLER_APP ? check_tied_key(id, c, app_id, a, &caller, e)
                                      : find_by_key(id, app_id, a, &caller);
    } else {
        r = read_app_secret(id, c, app_id, &launch, e);
        if (r >= 0 && (r > 0 || app_id))
            r = identity_blame_key(c, find_by_app(id, c, r > 0 ? launch.app_id : app_id, r > 0, a, &caller, e), e);
        else if (r == 0 && !find_admin(id, c, a, &caller))
            r = identity_refuse_stranger(c, e);
    }
    if (r == 0)
        *ret = caller;
    return r;
}

/* A caller that sends more than its app's id may be known without waiting; an unneeded wait does no harm. */
bool identity_has_to_wait(struct identity *id, const struct credentials *c)
{
    const char *app_id = app_id_of(c);
    bool is_launchable;

    return app_id && peers_has_to_wait(id, c->connection, &(struct launch_what){ .app_id = app_id }) &&
           credential_cache_has_app(&id->cache, app_id, &is_launchable) && is_launchable;
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

/* For these permissions programs read the code and show `error` to the person; for the others they look for the code in
 * `error`, too. */
static bool is_shown_to_person(const char *permission)
{
    return strncmp(permission, "llm.", 4) == 0 || strncmp(permission, "vectors.", 8) == 0;
}

/* The code stands in `error` too, because client programs look for it there (decision D4). */
static int refuse(const struct caller *c, const char *permission, bool is_denied, struct err *e)
{
    const char *code = is_denied ? "PERMISSION_DENIED" : "PERMISSION_REQUIRED";
    char message[300];

    if (is_denied)
        snprintf(message, sizeof(message),
                 "The permission %.60s was denied to the app %.60s; `hearth permission grant %.60s %.60s` grants it.",
                 permission, c->app_name, c->app_id, permission);
    else
        snprintf(message, sizeof(message), "The permission %.60s has not been granted to the app %.60s yet.",
                 permission, c->app_name);
    err_set(e, -EPERM, code, "%s", is_denied && is_shown_to_person(permission) ? message : code);
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
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The grants could not be read.");
    *ret = decision_now(r == 0 ? row : NULL, clock_wall_ms());
    return 0;
}

/* Uses up a `once` grant, or notes the use of a longer grant. */
static int use_grant(struct identity *id, const struct caller *c, const struct grant_row *row, struct err *e)
{
    int r = 0;

    if (decision_is_single(row)) {
        r = store_grants_use_once(id->store, c->app_id, row->permission, NULL);
        if (r == -ENOENT)
            return refuse(c, row->permission, false, e);
        if (r < 0)
            return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The use of the grant could not be stored.");
    } else if (!decision_is_noted(row, clock_wall_ms())) {
        last_used_note_grant(id->last_used, c->app_id, row->permission);
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
    if (decision == DECISION_NONE) { /* the person sees the question even if the app never asks; a full list must not
                                        prevent the answer */
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

/* A program without credentials may use models, whichever route it called. */
static bool may_have_grants(const struct caller *c, const char *permission)
{
    if (c->kind == CALLER_LOCAL)
        return strncmp(permission, "llm.", 4) == 0;
    return c->kind != CALLER_NOBODY && c->kind != CALLER_AGENT;
}

int identity_check(struct identity *id, const struct caller *c, const char *permission, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row row = { 0 };

    if (!may_have_grants(c, permission))
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    return c->kind == CALLER_APP ? find_grant(id, c, permission, a, &row, e) : 0;
}

int identity_has_grant(struct identity *id, const struct caller *c, const char *permission, bool *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum decision decision = DECISION_DENIED;
    struct grant_row row = { 0 };
    int r = c->kind == CALLER_APP ? read_decision(id, c, permission, a, &row, &decision, e) : 0;

    *ret = c->kind == CALLER_KEY || c->kind == CALLER_ADMIN || decision == DECISION_ALLOWED;
    return r;
}

int identity_is_denied(struct identity *id, const struct caller *c, const char *permission, bool *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum decision decision = DECISION_NONE;
    struct grant_row row = { 0 };
    int r = c->kind == CALLER_APP ? read_decision(id, c, permission, a, &row, &decision, e) : 0;

    *ret = decision == DECISION_DENIED;
    return r;
}

int identity_begin_use(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                       struct audit_use **ret, struct err *e)
{
    const struct permission *known = permission_find(permission);
    int r = 0;

    *ret = NULL;
    if (!may_have_grants(c, permission))
        return err_set(e, -EACCES, "MISSING_APP_ID", "Missing required header: x-app-id");
    if (c->kind == CALLER_APP)
        r = require_grant(id, c, permission, e);
    return r == 0 && known && known->is_dangerous ? audit_begin_use(id, c, permission, a, ret, e) : r;
}

int identity_require(struct identity *id, const struct caller *c, const char *permission, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct audit_use *use = NULL;
    int r = identity_begin_use(id, c, permission, a, &use, e);

    return r < 0 ? r : audit_end_use(use, e);
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
