/* How the era of a server is found out, and what each era says. */
#include "fake_link.h"

#define REFUSED(code) "\"error\":{\"code\":" code ",\"message\":\"no\"}"
#define REFUSED_BY_VERSION(list)                                                                                       \
    "\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[" list "],\"requested\":\"x\"}}"

/* What the server answers to each of the two first methods; NULL: nothing; "": it ends. */
static const char *to_discover, *to_initialize;

static void serve_script(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    const char *answer = NULL;

    if (!frame->method || frame->kind != JSON_RPC_REQUEST)
        return;
    if (strcmp(frame->method, "server/discover") == 0)
        answer = to_discover;
    else if (strcmp(frame->method, "initialize") == 0)
        answer = to_initialize;
    if (answer && !*answer)
        fake_end(f, "It died.");
    else if (answer)
        fake_answer(f, frame, answer);
}

static int try_open(struct fake *f, enum mcp_era era, const char *discover, const char *initialize, struct err *e)
{
    to_discover = discover;
    to_initialize = initialize;
    f->serve = serve_script;
    return fake_try_open(f, era, to_discover ? WAIT_MS : 20, e);
}

static void expect(struct fake *f, enum mcp_era known, const char *discover, const char *initialize, enum mcp_era found)
{
    struct err e = { 0 };

    if (try_open(f, known, discover, initialize, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->era, found);
    assert_int_equal(mcp_client_about(f->client)->era, found);
    f->client = mcp_client_unref(f->client);
}

static void a_result_or_its_own_error_means_stateless(void **state)
{
    expect(*state, MCP_ERA_UNKNOWN, FAKE_DISCOVERED, NULL, MCP_ERA_STATELESS);
}

static void every_other_error_and_silence_mean_handshake(void **state)
{
    static const char *const answers[] = { REFUSED("-32601"), REFUSED("-32000"), REFUSED("-32602"), REFUSED("-32600"),
                                           REFUSED("0"),      "\"result\":{}",   "\"result\":[]",   NULL };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
        expect(*state, MCP_ERA_UNKNOWN, answers[i], FAKE_INITIALIZED, MCP_ERA_HANDSHAKE);
}

static void a_server_of_other_stateless_versions_is_tried_with_the_handshake(void **state)
{
    expect(*state, MCP_ERA_UNKNOWN, REFUSED_BY_VERSION("\"2099-01-01\",\"2025-11-25\""), FAKE_INITIALIZED,
           MCP_ERA_HANDSHAKE);
    expect(*state, MCP_ERA_UNKNOWN, "\"result\":{\"supportedVersions\":[\"2099-01-01\"]}", FAKE_INITIALIZED,
           MCP_ERA_HANDSHAKE);
}

static void serve_slow_stateless(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!frame->method || frame->kind != JSON_RPC_REQUEST)
        return;
    if (strcmp(frame->method, "initialize") == 0)
        fake_answer(f, frame, REFUSED_BY_VERSION("\"2026-07-28\""));
    else if (f->n++ > 0)
        fake_answer(f, frame, FAKE_DISCOVERED);
}

/* The first probe gets no answer in time, and after it the server knows no handshake any more. */
static void a_slow_server_corrects_the_verdict(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    f->serve = serve_slow_stateless;
    assert_int_equal(fake_try_open(f, MCP_ERA_UNKNOWN, 20, &e), 0);
    assert_int_equal(f->era, MCP_ERA_STATELESS);
    assert_int_equal(fake_count(f, "server/discover"), 2);
}

static void a_server_that_refuses_both_eras_is_given_up(void **state)
{
    struct err e = { 0 };

    assert_int_equal(try_open(*state, MCP_ERA_UNKNOWN, REFUSED("-32601"), REFUSED("-32601"), &e), -EPROTO);
    assert_int_equal(try_open(*state, MCP_ERA_HANDSHAKE, REFUSED("-32601"), REFUSED("-32601"), &e), -EPROTO);
}

static void a_kept_verdict_saves_the_probe_and_may_be_wrong(void **state)
{
    struct fake *f = *state;

    expect(f, MCP_ERA_HANDSHAKE, "", FAKE_INITIALIZED, MCP_ERA_HANDSHAKE);
    assert_int_equal(fake_count(f, "server/discover"), 0);
    expect(f, MCP_ERA_STATELESS, FAKE_DISCOVERED, "", MCP_ERA_STATELESS);
    assert_int_equal(fake_count(f, "initialize"), 2); /* with notifications/initialized */
    expect(f, MCP_ERA_HANDSHAKE, FAKE_DISCOVERED, REFUSED_BY_VERSION("\"2026-07-28\""), MCP_ERA_STATELESS);
    expect(f, MCP_ERA_HANDSHAKE, FAKE_DISCOVERED, REFUSED("-32601"), MCP_ERA_STATELESS);
    expect(f, MCP_ERA_STATELESS, REFUSED("-32601"), FAKE_INITIALIZED, MCP_ERA_HANDSHAKE);
}

static void a_server_that_dies_at_the_probe_is_worth_a_second_start(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    assert_int_equal(try_open(f, MCP_ERA_UNKNOWN, "", FAKE_INITIALIZED, &e), -EAGAIN);
    assert_int_equal(f->era, MCP_ERA_HANDSHAKE);
    assert_non_null(strstr(e.text, "It died."));
    assert_int_equal(fake_count(f, "initialize"), 0);
    assert_int_equal(try_open(f, MCP_ERA_STATELESS, "", FAKE_INITIALIZED, &e), -EPIPE);
    assert_int_equal(f->era, MCP_ERA_STATELESS);
}

static void the_refusal_of_a_probe_is_no_part_of_a_later_error(void **state)
{
    struct fake *f = *state;
    const struct mcp_client_config config = { .probe_ms = WAIT_MS };
    const struct net_wait wait = net_wait_of(50, NULL, NULL);
    struct err e = { 0 };

    to_discover = REFUSED("-32601");
    to_initialize = NULL;
    f->serve = serve_script;
    assert_int_equal(mcp_client_open(&f->link, &config, &wait, &f->client, &f->era, &e), -ETIMEDOUT);
    assert_string_equal(e.code, "MCP_TIMEOUT");
    assert_int_equal(e.n_extras, 0);
}

static void versions_that_are_not_known_are_refused(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    assert_int_equal(try_open(f, MCP_ERA_HANDSHAKE, NULL, "\"result\":{\"protocolVersion\":\"2026-06-30\"}", &e),
                     -EPROTO);
    assert_string_equal(e.code, "MCP_VERSION");
    assert_non_null(strstr(e.text, "2026-06-30"));
    assert_int_equal(try_open(f, MCP_ERA_HANDSHAKE, NULL, "\"result\":{}", &e), -EPROTO);
    assert_int_equal(fake_count(f, "notifications/initialized"), 0);
    assert_int_equal(try_open(f, MCP_ERA_HANDSHAKE, NULL, REFUSED("-32000"), &e), -EIO);
    assert_string_equal(e.code, "MCP_SERVER_ERROR");
}

static void each_known_version_is_taken(void **state)
{
    static const char *const versions[] = { "2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25" };
    struct fake *f = *state;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        const char *answer = arena_printf(f->arena, "\"result\":{\"protocolVersion\":\"%s\"}", versions[i]);

        assert_int_equal(try_open(f, MCP_ERA_HANDSHAKE, NULL, answer, &e), 0);
        assert_string_equal(mcp_client_about(f->client)->version, versions[i]);
        f->client = mcp_client_unref(f->client);
    }
}

static void what_the_server_says_of_itself_is_kept(void **state)
{
    struct fake *f = *state;
    const struct mcp_about *about;

    to_initialize = FAKE_INITIALIZED;
    f->serve = serve_script;
    fake_open(f, MCP_ERA_HANDSHAKE);
    about = mcp_client_about(f->client);
    assert_string_equal(about->name, "fake");
    assert_string_equal(about->server_version, "1");
    assert_string_equal(about->instructions, "be kind");
    assert_null(about->title);
    assert_true(about->has_tools && about->has_changing_tools && about->has_subscriptions && about->has_tasks);
    assert_false(about->has_changing_prompts);
    assert_int_equal(fake_count(f, "\"method\":\"notifications/initialized\"}"), 1);
}

static void long_instructions_are_cut_between_characters(void **state)
{
    struct fake *f = *state;
    char *text = arena_alloc(f->arena, 40000);
    struct err e = { 0 };
    size_t n;

    memset(text, 'x', 16383);
    for (size_t i = 16383; i < 20000; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    assert_int_equal(try_open(f, MCP_ERA_HANDSHAKE, NULL,
                              arena_printf(f->arena,
                                           "\"result\":{\"protocolVersion\":\"2025-11-25\",\"instructions\":\"%s\"}",
                                           text),
                              &e),
                     0);
    n = strlen(mcp_client_about(f->client)->instructions);
    assert_int_equal(n, 16383);
}

/* Every message of the stateless era says version, client and capabilities. */
static void a_stateless_request_carries_its_meta(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fake *f = *state;
    const struct net_wait wait = net_wait_of(20, NULL, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait };
    struct mcp_result result;

    to_discover = FAKE_DISCOVERED;
    f->serve = serve_script;
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(mcp_client_log_level(f->client, &call, "debug", NULL), 0);
    assert_int_equal(mcp_client_log_level(f->client, &call, "loud", NULL), -EINVAL);
    assert_int_equal(fake_count(f, "logging/setLevel"), 0);
    assert_int_equal(mcp_client_call(f->client, &call, "t", (struct json_value){ 0 }, &result, NULL), -ETIMEDOUT);
    assert_int_equal(fake_count(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"_meta\":{"
                                   "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                                   "\"io.modelcontextprotocol/clientCapabilities\":{},"
                                   "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"hearth\","),
                     1);
    assert_int_equal(fake_count(f, "\"io.modelcontextprotocol/logLevel\":\"debug\"}"), 2); /* the call, its cancel */
    assert_int_equal(fake_count(f, "notifications/initialized"), 0);
}

static void ping_is_what_the_era_has(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fake *f = *state;
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL), short_wait = net_wait_of(20, NULL, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait }, hasty = { .arena = a, .wait = &short_wait };

    to_discover = FAKE_DISCOVERED;
    to_initialize = FAKE_INITIALIZED;
    f->serve = serve_script;
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(mcp_client_ping(f->client, &call, NULL), 0);
    assert_int_equal(fake_count(f, "server/discover"), 2);
    f->client = mcp_client_unref(f->client);
    fake_open(f, MCP_ERA_HANDSHAKE);
    assert_int_equal(mcp_client_ping(f->client, &hasty, NULL), -ETIMEDOUT);
    assert_int_equal(fake_count(f, "\"method\":\"ping\"}"), 1);
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(a_result_or_its_own_error_means_stateless),
        WITH_FAKE(every_other_error_and_silence_mean_handshake),
        WITH_FAKE(a_server_of_other_stateless_versions_is_tried_with_the_handshake),
        WITH_FAKE(a_slow_server_corrects_the_verdict),
        WITH_FAKE(a_server_that_refuses_both_eras_is_given_up),
        WITH_FAKE(a_kept_verdict_saves_the_probe_and_may_be_wrong),
        WITH_FAKE(a_server_that_dies_at_the_probe_is_worth_a_second_start),
        WITH_FAKE(the_refusal_of_a_probe_is_no_part_of_a_later_error),
        WITH_FAKE(versions_that_are_not_known_are_refused),
        WITH_FAKE(each_known_version_is_taken),
        WITH_FAKE(what_the_server_says_of_itself_is_kept),
        WITH_FAKE(long_instructions_are_cut_between_characters),
        WITH_FAKE(a_stateless_request_carries_its_meta),
        WITH_FAKE(ping_is_what_the_era_has),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
