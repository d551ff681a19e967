#include "mcp/oauth_wire.h"

#include "base/limits.h"
#include "mcp/oauth_jwt.h"
#include "mcp/oauth_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void challenges_are_read_however_they_are_written(void **state)
{
    static const struct {
        const char *text, *metadata, *scope, *error;
    } cases[] = {
        { "", "-", "-", "-" },
        { "Bearer", "-", "-", "-" },
        { "Bearer scope=\"a b\", resource_metadata=\"https://x/y\"", "https://x/y", "a b", "-" },
        { "bearer RESOURCE_METADATA = \"https://x/y\" , error=insufficient_scope", "https://x/y", "-",
          "insufficient_scope" },
        { "Basic realm=\"x, scope=\\\"no\\\"\", Bearer scope=\"yes\"", "-", "yes", "-" },
        { "Bearer scope=\"mine\", Basic scope=\"theirs\"", "-", "mine", "-" },
        { "Negotiate abc==, Bearer scope=x", "-", "x", "-" },
        { "Bearer scope=\"one\", scope=\"two\"", "-", "one", "-" },
        { "Bearer scope=\"not ended", "-", "not ended", "-" },
        { "Bearer scope=\"a\\\"b\\\\c\\", "-", "a\"b\\c\\", "-" },
        { ",,, \t Bearer ,, scope=a,,error=b", "-", "a", "b" },
        { "=\"x\" Bearer scope=a", "-", "a", "-" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_challenge c;

        mcp_challenge_read(a, cases[i].text, &c);
        assert_string_equal(or_dash(c.resource_metadata), cases[i].metadata);
        assert_string_equal(or_dash(c.scope), cases[i].scope);
        assert_string_equal(or_dash(c.error), cases[i].error);
    }
}

#define RESOURCE(members) "{\"authorization_servers\":[\"https://as.example\"]," members "}"

static void metadata_of_another_resource_is_refused(void **state)
{
    static const struct {
        const char *json;
        int r;
    } cases[] = {
        { RESOURCE("\"resource\":\"https://mcp.example/a/mcp\""), 0 },
        { RESOURCE("\"resource\":\"https://mcp.example/a/mcp/\""), 0 },
        { RESOURCE("\"resource\":\"https://mcp.example\""), 0 },
        { RESOURCE("\"resource\":\"https://mcp.example:443/a\""), 0 },
        { RESOURCE("\"resource\":\"https://MCP.example/a\""), 0 },
        { RESOURCE("\"resource\":\"https://mcp.example/a/m\""), -EPROTO },
        { RESOURCE("\"resource\":\"https://mcp.example/a/mcp/more\""), -EPROTO },
        { RESOURCE("\"resource\":\"http://mcp.example/a/mcp\""), -EPROTO },
        { RESOURCE("\"resource\":\"https://mcp.example:8443/a/mcp\""), -EPROTO },
        { RESOURCE("\"resource\":\"https://mcp.example.evil.example/a/mcp\""), -EPROTO },
        { RESOURCE("\"resource\":\"https://evil.example/a/mcp\""), -EPROTO },
        { RESOURCE("\"resource\":7"), -EPROTO },
        { "{\"resource\":\"https://mcp.example\"}", -EPROTO },
        { "{\"resource\":\"https://mcp.example\",\"authorization_servers\":[7,\"file:///x\",\"https://as?q\"]}",
          -EPROTO },
        { "[]", -EPROTO },
        { "no JSON", -EPROTO },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_resource_metadata m;
        struct err e = { 0 };

        assert_int_equal(mcp_resource_read(a, slice_of(cases[i].json), "https://mcp.example/a/mcp?x=1", &m, &e),
                         cases[i].r);
        assert_string_equal(e.code, cases[i].r ? "MCP_LOGIN_FAILED" : "");
    }
}

static void no_more_issuers_are_read_than_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_resource_metadata m;
    struct buf json;

    buf_init(&json, 4096);
    buf_add_str(&json, "{\"resource\":\"https://mcp.example\",\"authorization_servers\":[\"https://as.example/0\"");
    for (int i = 1; i <= LIMIT_MCP_ISSUERS; i++)
        buf_printf(&json, ",\"https://as.example/%d\"", i);
    buf_add_str(&json, "],\"scopes_supported\":[\"a\",\"b c\",7,\"d\"]}");
    assert_int_equal(mcp_resource_read(a, buf_slice(&json), "https://mcp.example/", &m, NULL), 0);
    assert_int_equal(m.n_issuers, LIMIT_MCP_ISSUERS);
    assert_string_equal(m.scope, "a d");
    buf_clear(&json);
}

static void metadata_of_another_issuer_is_refused(void **state)
{
    static const struct {
        const char *json;
        int r;
    } cases[] = {
        { "{\"issuer\":\"https://as.example/t\",\"token_endpoint\":\"https://as.example/token\"}", 0 },
        { "{\"issuer\":\"https://as.example/t/\",\"token_endpoint\":\"https://as.example/token\"}", 0 },
        { "{\"issuer\":\"https://as.example\",\"token_endpoint\":\"https://as.example/token\"}", -EPROTO },
        { "{\"issuer\":\"https://AS.example/t\",\"token_endpoint\":\"https://as.example/token\"}", -EPROTO },
        { "{\"token_endpoint\":\"https://as.example/token\"}", -EPROTO },
        { "{\"issuer\":\"https://as.example/t\",\"token_endpoint\":\"javascript:alert(1)\"}", -EPROTO },
        { "{\"issuer\":\"https://as.example/t\"}", -EPROTO },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_issuer_metadata m;

        assert_int_equal(mcp_issuer_read(a, slice_of(cases[i].json), "https://as.example/t", &m, NULL), cases[i].r);
    }
}

static void tokens_that_cannot_be_a_header_are_refused(void **state)
{
    static const struct {
        const char *json;
        int r;
    } cases[] = {
        { "{\"access_token\":\"abc\",\"token_type\":\"bearer\",\"expires_in\":3600}", 0 },
        { "{\"access_token\":\"abc\",\"expires_in\":1e300,\"refresh_token\":\"\"}", 0 },
        { "{\"access_token\":\"abc\",\"token_type\":\"DPoP\"}", -EPROTO },
        { "{\"access_token\":\"a b\"}", -EPROTO },
        { "{\"access_token\":\"a\\r\\nX: y\"}", -EPROTO },
        { "{\"access_token\":\"\"}", -EPROTO },
        { "{\"access_token\":\"abc\",\"refresh_token\":\"\\u0001\"}", -EPROTO },
        { "{}", -EPROTO },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_tokens tokens;

        assert_int_equal(mcp_tokens_read(a, slice_of(cases[i].json), &tokens, NULL), cases[i].r);
    }
}

static void a_token_of_the_limit_is_the_longest(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *text = arena_alloc(a, LIMIT_MCP_TOKEN_BYTES + 2);

    memset(text, 'x', LIMIT_MCP_TOKEN_BYTES);
    for (int i = 0; i < 2; i++) {
        const char *json = arena_printf(a, "{\"access_token\":\"%s\"}", text);
        struct mcp_tokens tokens;

        assert_int_equal(mcp_tokens_read(a, slice_of(json), &tokens, NULL), i == 0 ? 0 : -EPROTO);
        text[LIMIT_MCP_TOKEN_BYTES] = 'x';
    }
}

static char *repeated(struct arena *a, char c, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

static void a_client_of_the_limit_is_the_longest(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *fits = repeated(a, 'x', LIMIT_MCP_CLIENT_BYTES), *longer = repeated(a, 'x', LIMIT_MCP_CLIENT_BYTES + 1);
    const struct {
        const char *id, *secret;
        int r;
    } cases[] = { { fits, fits, 0 }, { longer, "s", -EPROTO }, { "c", longer, -EPROTO } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *json =
            arena_printf(a, "{\"client_id\":\"%s\",\"client_secret\":\"%s\"}", cases[i].id, cases[i].secret);
        struct mcp_registration read = { 0 };
        struct err e = { 0 };

        assert_int_equal(mcp_registration_read(a, slice_of(json), &read, &e), cases[i].r);
        assert_string_equal(e.code, cases[i].r ? "MCP_LOGIN_FAILED" : "");
        assert_int_equal(read.client_id != NULL, cases[i].r == 0); /* nothing of a refused one */
    }
}

static void an_answer_of_the_limit_is_the_longest(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *begin = "{\"access_token\":\"abc\"}";

    for (size_t n = LIMIT_MCP_OAUTH_REPLY; n <= LIMIT_MCP_OAUTH_REPLY + 1; n++) {
        const char *json = arena_printf(a, "%s%s", begin, repeated(a, ' ', n - strlen(begin)));
        struct mcp_tokens tokens = { 0 };

        assert_int_equal(mcp_tokens_read(a, slice_of(json), &tokens, NULL), n == LIMIT_MCP_OAUTH_REPLY ? 0 : -EPROTO);
        assert_int_equal(tokens.access_token != NULL, n == LIMIT_MCP_OAUTH_REPLY);
    }
}

static const char *scope_of_tokens(struct arena *a, const char *scope)
{
    const char *json = arena_printf(a, "{\"access_token\":\"abc\",\"scope\":\"%s\"}", scope);
    struct mcp_tokens tokens;

    assert_int_equal(mcp_tokens_read(a, slice_of(json), &tokens, NULL), 0);
    return tokens.scope;
}

static const char *scope_of_resource(struct arena *a, const char *list)
{
    const char *json = arena_printf(
        a, "{\"resource\":\"https://x\",\"authorization_servers\":[\"https://y\"],\"scopes_supported\":[%s]}", list);
    struct mcp_resource_metadata m;

    assert_int_equal(mcp_resource_read(a, slice_of(json), "https://x", &m, NULL), 0);
    return m.scope;
}

/* Whole words only: a scope that is cut within a word would ask for something else. */
static void a_scope_of_the_limit_is_the_longest(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *fits = repeated(a, 'x', LIMIT_MCP_SCOPE_BYTES), *longer = repeated(a, 'x', LIMIT_MCP_SCOPE_BYTES + 1),
               *rest = repeated(a, 'y', LIMIT_MCP_SCOPE_BYTES - 2);
    const char *both = arena_printf(a, "a %s", rest), *too_many = arena_printf(a, "b %sy c", rest);

    assert_string_equal(scope_of_tokens(a, fits), fits);
    assert_null(scope_of_tokens(a, longer));
    assert_string_equal(scope_of_resource(a, arena_printf(a, "\"%s\"", fits)), fits);
    assert_string_equal(scope_of_resource(a, arena_printf(a, "\"%s\",\"z\"", longer)), "z");
    assert_string_equal(scope_of_resource(a, arena_printf(a, "\"a\",\"%s\",\"z\"", rest)), both);
    assert_string_equal(scope_of_resource(a, arena_printf(a, "\"b\",\"%sy\",\"c\"", rest)), "b c");
    assert_string_equal(mcp_scope_union(a, fits, "z"), fits);
    assert_string_equal(mcp_scope_union(a, longer, "z"), "z");
    assert_string_equal(mcp_scope_union(a, "a", rest), both);
    assert_string_equal(mcp_scope_union(a, both, "z"), both);
    assert_string_equal(mcp_scope_union(a, too_many, "d"), "b d"); /* `c` begins beyond the limit */
}

static const char *joined(struct arena *a, const struct mcp_places *places)
{
    const char *text = "";

    for (size_t i = 0; i < places->n; i++)
        text = arena_printf(a, "%s%s ", text, places->urls[i]);
    return text;
}

static void metadata_is_looked_for_at_the_well_known_places_in_order(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_places places;

    assert_int_equal(mcp_resource_places(a, "https://mcp.example/a/mcp?x=1", &places, NULL), 0);
    assert_string_equal(joined(a, &places), "https://mcp.example/.well-known/oauth-protected-resource/a/mcp "
                                            "https://mcp.example/.well-known/oauth-protected-resource ");
    assert_int_equal(mcp_resource_places(a, "http://localhost:81", &places, NULL), 0);
    assert_string_equal(joined(a, &places), "http://localhost:81/.well-known/oauth-protected-resource ");
    assert_int_equal(mcp_issuer_places(a, "https://as.example/t1/", &places, NULL), 0);
    assert_string_equal(joined(a, &places), "https://as.example/.well-known/oauth-authorization-server/t1 "
                                            "https://as.example/.well-known/openid-configuration/t1 "
                                            "https://as.example/t1/.well-known/openid-configuration ");
    assert_int_equal(mcp_issuer_places(a, "https://[::1]:8443", &places, NULL), 0);
    assert_string_equal(joined(a, &places), "https://[::1]:8443/.well-known/oauth-authorization-server "
                                            "https://[::1]:8443/.well-known/openid-configuration ");
}

static void scopes_are_joined_each_once(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_string_equal(mcp_scope_union(a, "a b", "b  c a"), "a b c");
    assert_string_equal(mcp_scope_union(a, NULL, "x \"y\" z"), "x z");
    assert_null(mcp_scope_union(a, NULL, NULL));
    assert_null(mcp_scope_union(a, "", "  "));
}

static void a_login_is_stored_and_read_as_it_was(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_grant grant = { .url = "https://mcp.example/",
                                     .issuer = "https://as.example",
                                     .client_id = "id",
                                     .auth_method = MCP_AUTH_POST,
                                     .access_token = "token",
                                     .scope = "a b",
                                     .expires_ms = INT64_C(1) << 41 };
    struct mcp_grant read;
    struct buf json;

    buf_init(&json, 4096);
    mcp_grant_write(&json, &grant);
    assert_int_equal(mcp_grant_read(a, buf_slice(&json), &read, NULL), 0);
    assert_string_equal(read.url, grant.url);
    assert_string_equal(read.issuer, grant.issuer);
    assert_string_equal(read.access_token, grant.access_token);
    assert_int_equal(read.expires_ms, grant.expires_ms);
    assert_int_equal(read.auth_method, MCP_AUTH_POST);
    assert_null(read.refresh_token);
    buf_clear(&json);
}

/* A token of n bytes, signed by nobody. */
static const char *jwt_of_size(struct arena *a, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, 'A', n);
    memcpy(text, "eyJhbGciOiJSUzI1NiJ9.e30.", 25); /* {"alg":"RS256"} and {} */
    return text;
}

static void a_jwt_is_read_up_to_its_largest_size(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_jwt jwt;

    assert_int_equal(mcp_jwt_read(a, "It", jwt_of_size(a, LIMIT_MCP_TOKEN_BYTES), &jwt, NULL), 0);
    assert_int_equal(mcp_jwt_read(a, "It", jwt_of_size(a, LIMIT_MCP_TOKEN_BYTES + 1), &jwt, NULL), -EPROTO);
}

static void what_is_no_signed_jwt_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        ".",
        "..",
        "...",
        "e30",
        "e30.e30",
        "e30.e30.",
        "e30.e30.c2ln", /* no `alg` */
        "eyJhbGciOiJSUzI1NiJ9.e30.",
        "eyJhbGciOiJSUzI1NiJ9.e30.c2ln.c2ln",
        "eyJhbGciOiJSUzI1NiJ9.W10.c2ln",
        "eyJhbGciOiJub25lIn0.e30.c2ln",
        "eyJhbGciOjF9.e30.c2ln",
        "eyJhbGciOiJSUzI1NiJ9.e3.c2ln",
        "a.b.c.d.e",
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_jwt jwt;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (mcp_jwt_read(a, "It", wrong[i], &jwt, NULL) != -EPROTO)
            fail_msg("%s", wrong[i]);
}

static void an_exchanged_token_has_its_type_and_its_largest_size(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *token = NULL;

    for (size_t n = LIMIT_MCP_TOKEN_BYTES; n <= LIMIT_MCP_TOKEN_BYTES + 1; n++) {
        const char *json =
            arena_printf(a, "{\"issued_token_type\":\"%s\",\"token_type\":\"n_a\",\"access_token\":\"%s\"}",
                         MCP_TYPE_ID_JAG, jwt_of_size(a, n));

        assert_int_equal(mcp_exchange_read(a, slice_of(json), &token, NULL), n == LIMIT_MCP_TOKEN_BYTES ? 0 : -EPROTO);
    }
    assert_int_equal(strlen(token), LIMIT_MCP_TOKEN_BYTES);
    assert_int_equal(mcp_exchange_read(a, SLICE_LIT("[]"), &token, NULL), -EPROTO);
    assert_int_equal(mcp_exchange_read(a,
                                       SLICE_LIT("{\"issued_token_type\":\"" MCP_TYPE_ID_JAG
                                                 "\",\"token_type\":\"N_A\",\"access_token\":\"a b\"}"),
                                       &token, NULL),
                     -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(challenges_are_read_however_they_are_written),
        cmocka_unit_test(metadata_of_another_resource_is_refused),
        cmocka_unit_test(no_more_issuers_are_read_than_the_limit),
        cmocka_unit_test(metadata_of_another_issuer_is_refused),
        cmocka_unit_test(tokens_that_cannot_be_a_header_are_refused),
        cmocka_unit_test(a_token_of_the_limit_is_the_longest),
        cmocka_unit_test(a_client_of_the_limit_is_the_longest),
        cmocka_unit_test(an_answer_of_the_limit_is_the_longest),
        cmocka_unit_test(a_scope_of_the_limit_is_the_longest),
        cmocka_unit_test(metadata_is_looked_for_at_the_well_known_places_in_order),
        cmocka_unit_test(scopes_are_joined_each_once),
        cmocka_unit_test(a_login_is_stored_and_read_as_it_was),
        cmocka_unit_test(a_jwt_is_read_up_to_its_largest_size),
        cmocka_unit_test(what_is_no_signed_jwt_is_refused),
        cmocka_unit_test(an_exchanged_token_has_its_type_and_its_largest_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
