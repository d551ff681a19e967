#include "mcp/oauth.h"

#include "../net/upstream.h"
#include "base/hash.h"
#include "mcp/oauth_private.h"
#include "net/guard.h"

/* A protected MCP server and its authorization server in one: /mcp, metadata, /register, /token, /revoke. */
struct world {
    struct rig rig;
    struct guard *guard;
    struct mcp_oauth *oauth;
    struct net_wait wait;
    const char *issuer_extra; /* more members of the issuer's metadata */
    const char *token_answer;
    int token_status;
    char forms[4096]; /* bodies of requests for tokens, one line each */
    atomic_int n_tokens, n_registrations;
};

static void say(struct http_exchange *x, int status, const char *body)
{
    x->response.status = status;
    buf_add_str(&x->response.body, body);
    http_exchange_send(x);
}

static void serve(void *arg, struct http_exchange *x)
{
    struct world *w = arg;
    const char *path = x->request.path, *origin = arena_printf(x->arena, "http://127.0.0.1:%u", w->rig.port);
    size_t n = strlen(w->forms);

    if (strcmp(path, "/.well-known/oauth-protected-resource/mcp") == 0)
        say(x, 200,
            arena_printf(
                x->arena,
                "{\"resource\":\"%s/mcp\",\"authorization_servers\":[\"%s/as\"],\"scopes_supported\":[\"read\"]}",
                origin, origin));
    else if (strcmp(path, "/.well-known/oauth-authorization-server/as") == 0)
        say(x, 200,
            arena_printf(
                x->arena,
                "{\"issuer\":\"%s/as\",\"authorization_endpoint\":\"%s/authorize\",\"token_endpoint\":\"%s/token\","
                "\"registration_endpoint\":\"%s/register\",\"revocation_endpoint\":\"%s/revoke\"%s}",
                origin, origin, origin, origin, origin, w->issuer_extra));
    else if (strcmp(path, "/register") == 0) {
        atomic_fetch_add(&w->n_registrations, 1);
        say(x, 201,
            "{\"client_id\":\"c 1\",\"client_secret\":\"s:1\",\"token_endpoint_auth_method\":\"client_secret_basic\"}");
    } else if (strcmp(path, "/token") == 0 || strcmp(path, "/revoke") == 0) {
        const char *authorization = http_header(&x->request, "authorization");

        snprintf(w->forms + n, sizeof(w->forms) - n, "%s %.*s\n", authorization ? authorization : "-",
                 (int)x->request.body.n, x->request.body.p);
        atomic_fetch_add(&w->n_tokens, 1);
        say(x, w->token_status, w->token_answer);
    } else
        say(x, 404, "");
}

#define S256 ",\"code_challenge_methods_supported\":[\"S256\"]"
#define SENDS_ISS S256 ",\"authorization_response_iss_parameter_supported\":true"

static void world_open(struct world *w, const char *issuer_extra)
{
    *w = (struct world){ .issuer_extra = issuer_extra,
                         .token_status = 200,
                         .token_answer = "{\"access_token\":\"t1\",\"refresh_token\":\"r1\",\"expires_in\":3600}",
                         .wait = net_wait_of(WAIT_MS, NULL, NULL) };
    assert_int_equal(hash_init(NULL), 0);
    rig_open(&w->rig, serve, w);
    w->guard = guard_new(&(struct guard_config){ 0 });
    w->oauth = mcp_oauth_new(&(struct mcp_oauth_config){ .guard = w->guard, .public_guard = w->guard });
}

static void world_close(struct world *w)
{
    mcp_oauth_free(w->oauth);
    guard_free(w->guard);
    rig_close(&w->rig);
}

static struct mcp_oauth_target target_of(struct world *w)
{
    return (struct mcp_oauth_target){ .server = "one", .url = rig_url(&w->rig, "/mcp") };
}

static int begin(struct world *w, struct mcp_oauth_login *ret, struct err *e)
{
    const struct mcp_oauth_target t = target_of(w);

    return mcp_oauth_begin(w->oauth, &t, "http://127.0.0.1:7333/callback", &w->wait, w->rig.a, ret, e);
}

static int finish(struct world *w, struct mcp_oauth_answer answer, struct err *e)
{
    const char *server = NULL;

    return mcp_oauth_finish(w->oauth, &answer, &w->wait, w->rig.a, &server, e);
}

static const char *value_of(struct world *w)
{
    const struct mcp_oauth_target t = target_of(w);
    struct mcp_authorizer by;
    const char *value = NULL;

    assert_int_equal(mcp_oauth_authorizer(w->oauth, &t, &by, NULL), 0);
    assert_int_equal(by.value(by.arg, &w->wait, w->rig.a, &value, NULL), 0);
    return value;
}

static int refuse(struct world *w, int status, const char *challenge, const char *used, struct err *e)
{
    const struct mcp_oauth_target t = target_of(w);
    struct mcp_authorizer by;

    assert_int_equal(mcp_oauth_authorizer(w->oauth, &t, &by, NULL), 0);
    return by.refused(by.arg, &(struct mcp_refusal){ status, challenge, used }, &w->wait, e);
}

static const char *issuer_of(struct world *w)
{
    return rig_url(&w->rig, "/as");
}

static void log_in(struct world *w)
{
    struct mcp_oauth_login login;

    assert_int_equal(begin(w, &login, NULL), 0);
    assert_int_equal(
        finish(w, (struct mcp_oauth_answer){ .state = login.state, .code = "co de", .iss = issuer_of(w) }, NULL), 0);
}

static void a_login_gives_a_token_for_this_server_only(void **state)
{
    struct mcp_oauth_login login;
    struct mcp_oauth_target other;
    struct mcp_authorizer by;
    const char *value = NULL;
    struct world w;

    world_open(&w, S256);
    assert_null(value_of(&w));
    assert_int_equal(refuse(&w, 401, "Bearer", NULL, NULL), -EACCES);
    assert_int_equal(begin(&w, &login, NULL), 0);
    assert_non_null(
        strstr(login.url, "/authorize?response_type=code&client_id=c%201&redirect_uri=http%3A%2F%2F127.0.0.1%3A7333"));
    assert_non_null(strstr(login.url, "&code_challenge_method=S256&resource=http%3A%2F%2F127.0.0.1%3A"));
    assert_non_null(strstr(login.url, "&scope=read"));
    assert_string_equal(login.host, "127.0.0.1");
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .state = login.state, .code = "co de" }, NULL), 0);
    assert_string_equal(value_of(&w), "Bearer t1");
    assert_non_null(strstr(w.forms, "Basic YyUyMDE6cyUzQTE= grant_type=authorization_code&code=co%20de&redirect_uri="));
    assert_non_null(strstr(w.forms, "&code_verifier="));
    other = target_of(&w);
    other.url = rig_url(&w.rig, "/other");
    assert_int_equal(mcp_oauth_authorizer(w.oauth, &other, &by, NULL), 0);
    assert_int_equal(by.value(by.arg, &w.wait, w.rig.a, &value, NULL), 0);
    assert_null(value);
    world_close(&w);
}

static void an_answer_of_another_issuer_sends_no_code(void **state)
{
    static const struct {
        const char *extra, *iss;
    } cases[] = { { S256, "https://evil.example" }, { SENDS_ISS, NULL }, { SENDS_ISS, "https://evil.example" } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_oauth_login login;
        struct err e = { 0 };
        struct world w;

        world_open(&w, cases[i].extra);
        assert_int_equal(begin(&w, &login, NULL), 0);
        assert_int_equal(finish(&w,
                                (struct mcp_oauth_answer){
                                    .state = login.state, .code = "c", .iss = cases[i].iss, .error = "shown_nowhere" },
                                &e),
                         -EPROTO);
        assert_non_null(strstr(e.text, "another authorization server"));
        assert_null(strstr(e.text, "shown_nowhere"));
        assert_int_equal(w.n_tokens, 0);
        world_close(&w);
    }
}

static void a_state_counts_once(void **state)
{
    struct mcp_oauth_login login;
    struct world w;

    world_open(&w, SENDS_ISS);
    assert_int_equal(begin(&w, &login, NULL), 0);
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .state = "unknown", .code = "c" }, NULL), -ENOENT);
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .code = "c" }, NULL), -ENOENT);
    assert_int_equal(finish(&w,
                            (struct mcp_oauth_answer){ .state = login.state,
                                                       .error = "access_denied",
                                                       .error_description = "no\x1b",
                                                       .iss = issuer_of(&w) },
                            NULL),
                     -EACCES);
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .state = login.state, .code = "c", .iss = issuer_of(&w) },
                            NULL),
                     -ENOENT);
    world_close(&w);
}

static void no_more_logins_wait_than_the_limit(void **state)
{
    struct mcp_oauth_login logins[LIMIT_MCP_LOGINS + 1];
    struct world w;

    world_open(&w, S256);
    for (size_t i = 0; i < ARRAY_SIZE(logins); i++)
        assert_int_equal(begin(&w, &logins[i], NULL), 0);
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .state = logins[0].state, .code = "c" }, NULL), -ENOENT);
    assert_int_equal(finish(&w, (struct mcp_oauth_answer){ .state = logins[1].state, .code = "c" }, NULL), 0);
    world_close(&w);
}

static void servers_that_nobody_uses_give_their_places_to_others(void **state)
{
    struct mcp_oauth_target t = { .url = "https://mcp.example/mcp" };
    struct mcp_oauth_status status = { .state = MCP_OAUTH_NONE };
    struct mcp_authorizer kept = { 0 }, by = { 0 };
    const char *value = NULL;
    struct world w;

    world_open(&w, S256);
    log_in(&w);
    t.server = "in use";
    assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &kept, NULL), 0);
    for (int i = 0; i < 3 * LIMIT_MCP_LOGIN_ENTRIES; i++) {
        t.server = arena_printf(w.rig.a, "s%d", i);
        assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &by, NULL), 0);
        by.release(by.arg);
        assert_int_equal(mcp_oauth_status(w.oauth, t.server, w.rig.a, &status, NULL), 0);
    }
    assert_int_equal(kept.value(kept.arg, &w.wait, w.rig.a, &value, NULL), 0); /* its place was not taken */
    kept.release(kept.arg);
    assert_int_equal(mcp_oauth_status(w.oauth, "one", w.rig.a, &status, NULL), 0);
    assert_int_equal(status.state, MCP_OAUTH_LOGGED_IN);
    world_close(&w);
}

static void so_many_servers_have_logins_and_no_more(void **state)
{
    struct mcp_oauth_target t = { .url = "https://mcp.example/mcp" };
    struct mcp_authorizer by = { 0 };
    struct mcp_oauth_login login;
    struct err e = { 0 };
    struct world w;

    world_open(&w, S256);
    for (int i = 0; i < LIMIT_MCP_LOGIN_ENTRIES; i++) {
        t.server = arena_printf(w.rig.a, "s%d", i);
        assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &by, NULL), 0);
    }
    by = (struct mcp_authorizer){ 0 };
    t.server = "more";
    assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &by, &e), -EDQUOT);
    assert_string_equal(e.code, "TOO_MANY_SERVERS");
    assert_non_null(strstr(e.text, "At most 256 MCP servers"));
    assert_null(by.value);
    assert_int_equal(begin(&w, &login, &e), -EDQUOT); /* the server "one" */
    t.server = "s0";
    assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &by, NULL), 0); /* those that are there go on */
    world_close(&w);
}

static void an_authorization_server_without_pkce_is_refused(void **state)
{
    struct mcp_oauth_login login;
    struct err e = { 0 };
    struct world w;

    world_open(&w, ",\"code_challenge_methods_supported\":[\"plain\"]");
    assert_int_equal(begin(&w, &login, &e), -EPROTO);
    assert_non_null(strstr(e.text, "S256"));
    world_close(&w);
}

static void what_a_server_names_goes_through_the_guard(void **state)
{
    static const struct {
        const char *challenge;
        int r;
        const char *code;
    } cases[] = {
        { "Bearer resource_metadata=\"https://10.0.0.1/x\"", -EPERM, "ADDRESS_REFUSED" },
        { "Bearer resource_metadata=\"https://169.254.169.254/x\"", -EPERM, "ADDRESS_REFUSED" },
        { "Bearer resource_metadata=\"http://mcp.example/x\"", -EPROTO, "MCP_LOGIN_FAILED" },
        { "Bearer resource_metadata=\"file:///etc/passwd\"", -EINVAL, "BAD_URL" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct mcp_oauth_login login;
        struct err e = { 0 };
        struct world w;

        world_open(&w, S256);
        assert_int_equal(refuse(&w, 401, cases[i].challenge, NULL, NULL), -EACCES);
        assert_int_equal(begin(&w, &login, &e), cases[i].r);
        assert_string_equal(e.code, cases[i].code);
        world_close(&w);
    }
}

/* The server is public: neither loopback nor the local network may be named. */
static void a_public_server_names_no_address_of_this_machine(void **state)
{
    struct guard *public_guard = guard_new(&(struct guard_config){ .is_public_only = true });
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_oauth_config c = { .public_guard = public_guard };
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    const struct mcp_fetch f = { .config = &c, .server_url = "https://mcp.example/mcp", .wait = &wait, .arena = a };
    struct http_answer answer;
    struct err e = { 0 };

    assert_int_equal(mcp_fetch_get(&f, "http://127.0.0.1:1/x", &answer, &e), -EPERM);
    assert_string_equal(e.code, "ADDRESS_REFUSED");
    assert_int_equal(mcp_fetch_check(&f, "https://as.example/x", NULL), 0);
    assert_int_equal(mcp_fetch_check(&f, "http://as.example/x", NULL), -EPROTO);
    guard_free(public_guard);
}

static void a_refused_token_is_refreshed_once_and_then_forgotten(void **state)
{
    struct world w;

    world_open(&w, S256);
    log_in(&w);
    w.token_answer = "{\"access_token\":\"t2\",\"expires_in\":3600}";
    assert_int_equal(refuse(&w, 401, "Bearer", "Bearer t1", NULL), 0);
    assert_string_equal(value_of(&w), "Bearer t2");
    assert_non_null(strstr(w.forms, "grant_type=refresh_token&refresh_token=r1&resource="));
    assert_int_equal(refuse(&w, 401, "Bearer", "Bearer t1", NULL), 0); /* late: the new token was not refused */
    assert_int_equal(w.n_tokens, 2);
    w.token_status = 400;
    w.token_answer = "{\"error\":\"invalid_grant\"}";
    assert_int_equal(refuse(&w, 401, "Bearer", "Bearer t2", NULL), -EACCES);
    assert_null(value_of(&w));
    world_close(&w);
}

static void a_token_is_refreshed_before_it_ends(void **state)
{
    struct world w;

    world_open(&w, S256);
    w.token_answer = "{\"access_token\":\"t1\",\"refresh_token\":\"r1\",\"expires_in\":5}";
    log_in(&w);
    w.token_answer = "{\"access_token\":\"t2\",\"refresh_token\":\"r2\",\"expires_in\":3600}";
    assert_string_equal(value_of(&w), "Bearer t2");
    assert_string_equal(value_of(&w), "Bearer t2");
    assert_int_equal(w.n_tokens, 2);
    world_close(&w);
}

static void more_scope_is_added_to_what_was_granted(void **state)
{
    struct mcp_oauth_login login;
    struct err e = { 0 };
    struct world w;

    world_open(&w, S256);
    log_in(&w);
    assert_int_equal(refuse(&w, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"", "Bearer t1", &e), -EACCES);
    assert_non_null(strstr(e.text, "write"));
    assert_int_equal(begin(&w, &login, NULL), 0);
    assert_non_null(strstr(login.url, "&scope=write%20read"));
    assert_int_equal(w.n_registrations, 1); /* the registration is used again */
    world_close(&w);
}

static void a_logout_revokes_the_token(void **state)
{
    struct mcp_oauth_status status;
    struct mcp_oauth_target t;
    struct world w;

    world_open(&w, S256);
    log_in(&w);
    assert_int_equal(mcp_oauth_status(w.oauth, "one", w.rig.a, &status, NULL), 0);
    assert_int_equal(status.state, MCP_OAUTH_LOGGED_IN);
    assert_true(status.can_refresh);
    t = target_of(&w);
    assert_int_equal(mcp_oauth_forget(w.oauth, &t, &w.wait, NULL), 0);
    assert_non_null(strstr(w.forms, " token=r1&token_type_hint=refresh_token"));
    assert_null(value_of(&w));
    assert_int_equal(mcp_oauth_status(w.oauth, "one", w.rig.a, &status, NULL), 0);
    assert_int_equal(status.state, MCP_OAUTH_NONE);
    world_close(&w);
}

static void a_machine_logs_in_by_itself(void **state)
{
    struct mcp_oauth_target t;
    struct mcp_authorizer by;
    const char *value = NULL;
    struct world w;

    world_open(&w, "");
    t = target_of(&w);
    t.client_id = "m";
    t.client_secret = "s";
    t.way = MCP_OAUTH_MACHINE;
    assert_int_equal(mcp_oauth_authorizer(w.oauth, &t, &by, NULL), 0);
    assert_int_equal(by.refused(by.arg, &(struct mcp_refusal){ 401, "Bearer", NULL }, &w.wait, NULL), 0);
    assert_int_equal(by.value(by.arg, &w.wait, w.rig.a, &value, NULL), 0);
    assert_string_equal(value, "Bearer t1");
    assert_non_null(strstr(w.forms, "Basic bTpz grant_type=client_credentials&scope=read&resource="));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_gives_a_token_for_this_server_only),
        cmocka_unit_test(an_answer_of_another_issuer_sends_no_code),
        cmocka_unit_test(a_state_counts_once),
        cmocka_unit_test(no_more_logins_wait_than_the_limit),
        cmocka_unit_test(servers_that_nobody_uses_give_their_places_to_others),
        cmocka_unit_test(so_many_servers_have_logins_and_no_more),
        cmocka_unit_test(an_authorization_server_without_pkce_is_refused),
        cmocka_unit_test(what_a_server_names_goes_through_the_guard),
        cmocka_unit_test(a_public_server_names_no_address_of_this_machine),
        cmocka_unit_test(a_refused_token_is_refreshed_once_and_then_forgotten),
        cmocka_unit_test(a_token_is_refreshed_before_it_ends),
        cmocka_unit_test(more_scope_is_added_to_what_was_granted),
        cmocka_unit_test(a_logout_revokes_the_token),
        cmocka_unit_test(a_machine_logs_in_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
