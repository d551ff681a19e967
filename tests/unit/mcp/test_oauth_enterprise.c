/* An identity provider that vouches for a person, and tokens that are for somebody else. */
#include "oauth_world.h"

static void an_id_token_becomes_a_token_of_the_server(void **state)
{
    struct mcp_oauth_status status;
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    w.target.scope = "read";
    w.as_answer = "{\"access_token\":\"t1\",\"refresh_token\":\"not-kept\",\"expires_in\":5}";
    assert_int_equal(log_in(&w, NULL), 0);
    assert_string_equal(value_of(&w), "Bearer t1");
    assert_non_null(strstr(w.forms,
                           "/token/idp - grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
                           "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag&audience="));
    assert_non_null(strstr(w.forms, "%2Fmcp&scope=read&subject_token="));
    assert_non_null(strstr(w.forms, "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token"
                                    "&client_id=idp-client"));
    assert_non_null(strstr(w.forms, "/token/as Basic Y2xpZW50OnM= grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type"
                                    "%3Ajwt-bearer&assertion="));
    assert_int_equal(mcp_oauth_status(w.oauth, "one", w.rig.a, &status, NULL), 0);
    assert_true(status.state == MCP_OAUTH_LOGGED_IN && status.can_refresh);
    assert_int_equal(refuse(&w, "Bearer t1", NULL), 0);
    assert_int_equal(w.n_idp, 2);
    assert_null(strstr(w.forms, "not-kept"));
    world_close(&w);
}

static int begin(struct world *w, struct mcp_oauth_login *ret, struct err *e)
{
    return mcp_oauth_begin(w->oauth, &w->target, "http://127.0.0.1:1/c", &w->wait, w->rig.a, ret, e);
}

static int finish(struct world *w, const struct mcp_oauth_login *login, const char *iss, struct err *e)
{
    const char *server;

    return mcp_oauth_finish(w->oauth, &(struct mcp_oauth_answer){ .state = login->state, .code = "c", .iss = iss },
                            &w->wait, w->rig.a, &server, e);
}

static const char *nonce_in(struct world *w, const char *url)
{
    const char *at = strstr(url, "&nonce=");

    assert_non_null(at);
    at += strlen("&nonce=");
    return arena_strndup(w->rig.a, at, strcspn(at, "&"));
}

static void a_person_logs_in_at_the_identity_provider(void **state)
{
    struct mcp_oauth_login login;
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    w.idp_extra = ",\"scopes_supported\":[\"openid\",\"offline_access\"]";
    assert_int_equal(begin(&w, &login, NULL), 0);
    assert_non_null(strstr(login.url, "/authorize?response_type=code&client_id=idp-client&"));
    assert_non_null(strstr(login.url, "&code_challenge_method=S256&nonce="));
    assert_non_null(strstr(login.url, "&scope=openid%20offline_access"));
    assert_null(strstr(login.url, "resource="));
    w.id_token = id_token_of(&w, w.rig.a, arena_printf(w.rig.a, "\"nonce\":\"%s\",", nonce_in(&w, login.url)));
    assert_int_equal(finish(&w, &login, NULL, NULL), 0);
    assert_non_null(strstr(w.forms, "/token/idp - grant_type=authorization_code&code=c&redirect_uri="));
    assert_string_equal(value_of(&w), "Bearer t1");
    world_close(&w);
}

static void an_id_token_of_somebody_else_is_not_exchanged(void **state)
{
    static const struct {
        const char *header, *more, *word; /* header NULL: a signed one */
    } cases[] = {
        { NULL, "\"iss\":\"https://other.example\",", "another identity provider" },
        { NULL, "\"aud\":\"client\",", "another client" },
        { NULL, "\"aud\":[],", "another client" },
        { NULL, "\"exp\":1,", "expired" },
        { NULL, "\"exp\":\"never\",", "expired" },
        { NULL, "\"nonce\":\"of another login\",", "does not belong" },
        { NULL, "", "does not belong" },
        { "{\"alg\":\"none\"}", "", "not signed" },
        { "{\"alg\":\"NONE\"}", "", "not signed" },
        { "{}", "", "not signed" },
        { "[]", "", "no JSON Web Token" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_oauth_login login;
        struct err e = { 0 };
        struct world w;

        world_open(&w, MCP_OAUTH_ENTERPRISE);
        assert_int_equal(begin(&w, &login, NULL), 0);
        w.id_token = cases[i].header ? jwt_of(w.rig.a, cases[i].header, "{}") : id_token_of(&w, w.rig.a, cases[i].more);
        assert_int_equal(finish(&w, &login, NULL, &e), -EPROTO);
        if (!strstr(e.text, cases[i].word))
            fail_msg("\"%s\" is not in: %s", cases[i].word, e.text);
        assert_int_equal(w.n_idp, 1);
        assert_int_equal(w.n_as, 0);
        world_close(&w);
    }
}

static void an_id_jag_for_somebody_else_is_sent_to_nobody(void **state)
{
    static const struct {
        const char *types, *header, *claims, *word;
    } cases[] = {
        { "\"issued_token_type\":\"urn:ietf:params:oauth:token-type:access_token\",\"token_type\":\"Bearer\"", NULL,
          NULL, "another token than an ID-JAG" },
        { "\"issued_token_type\":\"" MCP_TYPE_ID_JAG "\",\"token_type\":\"Bearer\"", NULL, NULL, "another token" },
        { "\"token_type\":\"N_A\"", NULL, NULL, "another token" },
        { NULL, "{\"typ\":\"JWT\",\"alg\":\"ES256\"}", NULL, "another kind" },
        { NULL, "{\"typ\":\"oauth-id-jag+jwt\",\"alg\":\"none\"}", NULL, "not signed" },
        { NULL, NULL, "\"iss\":\"https://other.example\",", "another identity provider" },
        { NULL, NULL, "\"aud\":\"https://other.example\",", "another authorization server" },
        { NULL, NULL, "\"exp\":1,", "expired" },
        { NULL, NULL, "\"resource\":\"https://other.example/mcp\",", "another MCP server" },
        { NULL, NULL, "\"client_id\":\"other\",", "another client" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;

        world_open(&w, MCP_OAUTH_ENTERPRISE);
        w.exchange_types = cases[i].types;
        w.id_jag_header = cases[i].header;
        w.id_jag_claims = cases[i].claims;
        check_failure(&w, -EPROTO, cases[i].word);
        assert_int_equal(w.n_as, 0);
        world_close(&w);
    }
}

/* Whoever is named beside the authorization server could use it there. */
static void an_id_jag_is_for_one_authorization_server(void **state)
{
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    w.id_jag_claims = arena_printf(w.rig.a, "\"aud\":[\"%s\",\"https://other.example\"],", rig_url(&w.rig, "/as"));
    check_failure(&w, -EPROTO, "another authorization server");
    w.id_jag_claims = arena_printf(w.rig.a, "\"aud\":[\"%s\"],", rig_url(&w.rig, "/as"));
    assert_int_equal(log_in(&w, NULL), 0);
    world_close(&w);
}

static void an_identity_provider_is_not_mixed_up(void **state)
{
    struct mcp_oauth_login login;
    struct err e = { 0 };
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    assert_int_equal(begin(&w, &login, NULL), 0);
    assert_int_equal(finish(&w, &login, rig_url(&w.rig, "/as"), &e), -EPROTO); /* the other server's answer */
    assert_int_equal(w.n_idp, 0);
    w.idp_issuer = "https://honest.example";
    err_init(&e);
    assert_int_equal(begin(&w, &login, &e), -EPROTO);
    assert_non_null(strstr(e.text, "another one"));
    check_failure(&w, -EPROTO, "another one");
    w.idp_issuer = NULL;
    w.as_issuer = "https://honest.example/as"; /* the audience that a server would like */
    check_failure(&w, -EPROTO, "another one");
    assert_int_equal(w.n_idp + w.n_as, 0);
    world_close(&w);
}

/* Ends the id token that is kept. */
static void expire_identity(struct world *w)
{
    struct mcp_oauth_entry *entry = NULL;
    struct mcp_grant grant, identity;

    assert_int_equal(mcp_entry_of(w->oauth, "one", &w->target, &entry, NULL), 0);
    mcp_entry_grant(entry, w->rig.a, &grant);
    identity = *grant.identity;
    identity.expires_ms = 1;
    grant.identity = &identity;
    assert_int_equal(mcp_entry_keep(entry, &grant, NULL), 0);
}

static void log_in_by_browser(struct world *w)
{
    struct mcp_oauth_login login;

    assert_int_equal(begin(w, &login, NULL), 0);
    w->id_token = id_token_of(w, w->rig.a, arena_printf(w->rig.a, "\"nonce\":\"%s\",", nonce_in(w, login.url)));
    assert_int_equal(finish(w, &login, NULL, NULL), 0);
    w->id_token = NULL;
}

static void an_id_token_that_ended_is_replaced_while_the_provider_agrees(void **state)
{
    struct err e = { 0 };
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    log_in_by_browser(&w);
    expire_identity(&w);
    w.as_answer = "{\"access_token\":\"t2\"}";
    assert_int_equal(refuse(&w, "Bearer t1", NULL), 0);
    assert_string_equal(value_of(&w), "Bearer t2");
    assert_non_null(strstr(w.forms, "grant_type=refresh_token&refresh_token=idp-refresh&client_id=idp-client"));
    expire_identity(&w);
    w.id_token = id_token_of(&w, w.rig.a, "\"sub\":\"bob\",");
    assert_int_equal(refuse(&w, "Bearer t2", &e), -EPROTO);
    assert_non_null(strstr(e.text, "not of the person"));
    w.idp_status = 400;
    err_init(&e);
    assert_int_equal(refuse(&w, "Bearer t2", &e), -EACCES);
    assert_string_equal(e.code, "MCP_LOGIN_REQUIRED");
    assert_non_null(strstr(e.text, "hearth mcp login one"));
    world_close(&w);
}

static void a_person_is_asked_for_when_only_a_person_can_go_on(void **state)
{
    struct err e = { 0 };
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    assert_int_equal(refuse(&w, NULL, &e), -EACCES); /* nobody logged in yet */
    assert_string_equal(e.code, "MCP_LOGIN_REQUIRED");
    assert_int_equal(log_in(&w, NULL), 0);
    expire_identity(&w); /* a given id token has no refresh token */
    err_init(&e);
    assert_int_equal(refuse(&w, "Bearer t1", &e), -EACCES);
    assert_string_equal(e.code, "MCP_LOGIN_REQUIRED");
    assert_int_equal(log_in(&w, NULL), 0);
    w.target.identity_client_id = "another"; /* configured anew: the identity is not of this client */
    assert_int_equal(refuse(&w, "Bearer t1", NULL), -EACCES);
    world_close(&w);
}

static void a_policy_that_says_no_is_told(void **state)
{
    struct err e = { 0 };
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    w.idp_status = 403;
    assert_int_equal(log_in(&w, &e), -EACCES);
    assert_string_equal(e.code, "MCP_LOGIN_DENIED");
    assert_non_null(strstr(e.text, "/idp gave no token (HTTP status 403, invalid_grant)"));
    assert_int_equal(w.n_as, 0);
    world_close(&w);
}

static void a_logout_revokes_at_both_servers(void **state)
{
    struct world w;

    world_open(&w, MCP_OAUTH_ENTERPRISE);
    log_in_by_browser(&w);
    assert_int_equal(mcp_oauth_forget(w.oauth, &w.target, &w.wait, NULL), 0);
    assert_non_null(strstr(w.forms, "/revoke Basic Y2xpZW50OnM= token=t1&"));
    assert_non_null(strstr(w.forms, "/revoke - token=idp-refresh&token_type_hint=refresh_token&client_id=idp-client"));
    assert_int_equal(refuse(&w, NULL, NULL), -EACCES);
    world_close(&w);
}

static void what_is_kept_of_an_identity_is_read_back(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_grant identity = {
        .url = "https://idp.example", .id_token = "i", .subject = "ann", .expires_ms = 7
    };
    const struct mcp_grant grant = {
        .url = "https://x/mcp", .access_token = "t", .signing_alg = 1, .identity = &identity
    };
    struct mcp_grant got, copied;
    struct buf out;

    buf_init(&out, KIB(4));
    mcp_grant_write(&out, &grant);
    assert_int_equal(mcp_grant_read(a, buf_slice(&out), &got, NULL), 0);
    buf_clear(&out);
    mcp_grant_copy(a, &got, &copied);
    assert_string_equal(copied.access_token, "t");
    assert_int_equal(copied.signing_alg, 1);
    assert_string_equal(copied.identity->id_token, "i");
    assert_string_equal(copied.identity->subject, "ann");
    assert_int_equal(copied.identity->expires_ms, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_token_becomes_a_token_of_the_server),
        cmocka_unit_test(a_person_logs_in_at_the_identity_provider),
        cmocka_unit_test(an_id_token_of_somebody_else_is_not_exchanged),
        cmocka_unit_test(an_id_jag_for_somebody_else_is_sent_to_nobody),
        cmocka_unit_test(an_id_jag_is_for_one_authorization_server),
        cmocka_unit_test(an_identity_provider_is_not_mixed_up),
        cmocka_unit_test(an_id_token_that_ended_is_replaced_while_the_provider_agrees),
        cmocka_unit_test(a_person_is_asked_for_when_only_a_person_can_go_on),
        cmocka_unit_test(a_policy_that_says_no_is_told),
        cmocka_unit_test(a_logout_revokes_at_both_servers),
        cmocka_unit_test(what_is_kept_of_an_identity_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
