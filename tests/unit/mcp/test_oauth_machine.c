/* A client with a key, and servers that want its assertions for others. */
#include "oauth_world.h"

/* The claims of the assertion in the line of this number. */
static struct mcp_jwt assertion_in(struct world *w)
{
    const char *at = strstr(w->forms, "&client_assertion=");
    struct mcp_jwt jwt = { 0 };

    assert_non_null(at);
    at += strlen("&client_assertion=");
    assert_int_equal(mcp_jwt_read(w->rig.a, "It", arena_strndup(w->rig.a, at, strcspn(at, "& \n")), &jwt, NULL), 0);
    return jwt;
}

static void a_machine_signs_for_the_issuer(void **state)
{
    struct mcp_jwt jwt;
    struct world w;

    world_open(&w, MCP_OAUTH_MACHINE);
    w.as_extra = ",\"token_endpoint_auth_methods_supported\":[\"private_key_jwt\"],"
                 "\"token_endpoint_auth_signing_alg_values_supported\":[\"RS256\",\"ES256\"]";
    assert_int_equal(refuse(&w, NULL, NULL), 0);
    assert_string_equal(value_of(&w), "Bearer t1");
    assert_non_null(strstr(w.forms, "/token/as - grant_type=client_credentials&resource=http%3A"));
    assert_non_null(strstr(w.forms, "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A"
                                    "jwt-bearer&client_assertion="));
    assert_null(strstr(w.forms, "client_id="));
    jwt = assertion_in(&w);
    assert_string_equal(jwt.issuer, "client");
    assert_string_equal(jwt.subject, "client");
    assert_true(mcp_jwt_holds(jwt.audience, rig_url(&w.rig, "/as")));
    assert_int_equal(json_type(jwt.audience), JSON_STRING);
    assert_true(jwt.expires_s > now_s() && jwt.expires_s <= now_s() + LIMIT_MCP_ASSERTION_S);
    world_close(&w);
}

static void nothing_is_signed_for_an_issuer_that_was_not_checked(void **state)
{
    static const struct {
        const char *issuer, *extra, *word;
    } cases[] = {
        { "https://honest.example/as", NULL, "another one" },
        { NULL, ",\"token_endpoint_auth_methods_supported\":[\"client_secret_basic\"]", "client_secret instead" },
        { NULL, ",\"token_endpoint_auth_signing_alg_values_supported\":[\"none\"]", "ES256" },
        { NULL, ",\"token_endpoint_auth_signing_alg_values_supported\":[\"RS256\",\"EdDSA\"]", "RSA key is needed" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;

        world_open(&w, MCP_OAUTH_MACHINE);
        w.as_issuer = cases[i].issuer;
        w.as_extra = cases[i].extra;
        check_failure(&w, -EPROTO, cases[i].word);
        assert_int_equal(w.n_as, 0);
        world_close(&w);
    }
}

static void a_token_endpoint_that_redirects_is_not_followed(void **state)
{
    const int statuses[] = { 302, 307, 308 };

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct world w;

        world_open(&w, MCP_OAUTH_MACHINE);
        w.as_status = statuses[i];
        check_failure(&w, -EPROTO, "gave no token");
        assert_int_equal(w.n_as, 1);
        assert_int_equal(w.n_other, 0);
        world_close(&w);
    }
}

static void a_key_that_the_server_does_not_know_any_more_is_named(void **state)
{
    struct err e = { 0 };
    struct world w;

    world_open(&w, MCP_OAUTH_MACHINE);
    w.as_status = 401;
    w.as_answer = "{\"error\":\"invalid_client\",\"error_description\":\"the key has expired\"}";
    assert_int_equal(log_in(&w, &e), -EACCES);
    assert_string_equal(e.code, "MCP_LOGIN_DENIED");
    assert_non_null(strstr(e.text, "the key has expired"));
    assert_non_null(strstr(e.text, "public key of private_key"));
    world_close(&w);
}

/* The revocation endpoint is named by the same metadata, and may be anybody's. */
static void an_assertion_goes_to_no_other_origin(void **state)
{
    for (int is_other = 0; is_other < 2; is_other++) {
        struct world w;

        world_open(&w, MCP_OAUTH_MACHINE);
        if (is_other)
            w.as_revocation = arena_printf(w.rig.a, "http://localhost:%u/revoke", w.rig.port);
        assert_int_equal(log_in(&w, NULL), 0);
        assert_int_equal(mcp_oauth_forget(w.oauth, &w.target, &w.wait, NULL), 0);
        assert_int_equal(w.n_as, is_other ? 1 : 2);
        assert_int_equal(strstr(w.forms, "/revoke - token=t1") != NULL, !is_other);
        assert_null(value_of(&w));
        world_close(&w);
    }
}

static void a_person_logs_in_with_the_key_of_the_client_too(void **state)
{
    struct mcp_oauth_login login;
    const char *server;
    struct world w;

    world_open(&w, MCP_OAUTH_MACHINE);
    w.target.way = MCP_OAUTH_PERSON;
    w.as_extra = ",\"code_challenge_methods_supported\":[\"S256\"]";
    w.as_answer = "{\"access_token\":\"t1\",\"refresh_token\":\"r1\"}";
    assert_int_equal(mcp_oauth_begin(w.oauth, &w.target, "http://127.0.0.1:1/c", &w.wait, w.rig.a, &login, NULL), 0);
    assert_int_equal(mcp_oauth_finish(w.oauth, &(struct mcp_oauth_answer){ .state = login.state, .code = "c" }, &w.wait,
                                      w.rig.a, &server, NULL),
                     0);
    assert_int_equal(refuse(&w, "Bearer t1", NULL), 0);
    assert_non_null(strstr(w.forms, "grant_type=refresh_token&refresh_token=r1&resource="));
    assert_int_equal(mcp_oauth_obtain(w.oauth, &w.target, NULL, &w.wait, NULL), -EINVAL);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_signs_for_the_issuer),
        cmocka_unit_test(nothing_is_signed_for_an_issuer_that_was_not_checked),
        cmocka_unit_test(a_token_endpoint_that_redirects_is_not_followed),
        cmocka_unit_test(a_key_that_the_server_does_not_know_any_more_is_named),
        cmocka_unit_test(an_assertion_goes_to_no_other_origin),
        cmocka_unit_test(a_person_logs_in_with_the_key_of_the_client_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
