/* Who calls and what the caller may do: developer keys, apps, grants, consent, administrator sessions, the audit log.
 *
 * One per process, opened by service/, used by every worker. Decisions D3 and D4 are the contract. A caller is
 * established once per request, copied into the request's arena, and not trusted beyond the request: grants are read at
 * each use.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "settings/settings.h"
#include "store/store.h"

enum caller_kind {
    CALLER_NOBODY,
    CALLER_KEY,
    CALLER_APP,
    CALLER_ADMIN,
    CALLER_AGENT,
    CALLER_LOCAL /* identity/local_program.h */
};

struct caller {
    enum caller_kind kind;
    const char *key_id, *key_fingerprint; /* of CALLER_KEY; fingerprint: 16 hex digits, public */
    const char *app_id, *app_name;        /* the named app (with a key too); NULL: none */
    const char *scope;                    /* data scope: app id, else key fingerprint, else "admin" */
    const char *actor;                    /* for the audit log: "key:ab12", "app:<id>", "admin" */
    const char *session;                  /* CALLER_ADMIN: the browser's session; NULL: the socket or this process */
    const char *task_uuid;                /* of CALLER_AGENT: the one task it may report about */
    int64_t attempt;                      /* the attempt the agent was started for */
};

/* A copy whose strings are in the arena. */
struct caller *caller_copy(struct arena *a, const struct caller *from);

struct identity;

/* Reads every key and app into memory; ends the grants `until the app stops` of the last run. Needs hash_init(). */
int identity_open(struct store *store, struct settings *settings, const char *data_dir, struct identity **ret,
                  struct err *e) MUST_CHECK;
/* To be called when no worker uses it any more. */
struct identity *identity_close(struct identity *id);
/* Apps were added, changed or removed in the store: to be called right afterwards (consent_app_declares() and
 * consent_app_removed() do so themselves). */
int identity_reload_apps(struct identity *id, struct err *e) MUST_CHECK;
/* Called on a thread of identity when a program that Hearth did not start uses the id of an app, once for each app and
 * program. To be set before the first request. */
typedef void identity_contact_fn(void *arg, const char *app_id, const char *app_name, const char *program);
void identity_on_contact(struct identity *id, identity_contact_fn *fn, void *arg);
/* Is there an app with this id? Any thread. */
bool identity_knows_app(struct identity *id, const char *app_id);

/* The credentials that came with a request, as plain strings (NULL: absent). */
struct credentials {
    const char *authorization; /* whole header */
    const char *x_api_key, *x_app_id, *x_app_secret;
    const char *session_cookie, *session_proof; /* valid only together */
    const char *body_app_id;                    /* webhook and the routes of D3 */
    struct http_peer *connection;               /* the request's connection; NULL: the request came from this process */
    const unsigned char
        *key_hash;       /* of the key that identity_claim() found; NULL: it found no key, or was not called */
    bool needs_proof;    /* an app id is not enough here, whatever identity.peers allows */
    bool is_anonymous;   /* sent by a program that names itself nowhere: not by a browser's page, not by this service */
    bool is_local_admin; /* came over the data folder's socket, or in-process */
};

/* 0 with the caller; -EACCES MISSING_APP_ID (401) or INVALID_APP_ID (401), texts of the specification; -EACCES
 * INVALID_API_KEY (401) when an invalid key came and no other credential is valid; -EACCES INVALID_APP_SECRET,
 * APP_SECRET_REQUIRED (401); -EPERM PEER_NOT_ALLOWED (identity/peers.h). Uses only memory and a system query, except
 * when a session cookie is the only credential or identity_has_to_wait() is true. A local administrator who names no
 * key and no app is CALLER_ADMIN. */
int identity_caller(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret,
                    struct err *e) MUST_CHECK;
/* Would identity_caller() take milliseconds? Then it must not run on the loop. */
bool identity_has_to_wait(struct identity *id, const struct credentials *c);
/* 1 with the agent whose token came (CALLER_AGENT, for reports about its task only), 0 when no token came; -EPERM
 * INVALID_TASK_TOKEN when the token belongs to no running agent. */
int identity_agent(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret,
                   struct err *e) MUST_CHECK;
/* May a caller that sends only the task's uuid report about the task? -EPERM PEER_NOT_ALLOWED, -EACCES
 * TASK_TOKEN_REQUIRED. */
int identity_check_reporter(struct identity *id, const struct credentials *c, const char *task_uuid,
                            struct err *e) MUST_CHECK;
/* Finds the administrator only: -EACCES ADMIN_REQUIRED (401). */
int identity_admin(struct identity *id, const struct credentials *c, struct arena *a, struct caller *ret,
                   struct err *e) MUST_CHECK;
/* May this caller use the permission now? 0; -EPERM PERMISSION_REQUIRED or PERMISSION_DENIED with extras permission and
 * message. Does not use up the grant. */
int identity_check(struct identity *id, const struct caller *c, const char *permission, struct err *e) MUST_CHECK;
/* Has the caller the permission? Asks the person nothing and notes nothing. A caller that needs no grant has every
 * permission. */
int identity_has_grant(struct identity *id, const struct caller *c, const char *permission, bool *ret,
                       struct err *e) MUST_CHECK;
/* Has the person denied the permission? Asks nothing. False for a caller that needs no grant. */
int identity_is_denied(struct identity *id, const struct caller *c, const char *permission, bool *ret,
                       struct err *e) MUST_CHECK;
/* Like identity_check(), but also marks the grant as used (a `once` grant is used up: of several concurrent requests
 * one gets it) and audits dangerous permissions. To be called right before the work, so that a request refused for its
 * body has used nothing. */
int identity_require(struct identity *id, const struct caller *c, const char *permission, struct err *e) MUST_CHECK;
struct audit_use;
/* The same, but does not wait for the entry of the audit log: *ret, in the arena, NULL when there is none, must be
 * given to audit_end_use() after the work and before its answer. */
int identity_begin_use(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                       struct audit_use **ret, struct err *e) MUST_CHECK;

/* Secrets of other parts (keys of providers, passwords of databases), sealed at rest as in identity/seal.h. */
void identity_seal(const struct identity *id, struct slice plain, struct buf *out);
int identity_unseal(const struct identity *id, struct slice sealed, struct arena *a, struct slice *ret,
                    struct err *e) MUST_CHECK;
/* Are master key and hash key kept out of swap? */
bool identity_keys_are_locked(const struct identity *id);
