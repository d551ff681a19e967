/* The private key of a client at an authorization server, and what is signed with it: the assertion of private_key_jwt
 * (RFC 7523 section 2.2; MCP's extension io.modelcontextprotocol/oauth-client-credentials). By OpenSSL's EVP.
 *
 * Keys are PEM without a passphrase: EC on P-256, or RSA of 2048 to LIMIT_MCP_RSA_BITS bits. Any thread.
 *
 *     r = mcp_key_choose(pem, offered, &alg, e);
 *     r = mcp_key_assert(arena, &(struct mcp_assertion){ pem, NULL, alg, "client-1", issuer, now_s }, &jwt, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Ways to sign (RFC 7518 section 3.1), as bits. */
enum { MCP_ALG_ES256 = 1, MCP_ALG_RS256 = 2, MCP_ALG_PS256 = 4, MCP_ALG_OTHER = 8 /* unknown here, `none` too */ };

/* Why the key cannot sign, as the end of a sentence that begins with its name; NULL: it can. */
const char *mcp_key_rule(const char *pem);
/* The way to sign that the key has and the server offers; offered 0: the server does not say. RS256 before PS256.
 * -EPROTO MCP_LOGIN_FAILED names what is offered and what the key has; -EINVAL VALIDATION_ERROR: it cannot sign. */
int mcp_key_choose(const char *pem, unsigned offered, int64_t *ret, struct err *e) MUST_CHECK;

struct mcp_assertion {
    const char *pem, *key_id; /* key_id NULL: the header has no `kid` */
    int64_t alg;              /* one of MCP_ALG_ */
    const char *client_id;    /* `iss` and `sub` */
    const char *audience;     /* the issuer that the metadata was checked for: nobody else may take it */
    int64_t now_s;            /* since 1970; valid for LIMIT_MCP_ASSERTION_S */
};
/* A JWT with a `jti` that no other one has. -EINVAL VALIDATION_ERROR: the key cannot sign this way. */
int mcp_key_assert(struct arena *a, const struct mcp_assertion *what, const char **ret, struct err *e) MUST_CHECK;
