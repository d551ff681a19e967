/* The client under test of the official conformance suite: `conformance_client URL`, with the scenario's name in
 * MCP_CONFORMANCE_SCENARIO. Connects by Hearth's own transport, client and OAuth, lists the tools and calls those that
 * the scenario is about. The person at the browser is a request that follows the redirect. Exit code 0 when all of it
 * succeeded. */
#include "mcp/client.h"
#include "mcp/http.h"
#include "mcp/oauth.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/percent.h"
#include "net/guard.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, MOST_LOGINS = 3 };

struct under_test {
    const char *url, *scenario;
    struct pool *pool;
    struct mcp_client *client;
    struct mcp_oauth *oauth;
    struct mcp_oauth_target target;
    struct mcp_authorizer authorizer;
    const char *id_token; /* that the person has already; NULL: none */
};

/* ---- what the server asks ---- */

/* Accepts, with the default of each field. */
static int accept_defaults(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    struct json_value properties = json_get(json_get(request->params, "requestedSchema"), "properties"), property;
    struct json_writer w;
    struct slice name;

    json_write_init(&w, ret);
    json_begin_object(&w);
    json_add_string(&w, "action", "accept");
    json_begin_object_as(&w, "content");
    for (struct json_iter it = json_iter(properties); json_next(&it, &name, &property);)
        if (!json_is_absent(json_get(property, "default")))
            json_add_value(&w, arena_slicedup(request->arena, name), json_get(property, "default"));
    json_end(&w);
    json_end(&w);
    return 0;
}

/* ---- the operations ---- */

static int connect_once(struct under_test *u, const struct net_wait *wait, struct err *e)
{
    static const struct mcp_handlers handlers = { .elicit = accept_defaults };
    const struct mcp_client_config config = { .handlers = &handlers,
                                              .pool = u->pool,
                                              .extension = mcp_oauth_extension(u->target.way) };
    const struct mcp_http_config http = { .url = u->url, .authorizer = &u->authorizer };
    enum mcp_era era = MCP_ERA_UNKNOWN;
    struct mcp_link *link;
    int r = mcp_http_open(&http, &link, e);

    return r < 0 ? r : mcp_client_open(link, &config, wait, &u->client, &era, e);
}

static int call_tool(struct under_test *u, const struct mcp_call *call, const char *name, struct err *e)
{
    struct json_value arguments = { 0 };
    struct mcp_result result = { 0 };
    int r = json_parse(call->arena, SLICE_LIT("{\"a\":5,\"b\":3}"), &arguments, e);

    if (r == 0)
        r = mcp_client_call(u->client, call, name, arguments, &result, e);
    if (r == 0 && result.is_error)
        r = err_set(e, -EIO, "TOOL_FAILED", "the tool %s failed", name);
    return r;
}

static int use_tools(struct under_test *u, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_call call = { .arena = a, .wait = wait };
    struct mcp_tools tools = { 0 };
    int r = mcp_client_tools(u->client, &call, &tools, e);

    for (size_t i = 0; r == 0 && i < tools.n; i++)
        r = call_tool(u, &call, tools.items[i].name, e);
    return r;
}

static int use_once(struct under_test *u, struct err *e)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    int r = connect_once(u, &wait, e);

    if (r == 0 && strcmp(u->scenario, "initialize") != 0)
        r = use_tools(u, &wait, e);
    if (u->client)
        mcp_client_close(u->client);
    u->client = mcp_client_unref(u->client);
    return r;
}

/* ---- the login ---- */

/* The named member of a URL's query, decoded; NULL: none. */
static const char *query_of(struct arena *a, const char *url, const char *name)
{
    const char *at = strchr(url, '?');
    size_t n = strlen(name);

    for (at = at ? at + 1 : ""; *at; at += strcspn(at, "&"), at += *at == '&')
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            char *text = NULL;

            if (percent_decode(a, (struct slice){ at + n + 1, strcspn(at + n + 1, "&") }, true, &text, NULL) == 0)
                return text;
        }
    return NULL;
}

static int log_in(struct under_test *u, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct http_call_request browser = { .method = "GET" };
    struct mcp_oauth_login login;
    struct http_answer answer;
    const char *server, *back;
    int r;

    if (u->id_token)
        return mcp_oauth_obtain(u->oauth, &u->target, u->id_token, &wait, e);
    r = mcp_oauth_begin(u->oauth, &u->target, "http://127.0.0.1:1/callback", &wait, a, &login, e);

    browser.url = login.url;
    if (r == 0)
        r = http_call(&browser, a, NULL, &answer, e);
    if (r < 0)
        return r;
    back = http_answer_header(&answer, "location");
    if (!back)
        return err_set(e, -EIO, "NO_REDIRECT", "the login page answered with %d", answer.status);
    return mcp_oauth_finish(u->oauth,
                            &(struct mcp_oauth_answer){ .state = query_of(a, back, "state"),
                                                        .code = query_of(a, back, "code"),
                                                        .iss = query_of(a, back, "iss"),
                                                        .error = query_of(a, back, "error") },
                            &wait, a, &server, e);
}

static int run(struct under_test *u, struct err *e)
{
    int r = use_once(u, e);

    for (int n = 0; n < MOST_LOGINS && r < 0 && strcmp(e->code, "MCP_LOGIN_REQUIRED") == 0; n++) {
        err_init(e);
        r = log_in(u, e);
        if (r == 0)
            r = use_once(u, e);
    }
    return r;
}

static enum mcp_oauth_way way_of(const char *scenario)
{
    if (strstr(scenario, "client-credentials"))
        return MCP_OAUTH_MACHINE;
    return strstr(scenario, "cross-app-access") ? MCP_OAUTH_ENTERPRISE : MCP_OAUTH_PERSON;
}

/* The suite names the client that it knows in MCP_CONFORMANCE_CONTEXT. */
static int read_target(struct under_test *u, struct arena *a, struct err *e)
{
    const char *text = getenv("MCP_CONFORMANCE_CONTEXT");
    struct json_value context = { 0 };
    int r;

    if (text && json_parse(a, slice_of(text), &context, e) < 0)
        return -EINVAL;
    u->target = (struct mcp_oauth_target){ .server = "suite",
                                           .url = u->url,
                                           .client_id = json_cstr(json_get(context, "client_id")),
                                           .client_secret = json_cstr(json_get(context, "client_secret")),
                                           .private_key = json_cstr(json_get(context, "private_key_pem")),
                                           .identity_provider = json_cstr(json_get(context, "idp_issuer")),
                                           .identity_client_id = json_cstr(json_get(context, "idp_client_id")),
                                           .client_metadata_url = "https://conformance-test.local/client-metadata.json",
                                           .way = way_of(u->scenario) };
    u->id_token = json_cstr(json_get(context, "idp_id_token"));
    r = mcp_oauth_authorizer(u->oauth, &u->target, &u->authorizer, e);
    u->authorizer.release = NULL; /* several links share it */
    return r;
}

int main(int argc, char **argv)
{
    static const struct pool_config pool = { .name = "mcp", .n_min = 1, .n_max = 4, .max_waiting = 16 };
    const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    struct under_test u = { .url = argc == 2 ? argv[1] : "", .scenario = scenario ? scenario : "" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *guard = guard_new(&(struct guard_config){ 0 });
    struct err e = { 0 };
    int r;

    signal(SIGPIPE, SIG_IGN);
    if (argc != 2 || hash_init(NULL) < 0 || pool_start(&pool, &u.pool, NULL) < 0)
        return 2;
    u.oauth = mcp_oauth_new(&(struct mcp_oauth_config){ .guard = guard, .public_guard = guard });
    r = read_target(&u, a, &e);
    if (r == 0)
        r = run(&u, &e);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", e.code, e.text);
    mcp_oauth_free(u.oauth);
    pool_stop(u.pool);
    guard_free(guard);
    return r < 0;
}
