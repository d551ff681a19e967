#include "net/guard.h"

#include "net/http_client.h"
#include "net/url.h"
#include "upstream.h"

static void set_address(struct sockaddr_storage *ret, const char *text, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    }
}

static const struct {
    const char *text;
    enum guard_verdict wanted;
    const char *rule;
} judged[] = {
    { "8.8.8.8", GUARD_PUBLIC, "public" },
    { "0.0.0.0", GUARD_FORBIDDEN, "unspecified" },
    { "0.255.255.255", GUARD_FORBIDDEN, "unspecified" },
    { "1.0.0.0", GUARD_PUBLIC, "public" },
    { "9.255.255.255", GUARD_PUBLIC, "public" },
    { "10.0.0.0", GUARD_PRIVATE, "10.0.0.0/8" },
    { "10.255.255.255", GUARD_PRIVATE, "10.0.0.0/8" },
    { "11.0.0.0", GUARD_PUBLIC, "public" },
    { "100.63.255.255", GUARD_PUBLIC, "public" },
    { "100.64.0.0", GUARD_PRIVATE, "carrier-grade" },
    { "100.127.255.255", GUARD_PRIVATE, "carrier-grade" },
    { "100.128.0.0", GUARD_PUBLIC, "public" },
    { "100.100.100.200", GUARD_FORBIDDEN, "metadata" },
    { "126.255.255.255", GUARD_PUBLIC, "public" },
    { "127.0.0.0", GUARD_LOOPBACK, "loopback" },
    { "127.255.255.255", GUARD_LOOPBACK, "loopback" },
    { "128.0.0.0", GUARD_PUBLIC, "public" },
    { "168.63.129.16", GUARD_FORBIDDEN, "metadata" },
    { "169.253.255.255", GUARD_PUBLIC, "public" },
    { "169.254.0.0", GUARD_FORBIDDEN, "link-local" },
    { "169.254.169.254", GUARD_FORBIDDEN, "metadata" },
    { "169.254.255.255", GUARD_FORBIDDEN, "link-local" },
    { "169.255.0.0", GUARD_PUBLIC, "public" },
    { "172.15.255.255", GUARD_PUBLIC, "public" },
    { "172.16.0.0", GUARD_PRIVATE, "172.16.0.0/12" },
    { "172.31.255.255", GUARD_PRIVATE, "172.16.0.0/12" },
    { "172.32.0.0", GUARD_PUBLIC, "public" },
    { "192.0.0.192", GUARD_FORBIDDEN, "reserved" },
    { "192.0.2.1", GUARD_FORBIDDEN, "documentation" },
    { "192.88.99.1", GUARD_FORBIDDEN, "6to4" },
    { "192.167.255.255", GUARD_PUBLIC, "public" },
    { "192.168.0.0", GUARD_PRIVATE, "192.168.0.0/16" },
    { "192.168.255.255", GUARD_PRIVATE, "192.168.0.0/16" },
    { "192.169.0.0", GUARD_PUBLIC, "public" },
    { "198.18.0.1", GUARD_PRIVATE, "benchmarking" },
    { "198.20.0.0", GUARD_PUBLIC, "public" },
    { "198.51.100.7", GUARD_FORBIDDEN, "documentation" },
    { "203.0.113.7", GUARD_FORBIDDEN, "documentation" },
    { "223.255.255.255", GUARD_PUBLIC, "public" },
    { "224.0.0.1", GUARD_FORBIDDEN, "multicast" },
    { "240.0.0.1", GUARD_FORBIDDEN, "reserved" },
    { "255.255.255.255", GUARD_FORBIDDEN, "broadcast" },
    { "::", GUARD_FORBIDDEN, "unspecified" },
    { "::1", GUARD_LOOPBACK, "loopback" },
    { "::2", GUARD_FORBIDDEN, "IPv4-compatible" },
    { "::127.0.0.1", GUARD_FORBIDDEN, "IPv4-compatible" },
    { "::ffff:127.0.0.1", GUARD_LOOPBACK, "loopback" },
    { "::ffff:169.254.169.254", GUARD_FORBIDDEN, "metadata" },
    { "::ffff:10.1.2.3", GUARD_PRIVATE, "10.0.0.0/8" },
    { "::ffff:0.0.0.0", GUARD_FORBIDDEN, "unspecified" },
    { "::ffff:8.8.8.8", GUARD_PUBLIC, "public" },
    { "64:ff9b::8.8.8.8", GUARD_PUBLIC, "public" },
    { "64:ff9b::169.254.169.254", GUARD_FORBIDDEN, "NAT64" },
    { "64:ff9b::127.0.0.1", GUARD_FORBIDDEN, "NAT64" },
    { "64:ff9b::10.0.0.1", GUARD_FORBIDDEN, "NAT64" },
    { "64:ff9b:1::1", GUARD_FORBIDDEN, "local NAT64" },
    { "2002:a9fe:a9fe::1", GUARD_FORBIDDEN, "6to4" },
    { "2002:7f00:1::", GUARD_FORBIDDEN, "6to4" },
    { "2002:808:808::1", GUARD_PUBLIC, "public" },
    { "2001::1", GUARD_FORBIDDEN, "Teredo" },
    { "2001:db8::1", GUARD_FORBIDDEN, "documentation" },
    { "2001:4860:4860::8888", GUARD_PUBLIC, "public" },
    { "100::1", GUARD_FORBIDDEN, "discard" },
    { "fbff::1", GUARD_PUBLIC, "public" },
    { "fc00::1", GUARD_PRIVATE, "unique local" },
    { "fd00:ec2::254", GUARD_FORBIDDEN, "metadata" },
    { "fd00:ec2::255", GUARD_PRIVATE, "unique local" },
    { "fdff:ffff::1", GUARD_PRIVATE, "unique local" },
    { "fe7f::1", GUARD_PUBLIC, "public" },
    { "fe80::1", GUARD_FORBIDDEN, "link-local" },
    { "febf::1", GUARD_FORBIDDEN, "link-local" },
    { "fec0::1", GUARD_FORBIDDEN, "site-local" },
    { "ff02::1", GUARD_FORBIDDEN, "multicast" },
};

static void every_special_range_has_its_verdict_from_its_first_to_its_last_address(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
        struct sockaddr_storage address;
        const char *rule = NULL;

        set_address(&address, judged[i].text, 80);
        if (guard_judge((struct sockaddr *)&address, &rule) != judged[i].wanted || !strstr(rule, judged[i].rule))
            fail_msg("%s: %s", judged[i].text, rule);
    }
    assert_int_equal(guard_judge(&(struct sockaddr){ .sa_family = AF_UNIX }, &(const char *){ NULL }), GUARD_FORBIDDEN);
}

/* The answer is the same whether libcurl or the C library parses the host. */
static void no_notation_gets_round_it(void **state)
{
    static const struct {
        const char *host;
        enum guard_verdict wanted;
    } cases[] = {
        { "2852039166", GUARD_FORBIDDEN }, /* 169.254.169.254 */
        { "0xa9fea9fe", GUARD_FORBIDDEN },
        { "0251.0376.0251.0376", GUARD_FORBIDDEN },
        { "0xa9.0xfe.43518", GUARD_FORBIDDEN },
        { "169.16689662", GUARD_FORBIDDEN },
        { "2130706433", GUARD_LOOPBACK },
        { "0x7f.1", GUARD_LOOPBACK },
        { "017700000001", GUARD_LOOPBACK },
        { "127.1", GUARD_LOOPBACK },
        { "0", GUARD_FORBIDDEN },
        { "0x0a000001", GUARD_PRIVATE },
        { "::ffff:a9fe:a9fe", GUARD_FORBIDDEN },
        { "0:0:0:0:0:ffff:169.254.169.254", GUARD_FORBIDDEN },
        { "fe80::1%lo", GUARD_FORBIDDEN },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *g = guard_new(&(struct guard_config){ 0 });

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
        struct guard_addresses found = { .n = 0 };
        struct http_answer answer = { 0 };
        struct err e = { 0 }, e_call = { 0 };
        bool is_v6 = strchr(cases[i].host, ':') != NULL;
        const char *url = arena_printf(a, is_v6 ? "http://[%s]:1/" : "http://%s:1/", cases[i].host);
        const struct http_call_request request = { .method = "GET", .url = url, .guard = g, .connect_ms = WAIT_MS };
        int r = guard_resolve(g, cases[i].host, 1, &wait, &found, &e), r_call;

        r_call = http_call(&request, a, NULL, &answer, &e_call);
        if (cases[i].wanted == GUARD_LOOPBACK) {
            assert_int_equal(r, 0);
            assert_int_equal(r_call, -ECONNREFUSED);
        } else {
            if (r != -EPERM || (r_call != -EPERM && r_call != -EINVAL))
                fail_msg("%s: %d %s, %d %s", cases[i].host, r, e.text, r_call, e_call.text);
        }
    }
    guard_free(g);
}

static void a_url_with_a_user_or_a_dot_at_its_end_hides_nothing(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *g = guard_new(&(struct guard_config){ 0 });
    struct http_answer answer = { 0 };

    for (size_t i = 0; i < 3; i++) {
        static const struct {
            const char *url;
            int wanted;
        } cases[] = {
            { "http://example.org@169.254.169.254/", -EINVAL },
            { "http://169.254.169.254\\@example.org/", -EINVAL },
            { "http://169.254.169.254./latest/", -EPERM },
        };
        const struct http_call_request request = {
            .method = "GET", .url = cases[i].url, .guard = g, .connect_ms = WAIT_MS
        };
        struct err e = { 0 };
        int r = http_call(&request, a, NULL, &answer, &e);

        if (r != cases[i].wanted && r != -EHOSTUNREACH)
            fail_msg("%s: %d %s", cases[i].url, r, e.text);
    }
    guard_free(g);
}

static void private_addresses_are_allowed_to_those_who_are_listed(void **state)
{
    static const struct {
        const char *listed, *host, *address;
        int wanted;
    } cases[] = {
        { "db.lan", "db.lan", "192.168.1.5", 0 },
        { "db.lan", "DB.lan.", "192.168.1.5", 0 },
        { "db.lan", "xdb.lan", "192.168.1.5", -EPERM },
        { "db.lan", "other", "192.168.1.5", -EPERM },
        { "db.lan", "db.lan:5432", "192.168.1.5", 0 },
        { "db.lan", "DB.LAN.:6333", "192.168.1.5", 0 },
        { "db.lan", "db.lan.evil:5432", "192.168.1.5", -EPERM },
        { "db.lan", "db.lan@evil:5432", "192.168.1.5", -EPERM },
        { "DB.lan.", "db.lan:5432", "192.168.1.5", 0 },
        { "db.lan:5432", "db.lan", "192.168.1.5", 0 },
        { "db.lan:5432", "db.lan:5432", "192.168.1.5", 0 },
        { "db.lan:5433", "db.lan:5433", "192.168.1.5", -EPERM }, /* the port of the connection counts, here 5432 */
        { "192.168.1.5:5432", "any.name:5432", "192.168.1.5", 0 },
        { "192.168.1.5:5433", "192.168.1.5:5432", "192.168.1.5", -EPERM },
        { "192.168.1.5", "192.168.1.5:5432", "192.168.1.5", 0 },
        { "192.168.1.5", "192.168.1.5", "192.168.1.6", -EPERM }, /* the address counts, not the name */
        { "fc00::1", "[fc00::1]:5432", "fc00::1", 0 },
        { "fc00:0:0::1", "any.name", "fc00::1", 0 },
        { "FC00::1", "[FC00::1]", "fc00::1", 0 },
        { "[fc00::1]", "fc00::1", "fc00::1", 0 },
        { "[fc00::1]:5432", "any.name", "fc00::1", 0 },
        { "[fc00::1]:5433", "any.name", "fc00::1", -EPERM },
        { "fc00::1", "any.name", "fc00::2", -EPERM },
        { "192.168.1.5", "any.name", "::ffff:192.168.1.5", 0 },
        { "192.168.1.5", "any.name", "192.168.1.5", 0 },
        { "192.168.1.5", "any.name", "192.168.1.6", -EPERM },
        { "*", "any.name", "10.0.0.1", 0 },
        { "*", "any.name", "fc00::1", 0 },
        { "*", "any.name", "169.254.169.254", -EPERM },
        { "*", "any.name", "::ffff:169.254.169.254", -EPERM },
        { "169.254.169.254", "169.254.169.254", "169.254.169.254", -EPERM },
        { "none", "any.name", "8.8.8.8", 0 },
        { "none", "any.name", "127.0.0.1", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct guard *g = guard_new(&(struct guard_config){ &cases[i].listed, 1 });
        struct sockaddr_storage address;
        struct err e = { 0 };

        set_address(&address, cases[i].address, 5432);
        if (guard_check(g, cases[i].host, (struct sockaddr *)&address, &e) != cases[i].wanted)
            fail_msg("%s %s: %s", cases[i].host, cases[i].address, e.text);
        if (cases[i].wanted < 0) {
            assert_string_equal(e.code, "ADDRESS_REFUSED");
            assert_non_null(strstr(e.text, cases[i].host));
        }
        guard_free(g);
    }
}

static void loopback_is_private_where_only_public_addresses_are_meant(void **state)
{
    const char *const listed = "127.0.0.1:8080";
    struct guard *strict = guard_new(&(struct guard_config){ .is_public_only = true });
    struct guard *with_list = guard_new(&(struct guard_config){ &listed, 1, .is_public_only = true });
    struct sockaddr_storage address;
    struct err e = { 0 };

    set_address(&address, "8.8.8.8", 443);
    assert_int_equal(guard_check(strict, "a.name", (struct sockaddr *)&address, &e), 0);
    set_address(&address, "::1", 8080);
    assert_int_equal(guard_check(strict, "a.name", (struct sockaddr *)&address, &e), -EPERM);
    assert_non_null(strstr(e.text, "an address of this machine (loopback"));
    set_address(&address, "127.0.0.1", 8080);
    assert_int_equal(guard_check(strict, "127.0.0.1", (struct sockaddr *)&address, &e), -EPERM);
    assert_int_equal(guard_check(with_list, "127.0.0.1", (struct sockaddr *)&address, &e), 0);
    set_address(&address, "127.0.0.1", 8081);
    assert_int_equal(guard_check(with_list, "127.0.0.1", (struct sockaddr *)&address, &e), -EPERM);
    guard_free(strict);
    guard_free(with_list);
}

static void one_bad_address_of_a_name_refuses_the_name(void **state)
{
    static const char *const answers[][3] = {
        { "8.8.8.8", "169.254.169.254", NULL },
        { "169.254.169.254", "8.8.8.8", NULL },
        { "8.8.8.8", "8.8.4.4", "10.0.0.1" },
        { "8.8.8.8", "fe80::1", NULL },
        { "8.8.8.8", "2001:4860:4860::8888", "127.0.0.1" },
    };
    struct guard *g = guard_new(&(struct guard_config){ 0 });

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct addrinfo infos[3] = { 0 };
        struct sockaddr_storage addresses[3];
        struct guard_addresses found = { .n = 0 };
        bool is_last = i + 1 == ARRAY_SIZE(answers);

        for (size_t k = 0; k < 3 && answers[i][k]; k++) {
            set_address(&addresses[k], answers[i][k], 80);
            infos[k].ai_addr = (struct sockaddr *)&addresses[k];
            infos[k].ai_addrlen = sizeof(addresses[k]);
            if (k > 0)
                infos[k - 1].ai_next = &infos[k];
        }
        assert_int_equal(guard_check_all(g, "mixed.example", infos, &found, NULL), is_last ? 0 : -EPERM);
        assert_int_equal(found.n, is_last ? 3 : 0);
    }
    assert_int_equal(guard_check_all(g, "empty.example", NULL, &(struct guard_addresses){ .n = 0 }, NULL),
                     -EHOSTUNREACH);
    guard_free(g);
}

static void say(void *arg, struct http_exchange *x)
{
    if (strcmp(x->request.path, "/away") == 0) {
        x->response.status = 302;
        http_response_header(x, "location", "http://169.254.169.254/latest/meta-data/");
    }
    buf_add_str(&x->response.body, "here");
    http_exchange_send(x);
}

static void the_service_itself_is_refused_in_every_form(void **state)
{
    static const char *const hosts[] = { "127.0.0.1",  "localhost",       "127.1", "[::ffff:127.0.0.1]",
                                         "2130706433", "127.255.255.254", "[::1]" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *g = guard_new(&(struct guard_config){ 0 });
    uint16_t port = dead_port();

    guard_add_own_port(g, port);
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        const struct http_call_request request = {
            .method = "GET", .guard = g, .connect_ms = WAIT_MS, .url = arena_printf(a, "http://%s:%u/", hosts[i], port)
        };
        struct http_answer answer = { 0 };
        struct err e = { 0 };

        if (http_call(&request, a, NULL, &answer, &e) != -EPERM || !strstr(e.text, "this service itself"))
            fail_msg("%s: %s", request.url, e.text);
    }
    guard_free(g);
}

/* A worker's open connection to an address that only the administrator may use is not reused for an app. */
static void a_connection_made_without_the_guard_is_not_used_with_it(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct guard *g = guard_new(&(struct guard_config){ 0 });
    struct http_answer answer = { 0 };
    struct err e = { 0 };
    struct http_call_request request = { .method = "GET" };

    rig_open(&rig, say, NULL);
    guard_add_own_port(g, rig.port);
    request.url = rig_url(&rig, "/");
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, NULL), 0);
    request.guard = g;
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, &e), -EPERM);
    assert_string_equal(e.code, "ADDRESS_REFUSED");
    guard_free(g);
}

/* A provider whose address is the service's own would wait for itself until all workers wait. */
static void the_service_never_asks_itself(void **state)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *g = guard_new(&(struct guard_config){ 0 });
    uint16_t port = dead_port();

    guard_add_own_port(g, port);
    guard_set_own(g);
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        const struct http_call_request request = { .method = "GET",
                                                   .connect_ms = WAIT_MS,
                                                   .url = arena_printf(a, "http://%s:%u/", hosts[i], port) };
        struct http_answer answer = { 0 };
        struct err e = { 0 };

        if (http_call(&request, a, NULL, &answer, &e) != -EPERM || strcmp(e.code, "CONNECT_FAILED") != 0 ||
            !strstr(e.text, "this service itself"))
            fail_msg("%s: %s", request.url, e.text);
    }
    guard_set_own(NULL);
    guard_free(g);
}

static void a_redirect_to_a_bad_address_is_not_followed(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct guard *g = guard_new(&(struct guard_config){ 0 });
    struct http_answer answer = { 0 };
    struct http_call_request request = { .method = "GET", .guard = g };

    rig_open(&rig, say, NULL);
    request.url = rig_url(&rig, "/away");
    assert_int_equal(http_call(&request, rig.a, NULL, &answer, NULL), 0);
    assert_int_equal(answer.status, 302);
    guard_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_special_range_has_its_verdict_from_its_first_to_its_last_address),
        cmocka_unit_test(no_notation_gets_round_it),
        cmocka_unit_test(a_url_with_a_user_or_a_dot_at_its_end_hides_nothing),
        cmocka_unit_test(private_addresses_are_allowed_to_those_who_are_listed),
        cmocka_unit_test(loopback_is_private_where_only_public_addresses_are_meant),
        cmocka_unit_test(one_bad_address_of_a_name_refuses_the_name),
        cmocka_unit_test(a_connection_made_without_the_guard_is_not_used_with_it),
        cmocka_unit_test(the_service_itself_is_refused_in_every_form),
        cmocka_unit_test(the_service_never_asks_itself),
        cmocka_unit_test(a_redirect_to_a_bad_address_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
