/* Logins at remote MCP servers: OAuth 2.1 as MCP's specification of 2025-11-25 and 2026-07-28 describes it
 * (basic/authorization), as the client.
 *
 * From the server's challenge or its well-known addresses to the metadata of the protected resource (RFC 9728), from
 * there to the metadata of the authorization server (RFC 8414, OpenID Connect Discovery), a client id (configured, the
 * address of a metadata document, or registered, RFC 7591), a browser (PKCE S256, RFC 8707 `resource`), and from the
 * redirect (RFC 9207 `iss`) to tokens. A client that has no person, or a key instead of a secret, or an identity
 * provider takes the shorter ways of MCP's extensions oauth-client-credentials and enterprise-managed-authorization.
 * Tokens lie sealed in the store beside the server's definition, belong to one resource and one issuer, and are sent
 * nowhere else. Refreshed before they expire and after a 401.
 *
 * What a server names is hostile: every address that is not of the server's own origin goes through a guard (a server
 * of this machine may name this machine; any other server only public addresses and those that net.private_hosts
 * lists), must be https unless it is on loopback, is not redirected, and its answer is small.
 *
 * One object per process; any thread but the loop's; everything that talks to a server blocks.
 *
 *     r = mcp_oauth_authorizer(oauth, &target, &authorizer, e);                          for mcp_http_open()
 *     ... -EACCES MCP_LOGIN_REQUIRED from the link: a person logs in ...
 *     r = mcp_oauth_begin(oauth, &target, "http://127.0.0.1:7333/mcp/callback", &wait, a, &login, e);
 *     ... the browser opens login.url; the callback's query becomes `answer` ...
 *     r = mcp_oauth_finish(oauth, &answer, &wait, a, &server, e);
 */
#pragma once

#include "mcp/authorizer.h"

struct guard;
struct store;
struct mcp_oauth;

struct mcp_oauth_config {             /* all borrowed */
    struct store *store;              /* NULL: tokens live in memory only */
    const unsigned char *key;         /* SEAL_KEY_BYTES, for the tokens (identity/seal.h) */
    const struct guard *guard;        /* for what servers of this machine name; loopback is allowed */
    const struct guard *public_guard; /* for what other servers name */
};

struct mcp_oauth *mcp_oauth_new(const struct mcp_oauth_config *c) MUST_CHECK;
/* After every link with an authorizer of it has been closed. */
struct mcp_oauth *mcp_oauth_free(struct mcp_oauth *o);

enum mcp_oauth_way {
    MCP_OAUTH_PERSON,    /* logs in at the authorization server */
    MCP_OAUTH_MACHINE,   /* client credentials, without a person; needs client_id and client_secret or private_key */
    MCP_OAUTH_ENTERPRISE /* a person logs in at an identity provider, which vouches for them at the authorization server
                          * (MCP's extension enterprise-managed-authorization): id token, ID-JAG (RFC 8693), token */
};

/* One server, as a person configured it. Copied. */
struct mcp_oauth_target {
    const char *server;                    /* the name, under which tokens are kept */
    const char *url;                       /* of the MCP server */
    const char *client_id, *client_secret; /* registered by the person at the authorization server; NULL: not */
    const char *client_metadata_url;       /* https address of a client id metadata document of ours; NULL: none */
    const char *scope;                     /* asked for instead of what the server says; NULL */
    const char *private_key, *key_id;      /* PEM (mcp/oauth_key.h), signs instead of client_secret; NULL: none */
    enum mcp_oauth_way way;
    /* MCP_OAUTH_ENTERPRISE: the provider's issuer, and the client that it knows; the secret may be NULL */
    const char *identity_provider, *identity_client_id, *identity_client_secret;
};

/* The extension of MCP that describes the way; a constant; NULL: none, the specification itself. */
const char *mcp_oauth_extension(enum mcp_oauth_way way);

/* The login keeps its place until authorizer.release(), which the link calls. A login for another url than the target's
 * counts as none. -EDQUOT TOO_MANY_SERVERS: LIMIT_MCP_LOGIN_ENTRIES servers are in use. */
int mcp_oauth_authorizer(struct mcp_oauth *o, const struct mcp_oauth_target *t, struct mcp_authorizer *ret,
                         struct err *e) MUST_CHECK;

struct mcp_oauth_login {
    const char *url;   /* for the person's browser */
    const char *state; /* that the callback will name; 128 random bits or more */
    const char *host;  /* where the person logs in, to be shown */
};

/* Begins a login of a person, at the authorization server or at the identity provider: network, then a record of
 * LIMIT_MCP_LOGIN_MS. redirect_uri: on loopback, answered by this service, exactly what the browser will call. -EPROTO
 * MCP_LOGIN_FAILED says what the server or its authorization server did wrong, -EPERM ADDRESS_REFUSED, -EOPNOTSUPP
 * MCP_NO_LOGIN (the server knows no login), errors of http_call(). */
int mcp_oauth_begin(struct mcp_oauth *o, const struct mcp_oauth_target *t, const char *redirect_uri,
                    const struct net_wait *wait, struct arena *a, struct mcp_oauth_login *ret,
                    struct err *e) MUST_CHECK;

/* The members of the callback's query, decoded once; NULL: absent. */
struct mcp_oauth_answer {
    const char *state, *code, *iss, *error, *error_description;
};

/* Ends the login that the state names, once. *ret_server is filled as soon as the state is known, also on failure.
 * -ENOENT MCP_LOGIN_UNKNOWN: no such state, used, or expired; -EACCES MCP_LOGIN_DENIED: the authorization server says
 * so; -EPROTO MCP_LOGIN_FAILED, and among its reasons an issuer that is not the one that was asked. */
int mcp_oauth_finish(struct mcp_oauth *o, const struct mcp_oauth_answer *answer, const struct net_wait *wait,
                     struct arena *a, const char **ret_server, struct err *e) MUST_CHECK;

/* A login without a browser: of a machine (id_token NULL), or with the id token that the identity provider gave the
 * person. -EINVAL VALIDATION_ERROR: the server's way is another one; otherwise as mcp_oauth_finish(). */
int mcp_oauth_obtain(struct mcp_oauth *o, const struct mcp_oauth_target *t, const char *id_token,
                     const struct net_wait *wait, struct err *e) MUST_CHECK;

/* Logout: forgets the tokens, and revokes them (RFC 7009) where the servers that gave them offer it. The registration
 * of the client stays. */
int mcp_oauth_forget(struct mcp_oauth *o, const struct mcp_oauth_target *t, const struct net_wait *wait,
                     struct err *e) MUST_CHECK;

/* After the stored authorization was changed or deleted by others (a server that was removed or replaced): the next use
 * of the name reads it anew. */
void mcp_oauth_reload(struct mcp_oauth *o, const char *server);

enum mcp_oauth_state { MCP_OAUTH_NONE, MCP_OAUTH_WANTED /* the server asked for a login */, MCP_OAUTH_LOGGED_IN };
struct mcp_oauth_status {
    enum mcp_oauth_state state;
    const char *issuer, *scope; /* of the tokens; NULL: none */
    int64_t expires_ms;         /* clock_wall_ms(); 0: not said */
    bool can_refresh;
};
/* Without network; in the arena. */
int mcp_oauth_status(struct mcp_oauth *o, const char *server, struct arena *a, struct mcp_oauth_status *ret,
                     struct err *e) MUST_CHECK;
