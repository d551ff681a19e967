#include "api/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { PORT = 3001 };

static struct host_rules *rules_of(const char *const *flags, size_t n)
{
    struct settings_sources from = { .flags = flags, .n_flags = n };
    struct settings *s = NULL;
    struct host_rules *rules;
    struct err e = { 0 };

    if (settings_load(&from, &s, &e) < 0)
        fail_msg("%s", e.text);
    rules = host_rules_new(s);
    host_rules_add_address(rules, "127.0.0.1", PORT);
    host_rules_add_address(rules, "::1", PORT);
    settings_free(s);
    return rules;
}

static bool may_host(const struct host_rules *rules, const char *host)
{
    struct http_header headers[] = { { "host", host } };

    return host_is_allowed(rules, &(struct http_request){ .headers = headers, .n_headers = host ? 1 : 0 });
}

static bool may_origin(const struct host_rules *rules, const char *host, const char *origin)
{
    struct http_header headers[] = { { "host", host }, { "origin", origin } };

    return origin_is_allowed(rules, &(struct http_request){ .headers = headers, .n_headers = origin ? 2 : 1 });
}

static void only_loopback_names_are_hosts(void **state)
{
    static const struct {
        const char *host;
        bool is_allowed;
    } cases[] = {
        { "localhost", true },
        { "localhost:3001", true },
        { "LOCALHOST:1", true },
        { "127.0.0.1:3001", true },
        { "127.8.9.10", true },
        { "[::1]:3001", true },
        { "[::1]", true },
        { NULL, false },
        { "", false },
        { "example.com", false },
        { "localhost.example.com", false },
        { "127.0.0.1.example.com", false },
        { "localhost:", false },
        { "localhost:x", false },
        { "localhost:1:2", false },
        { "128.0.0.1", false },
        { "0.0.0.0", false },
        { "[::2]", false },
        { "[::1", false },
        { "::1", false },
        { "localhost.", false },
        { "127.1", false },
        { "[::1]x", false },
        { "localhost:123456", false },
    };
    struct host_rules *rules = rules_of(NULL, 0);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (may_host(rules, cases[i].host) != cases[i].is_allowed)
            fail_msg("%s", cases[i].host ? cases[i].host : "no host");
    host_rules_free(rules);
}

static void configured_hosts_are_allowed_with_any_port(void **state)
{
    const char *flags[] = { "http.allowed_hosts=box.lan, hearth.example" };
    struct host_rules *rules = rules_of(flags, 1);

    assert_true(may_host(rules, "box.lan:8080"));
    assert_true(may_host(rules, "Hearth.Example"));
    assert_false(may_host(rules, "other.lan"));
    assert_true(may_origin(rules, "box.lan:8080", "http://box.lan:8080"));
    assert_true(may_origin(rules, "box.lan", "https://box.lan"));
    assert_false(may_origin(rules, "box.lan", "https://hearth.example"));
    host_rules_free(rules);
}

static void two_host_headers_are_none(void **state)
{
    struct http_header headers[] = { { "host", "localhost" }, { "host", "localhost" } };
    struct host_rules *rules = rules_of(NULL, 0);

    assert_false(host_is_allowed(rules, &(struct http_request){ .headers = headers, .n_headers = 2 }));
    host_rules_free(rules);
}

static void only_own_and_configured_origins_may_call(void **state)
{
    static const struct {
        const char *origin;
        bool is_allowed;
    } cases[] = {
        { NULL, true },
        { "http://localhost:3001", true },
        { "http://127.0.0.1:3001", true },
        { "http://[::1]:3001", true },
        { "https://app.example", true },
        { "http://127.0.0.5:3001", false },
        { "http://127.1.1.1:3001", false },
        { "http://[::ffff:127.0.0.1]:3001", true },
        { "http://127.0.0.1:3002", false },
        { "null", false },
        { "", false },
        { "http://localhost:5173", false },
        { "http://localhost", false },
        { "https://localhost:3002", false },
        { "http://localhost:3001.example.com", false },
        { "http://example.com:3001", false },
        { "https://app.example.com", false },
        { "http://app.example", false },
        { "file://", false },
        { "chrome-extension://abc", false },
    };
    const char *flags[] = { "http.allowed_origins=https://app.example" };
    struct host_rules *rules = rules_of(flags, 1);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (may_origin(rules, "localhost:3001", cases[i].origin) != cases[i].is_allowed)
            fail_msg("%s", cases[i].origin ? cases[i].origin : "no origin");
    host_rules_free(rules);
}

/* Another program has bound the rest of 127.0.0.0/8, or ::1, at the same port. */
static void pages_at_addresses_that_are_not_bound_are_foreign(void **state)
{
    struct settings_sources from = { 0 };
    struct settings *s = NULL;
    struct host_rules *rules;

    assert_int_equal(settings_load(&from, &s, NULL), 0);
    rules = host_rules_new(s);
    settings_free(s);
    host_rules_add_address(rules, "127.0.0.9", PORT);
    assert_true(may_origin(rules, "127.0.0.9:3001", "http://127.0.0.9:3001"));
    assert_false(may_origin(rules, "127.0.0.9:3001", "http://127.0.0.1:3001"));
    assert_false(may_origin(rules, "localhost:3001", "http://localhost:3001"));
    assert_false(may_origin(rules, "127.0.0.5:3001", "http://127.0.0.5:3001"));
    host_rules_add_address(rules, "0.0.0.0", PORT);
    assert_true(may_origin(rules, "127.0.0.1:3001", "http://127.0.0.1:3001"));
    assert_false(may_origin(rules, "127.0.0.5:3001", "http://127.0.0.5:3001"));
    host_rules_add_address(rules, "::", PORT);
    assert_true(may_origin(rules, "localhost:3001", "http://localhost:3001"));
    assert_true(may_origin(rules, "localhost:3001", "http://[::1]:3001"));
    host_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_loopback_names_are_hosts),
        cmocka_unit_test(configured_hosts_are_allowed_with_any_port),
        cmocka_unit_test(two_host_headers_are_none),
        cmocka_unit_test(only_own_and_configured_origins_may_call),
        cmocka_unit_test(pages_at_addresses_that_are_not_bound_are_foreign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
