/* What OAuth's servers send, read: challenges, metadata, registrations, tokens; and the addresses where metadata lies.
 * Pure functions over foreign bytes; results lie in the arena. Private to mcp/oauth*.c.
 *
 *     mcp_challenge_read(arena, "Bearer scope=\"a b\"", &challenge);
 *     r = mcp_issuer_read(arena, body, "https://auth.example.org", &issuer, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* The challenge of the scheme Bearer (RFC 6750 section 3, RFC 9728 section 5.1); NULL: absent. */
struct mcp_challenge {
    const char *resource_metadata, *scope, *error;
};
/* text: values of WWW-Authenticate, joined by commas (RFC 9110 section 11.6.1). What is no challenge is skipped. */
void mcp_challenge_read(struct arena *a, const char *text, struct mcp_challenge *ret);

/* Metadata of a protected resource (RFC 9728). */
struct mcp_resource_metadata {
    const char *resource;
    const char **issuers; /* at most LIMIT_MCP_ISSUERS are read */
    size_t n_issuers;
    const char *scope; /* scopes_supported, joined by spaces; NULL: not said */
};
/* -EPROTO MCP_LOGIN_FAILED: no JSON object, no `authorization_servers`, or a `resource` that does not hold url: another
 * origin, or a path that is no beginning of url's. */
int mcp_resource_read(struct arena *a, struct slice json, const char *url, struct mcp_resource_metadata *ret,
                      struct err *e) MUST_CHECK;

enum { MCP_AUTH_NONE = 1, MCP_AUTH_BASIC = 2, MCP_AUTH_POST = 4, MCP_AUTH_KEY = 8 /* private_key_jwt */ };

/* Metadata of an authorization server (RFC 8414, OpenID Connect Discovery 1.0). */
struct mcp_issuer_metadata {
    const char *issuer, *authorization_endpoint, *token_endpoint, *registration_endpoint, *revocation_endpoint;
    unsigned auth_methods; /* of the token endpoint, as far as they are known here; 0: not said */
    unsigned signing_algs; /* for private_key_jwt there: MCP_ALG_ (oauth_key.h); 0: not said */
    bool has_s256, sends_iss, takes_documents, has_offline_access;
};
/* issuer: what the metadata must say of itself (a slash at the end does not count). -EPROTO MCP_LOGIN_FAILED: another
 * issuer, no endpoints. */
int mcp_issuer_read(struct arena *a, struct slice json, const char *issuer, struct mcp_issuer_metadata *ret,
                    struct err *e) MUST_CHECK;

struct mcp_registration {
    const char *client_id, *client_secret; /* client_secret NULL: a public client */
    unsigned auth_method;                  /* 0: not said, or unknown here */
    int64_t secret_expires_s;              /* 0: never */
};
int mcp_registration_read(struct arena *a, struct slice json, struct mcp_registration *ret, struct err *e) MUST_CHECK;

struct mcp_tokens {
    const char *access_token, *refresh_token, *scope; /* the last two may be NULL */
    const char *id_token;                             /* OpenID Connect Core section 3.1.3.3; NULL: none */
    int64_t expires_in_s;                             /* 0: not said */
};
/* -EPROTO MCP_LOGIN_FAILED: another type than Bearer, or a token that is not 1 to LIMIT_MCP_TOKEN_BYTES visible
 * characters. */
int mcp_tokens_read(struct arena *a, struct slice json, struct mcp_tokens *ret, struct err *e) MUST_CHECK;
/* The answer to a token exchange (RFC 8693 section 2.2.1) that asked for MCP_TYPE_ID_JAG. -EPROTO MCP_LOGIN_FAILED:
 * another type of token, which must go nowhere, or one that is not 1 to LIMIT_MCP_TOKEN_BYTES visible characters. */
#define MCP_TYPE_ID_JAG "urn:ietf:params:oauth:token-type:id-jag"
int mcp_exchange_read(struct arena *a, struct slice json, const char **ret_token, struct err *e) MUST_CHECK;

/* `error` and `error_description` of a refusal (RFC 6749 section 5.2), shown safely; NULL: absent. */
struct mcp_oauth_error {
    const char *error, *description;
};
void mcp_oauth_error_read(struct arena *a, struct slice json, struct mcp_oauth_error *ret);

/* Where metadata may lie, in the order of the specification. -EINVAL BAD_URL. */
enum { MCP_PLACES = 3 };
struct mcp_places {
    const char *urls[MCP_PLACES];
    size_t n;
};
int mcp_resource_places(struct arena *a, const char *url, struct mcp_places *ret, struct err *e) MUST_CHECK;
int mcp_issuer_places(struct arena *a, const char *issuer, struct mcp_places *ret, struct err *e) MUST_CHECK;
/* "https://host:port" of a URL. */
int mcp_origin(struct arena *a, const char *url, const char **ret, struct err *e) MUST_CHECK;
/* false also when one of them is no URL. */
bool mcp_is_same_origin(struct arena *a, const char *one, const char *other);
/* The words of both lists, each once. Both may be NULL; NULL when there are none. */
const char *mcp_scope_union(struct arena *a, const char *one, const char *other);
