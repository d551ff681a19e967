/* What a JSON Web Token (RFC 7519) says of itself, as far as a client has to know before it passes the token on: id
 * tokens and ID-JAGs. A pure function over foreign bytes. The signature is not verified: an id token comes from the
 * token endpoint itself (OpenID Connect Core section 3.1.3.7), and both are for servers that verify it. Private to
 * mcp/oauth*.c.
 *
 *     r = mcp_jwt_read(arena, "The id token", text, &jwt, e);
 *     if (r == 0 && !mcp_jwt_holds(jwt.aud, client_id))
 */
#pragma once

#include "base/err.h"
#include "base/json.h"

struct mcp_jwt {
    const char *type;                     /* `typ` of its header; "" when absent */
    const char *issuer, *subject;         /* "" when absent */
    const char *nonce, *client_id;        /* NULL: absent */
    struct json_value audience, resource; /* a text or a list of texts, or absent */
    int64_t expires_s;                    /* since 1970; 0: not said */
};

/* what: begins the sentence of the error. -EPROTO MCP_LOGIN_FAILED: no signed JWT (RFC 7515 section 7.1) of at most
 * LIMIT_MCP_TOKEN_BYTES, or one whose `alg` is none. */
int mcp_jwt_read(struct arena *a, const char *what, const char *text, struct mcp_jwt *ret, struct err *e) MUST_CHECK;
/* Whether the text or list has this text. */
bool mcp_jwt_holds(struct json_value texts, const char *text);
