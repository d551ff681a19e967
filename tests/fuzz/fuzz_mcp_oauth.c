/* What OAuth's servers send: the first byte chooses the reader. What is accepted keeps its limits. */
#include "mcp/oauth_wire.h"

#include "mcp/oauth_jwt.h"
#include "mcp/oauth_key.h"

#include "base/limits.h"

#include <assert.h>
#include <string.h>

static void check_header_text(const char *text, size_t max)
{
    assert(*text && strlen(text) <= max);
    assert(text[strcspn(text, "\r\n")] == '\0');
}

static void read_challenge(struct arena *a, struct slice text)
{
    struct mcp_challenge c;

    mcp_challenge_read(a, arena_slicedup(a, text), &c);
    assert(!c.scope || strlen(c.scope) <= text.n);
    (void)mcp_scope_union(a, c.scope, c.error);
}

static void read_resource(struct arena *a, struct slice json)
{
    struct mcp_resource_metadata m;
    struct mcp_places places;

    if (mcp_resource_read(a, json, "https://mcp.example/a/mcp", &m, NULL) < 0)
        return;
    assert(m.n_issuers > 0 && m.n_issuers <= LIMIT_MCP_ISSUERS);
    for (size_t i = 0; i < m.n_issuers; i++)
        assert(mcp_issuer_places(a, m.issuers[i], &places, NULL) < 0 || places.n <= MCP_PLACES);
}

static void read_issuer(struct arena *a, struct slice json)
{
    struct mcp_issuer_metadata m;

    if (mcp_issuer_read(a, json, "https://as.example", &m, NULL) == 0)
        assert(m.token_endpoint && strncasecmp(m.token_endpoint, "http", 4) == 0);
}

static void read_registration(struct arena *a, struct slice json)
{
    struct mcp_registration registration;

    if (mcp_registration_read(a, json, &registration, NULL) == 0)
        check_header_text(registration.client_id, LIMIT_MCP_CLIENT_BYTES);
}

static void read_tokens(struct arena *a, struct slice json)
{
    struct mcp_oauth_error error;
    struct mcp_tokens tokens;

    if (mcp_tokens_read(a, json, &tokens, NULL) == 0) {
        check_header_text(tokens.access_token, LIMIT_MCP_TOKEN_BYTES);
        assert(tokens.expires_in_s >= 0);
    }
    mcp_oauth_error_read(a, json, &error);
}

static void read_exchange(struct arena *a, struct slice json)
{
    const char *token = NULL;

    if (mcp_exchange_read(a, json, &token, NULL) == 0)
        check_header_text(token, LIMIT_MCP_TOKEN_BYTES);
}

static void read_jwt(struct arena *a, struct slice text)
{
    struct mcp_jwt jwt;

    if (mcp_jwt_read(a, "It", arena_slicedup(a, text), &jwt, NULL) < 0)
        return;
    assert(jwt.type && jwt.issuer && jwt.subject && jwt.expires_s >= 0);
    assert(text.n <= LIMIT_MCP_TOKEN_BYTES || memchr(text.p, '\0', text.n));
    (void)mcp_jwt_holds(jwt.audience, "https://as.example");
    (void)mcp_jwt_holds(jwt.resource, "");
}

static void read_key(struct arena *a, struct slice text)
{
    int64_t alg = 0;

    if (!mcp_key_rule(arena_slicedup(a, text)))
        assert(mcp_key_choose(arena_slicedup(a, text), 0, &alg, NULL) == 0 && alg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct arena * a,
                                   struct slice text) = { read_challenge, read_resource, read_issuer, read_registration,
                                                          read_tokens,    read_exchange, read_jwt,    read_key };
    AUTO(arena_freep) struct arena *a = arena_new();

    if (size > 0)
        readers[data[0] % ARRAY_SIZE(readers)](a, (struct slice){ (const char *)data + 1, size - 1 });
    return 0;
}
