/* What the files of OAuth share. Private to mcp/oauth*.c. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "mcp/oauth.h"
#include "mcp/oauth_wire.h"
#include "net/http_client.h"

#include <pthread.h>

enum { MCP_OAUTH_STEP_MS = 30000 /* for one request to an authorization server */ };

/* What is stored of one login; all texts in one arena; NULL: absent. */
struct mcp_grant {
    const char *url; /* of the MCP server that the tokens are for, as it was configured */
    const char *resource, *issuer, *token_endpoint, *revocation_endpoint;
    const char *client_id, *client_secret, *redirect_uri; /* redirect_uri: that the client is registered with */
    int64_t auth_method;                                  /* one of MCP_AUTH_ */
    int64_t secret_expires_s;                             /* since 1970; 0: never */
    const char *access_token, *refresh_token, *scope;
    int64_t expires_ms; /* clock_wall_ms(); 0: not said */
};

/* One server's login. Lives as long as its mcp_oauth. */
struct mcp_oauth_entry {
    struct mcp_oauth *oauth;
    struct mcp_oauth_entry *next;
    char *server;         /* owned */
    pthread_mutex_t busy; /* one thread at a time talks to the authorization server for it */
    /* the following under the lock of mcp_oauth */
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
    struct mcp_oauth_entry *entry;
    struct mcp_grant grant; /* without tokens */
    bool sends_iss;
    int64_t until_ms; /* clock_mono_ms() */
};

struct mcp_oauth {
    struct mcp_oauth_config config;
    pthread_mutex_t lock;
    struct mcp_oauth_entry *entries;
    struct mcp_oauth_waiting *waiting; /* the newest first */
};

/* ---- oauth_fetch.c: requests to what a server names ---- */

struct mcp_fetch {
    const struct mcp_oauth_config *config;
    const char *server_url; /* of the MCP server; decides which addresses may be named */
    const struct net_wait *wait;
    struct arena *arena;
};
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

/* ---- oauth_client.c: who we are ---- */

/* Fills client_id, client_secret, auth_method and redirect_uri of the grant: configured, of a metadata document, kept
 * from `old`, or registered now. redirect_uri NULL: for a machine. */
int mcp_client_identify(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_place *place,
                        const struct mcp_grant *old, const char *redirect_uri, struct mcp_grant *grant,
                        struct err *e) MUST_CHECK;

/* ---- oauth_token.c ---- */

/* Sends the form (ended by client and resource here) to the token endpoint; fills tokens, scope and expiry of the
 * grant. -EACCES MCP_LOGIN_DENIED: the authorization server refuses; otherwise -EPROTO MCP_LOGIN_FAILED and the errors
 * of http_call(). */
int mcp_token_request(const struct mcp_fetch *f, struct buf *form, struct mcp_grant *grant, struct err *e) MUST_CHECK;
/* Best effort. */
void mcp_token_revoke(const struct mcp_fetch *f, const struct mcp_grant *grant);

/* ---- oauth_store.c ---- */

/* Finds or makes the entry, with this target; t NULL: as it is. Loads what is stored. */
int mcp_entry_of(struct mcp_oauth *o, const char *server, const struct mcp_oauth_target *t,
                 struct mcp_oauth_entry **ret, struct err *e) MUST_CHECK;
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
void mcp_grant_write(struct buf *out, const struct mcp_grant *grant);
