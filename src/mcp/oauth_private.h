/* What the files of OAuth share. Private to mcp/oauth*.c. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "mcp/oauth.h"
#include "mcp/oauth_wire.h"
#include "net/http_client.h"

#include <pthread.h>

enum {
    MCP_OAUTH_STEP_MS = 30000, /* for one request to an authorization server */
    MCP_FORM_BYTES = 128 << 10 /* of such a request */
};

/* What is stored of one login; all texts in one arena; NULL: absent. */
struct mcp_grant {
    const char *url; /* of the MCP server that the tokens are for, as it was configured */
    const char *resource, *issuer, *token_endpoint, *revocation_endpoint;
    const char *client_id, *client_secret, *redirect_uri; /* redirect_uri: that the client is registered with */
    int64_t auth_method;                                  /* one of MCP_AUTH_ */
    int64_t signing_alg;                                  /* one of MCP_ALG_, with MCP_AUTH_KEY */
    int64_t secret_expires_s;                             /* since 1970; 0: never */
    const char *access_token, *refresh_token, *scope;
    int64_t expires_ms;               /* clock_wall_ms(); 0: not said */
    const char *id_token, *subject;   /* of an identity: what it says, until expires_ms, and of whom */
    const struct mcp_grant *identity; /* the login at the identity provider; NULL: none */
};

/* One server's login. Without users, it may give its place to another server's; what is stored of it stays. */
struct mcp_oauth_entry {
    struct mcp_oauth *oauth;
    struct mcp_oauth_entry *next;
    char *server;         /* owned */
    pthread_mutex_t busy; /* one thread at a time talks to the authorization server for it */
    /* the following under the lock of mcp_oauth */
    size_t n_users;             /* authorizers, logins that wait for their person, and calls */
    struct arena *target_arena; /* owned */
    struct mcp_oauth_target target;
    struct arena *grant_arena; /* owned; NULL: not loaded */
    struct mcp_grant grant;
    struct arena *wanted_arena; /* owned; NULL: the server asked for nothing */
    struct mcp_challenge wanted;
};

/* A login that waits for its person. */
struct mcp_oauth_waiting {
    struct arena *arena; /* owned; holds this */
    struct mcp_oauth_waiting *next;
    const char *state, *verifier, *redirect_uri;
    const char *nonce; /* of a login at the identity provider; NULL: at the authorization server */
    struct mcp_oauth_entry *entry;
    struct mcp_oauth_target target; /* as it was when the login began */
    struct mcp_grant grant;         /* without tokens */
    bool sends_iss;
    int64_t until_ms; /* clock_mono_ms() */
};

struct mcp_oauth {
    struct mcp_oauth_config config;
    pthread_mutex_t lock;
    struct mcp_oauth_entry *entries;   /* the last used first */
    struct mcp_oauth_waiting *waiting; /* the newest first */
};

/* ---- oauth_fetch.c: requests to what a server names ---- */

struct mcp_fetch {
    const struct mcp_oauth_config *config;
    const char *server_url; /* the address that a person named; decides which addresses may be named there */
    const struct net_wait *wait;
    struct arena *arena;
    const char *private_key, *key_id; /* of the client there; NULL: none */
};
struct mcp_fetch mcp_fetch_of(const struct mcp_oauth_config *c, const struct mcp_oauth_target *t,
                              const struct net_wait *wait, struct arena *a);
/* Whether this address may be named by this server: https, loopback, or the origin that the person named. -EPROTO
 * MCP_LOGIN_FAILED. */
int mcp_fetch_check(const struct mcp_fetch *f, const char *url, struct err *e) MUST_CHECK;
int mcp_fetch_get(const struct mcp_fetch *f, const char *url, struct http_answer *ret, struct err *e) MUST_CHECK;
/* authorization NULL: none. */
int mcp_fetch_post(const struct mcp_fetch *f, const char *url, const char *type, struct slice body,
                   const char *authorization, struct http_answer *ret, struct err *e) MUST_CHECK;
/* Appends "name=value" of a form or query; value NULL: nothing. */
void mcp_form_add(struct buf *form, const char *name, const char *value);

/* ---- oauth_discover.c ---- */

struct mcp_place {
    const char *resource;
    const char *scope; /* of the resource's metadata; NULL */
    struct mcp_issuer_metadata issuer;
    bool is_assumed; /* no metadata at all: the endpoints of 2025-03-26 */
};
/* challenge: the last one of the server. preferred: an issuer that is taken when the server names it; NULL. -EPROTO
 * MCP_LOGIN_FAILED, the errors of mcp_fetch_get(). */
int mcp_discover(const struct mcp_fetch *f, const struct mcp_challenge *challenge, const char *preferred,
                 struct mcp_place *ret, struct err *e) MUST_CHECK;

/* Metadata of an issuer that a person or the resource named. The same errors. */
int mcp_discover_issuer(const struct mcp_fetch *f, const char *issuer, struct mcp_issuer_metadata *ret,
                        struct err *e) MUST_CHECK;

/* ---- oauth_client.c: who we are ---- */

/* Fills client_id, client_secret, auth_method and redirect_uri of the grant: configured, of a metadata document, kept
 * from `old`, or registered now. redirect_uri NULL: for a machine. */
int mcp_client_identify(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_place *place,
                        const struct mcp_grant *old, const char *redirect_uri, struct mcp_grant *grant,
                        struct err *e) MUST_CHECK;
/* How a client with this secret (NULL: none) says who it is; registered: what its registration says, or 0. */
int64_t mcp_client_method(const struct mcp_issuer_metadata *m, const char *secret, unsigned registered);

/* ---- oauth_token.c ---- */

/* Sends the form (ended by client and resource here) to the token endpoint; fills tokens, scope and expiry of the
 * grant. -EACCES MCP_LOGIN_DENIED: the authorization server refuses; otherwise -EPROTO MCP_LOGIN_FAILED and the errors
 * of http_call(). */
int mcp_token_request(const struct mcp_fetch *f, struct buf *form, struct mcp_grant *grant, struct err *e) MUST_CHECK;
/* The same request; the answer's body is the caller's to read. */
int mcp_token_post(const struct mcp_fetch *f, struct buf *form, const struct mcp_grant *grant, struct slice *ret_body,
                   struct err *e) MUST_CHECK;
/* Best effort. */
void mcp_token_revoke(const struct mcp_fetch *f, const struct mcp_grant *grant);

/* ---- oauth_renew.c: tokens without a person ---- */

/* Discovers the place, and begins a grant of it with who we are there. */
int mcp_grant_begin(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_challenge *wanted,
                    const struct mcp_grant *old, const char *redirect_uri, struct mcp_place *place,
                    struct mcp_grant *ret, struct err *e) MUST_CHECK;
/* Takes and keeps a new token with the refresh token; -EACCES: it is of no use any more, and forgotten. */
int mcp_renew_refresh(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, struct mcp_grant *grant,
                      struct err *e) MUST_CHECK;
/* Takes and keeps a token of client credentials (OAuth 2.1 section 4.2). */
int mcp_renew_machine(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                      const struct mcp_challenge *wanted, const struct mcp_grant *old, struct err *e) MUST_CHECK;

/* ---- oauth_enterprise.c: the identity provider ---- */

/* Its address is the person's, so it has its own mcp_fetch. */
struct mcp_fetch mcp_identity_fetch(const struct mcp_fetch *f, const struct mcp_oauth_target *t);
/* Its metadata, and a grant for a login there. f: of mcp_identity_fetch(). */
int mcp_identity_begin(const struct mcp_fetch *f, const struct mcp_oauth_target *t, struct mcp_issuer_metadata *ret_m,
                       struct mcp_grant *ret, struct err *e) MUST_CHECK;
/* Takes the id token into the identity, if it is of this provider, for this client, of this nonce (NULL: any), and of
 * the same person as before. -EPROTO MCP_LOGIN_FAILED. */
int mcp_identity_take(struct arena *a, const char *id_token, const char *nonce, struct mcp_grant *identity,
                      struct err *e) MUST_CHECK;
/* Keeps the identity, without a token of the authorization server. Waits for `busy`. */
int mcp_identity_keep(struct mcp_oauth_entry *entry, const struct mcp_oauth_target *t, const struct mcp_grant *identity,
                      struct err *e) MUST_CHECK;
/* Exchanges the identity of `old` for an ID-JAG, and that for a token, which is kept. -EACCES MCP_LOGIN_REQUIRED: a
 * person has to log in at the identity provider. */
int mcp_renew_enterprise(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                         const struct mcp_challenge *wanted, const struct mcp_grant *old, struct err *e) MUST_CHECK;

/* ---- oauth_store.c ---- */

/* Finds or makes the entry, with this target; t NULL: as it is. Loads what is stored. The caller is a user of it until
 * mcp_entry_release(). -EDQUOT TOO_MANY_SERVERS: all places have users. */
int mcp_entry_of(struct mcp_oauth *o, const char *server, const struct mcp_oauth_target *t,
                 struct mcp_oauth_entry **ret, struct err *e) MUST_CHECK;
void mcp_entry_release(struct mcp_oauth_entry *entry); /* NULL: nothing */
/* Copies the grant; zeroed when there is none for the target's url. */
void mcp_entry_grant(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_grant *ret);
void mcp_entry_target(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_oauth_target *ret);
void mcp_entry_wanted(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_challenge *ret);
void mcp_entry_want(struct mcp_oauth_entry *entry, const struct mcp_challenge *wanted); /* NULL: nothing any more */
/* Keeps and stores it. */
int mcp_entry_keep(struct mcp_oauth_entry *entry, const struct mcp_grant *grant, struct err *e) MUST_CHECK;
void mcp_entry_free(struct mcp_oauth_entry *entry);
/* The stored form, read from foreign bytes as everything else. */
int mcp_grant_read(struct arena *a, struct slice json, struct mcp_grant *ret, struct err *e) MUST_CHECK;
void mcp_grant_copy(struct arena *a, const struct mcp_grant *from, struct mcp_grant *ret);
void mcp_target_copy(struct arena *a, const struct mcp_oauth_target *from, struct mcp_oauth_target *ret);
void mcp_grant_write(struct buf *out, const struct mcp_grant *grant);
