#include "net/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void an_address_has_scheme_host_and_port(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
        bool is_tls, is_loopback;
    } cases[] = {
        { "https://api.example.org/v1", "api.example.org", 443, true, false },
        { "http://127.0.0.1:11434", "127.0.0.1", 11434, false, true },
        { "http://127.8.0.1/", "127.8.0.1", 80, false, true },
        { "http://128.0.0.1/", "128.0.0.1", 80, false, false },
        { "HTTP://LocalHost:1/x", "LocalHost", 1, false, true },
        { "http://a.localhost", "a.localhost", 80, false, true },
        { "http://notlocalhost", "notlocalhost", 80, false, false },
        { "https://[::1]:8443/x?y=z", "::1", 8443, true, true },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct url url = { 0 };

        assert_int_equal(url_parse(a, cases[i].text, &url, NULL), 0);
        assert_string_equal(url.host, cases[i].host);
        assert_int_equal(url.port, cases[i].port);
        assert_int_equal(url.is_tls, cases[i].is_tls);
        assert_int_equal(url.is_loopback, cases[i].is_loopback);
    }
}

static void what_is_no_address_is_refused_in_words(void **state)
{
    static const char *const cases[] = { "",
                                         "api.example.org",
                                         "/v1",
                                         "ftp://host/",
                                         "file:///etc/passwd",
                                         "http://",
                                         "http://host:99999/",
                                         "http://user:secret@host/",
                                         "http://user@host/",
                                         "http://ho st/",
                                         "http://ix%7f://0x7f.1:8",
                                         "http://a%2fb/",
                                         "http://a%20b/",
                                         "http://a%25b/",
                                         "http://%32",
                                         "http://%31%32%37.%31/",
                                         "gopher://x" };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct url url = { 0 };
        struct err e = { 0 };

        assert_int_equal(url_parse(a, cases[i], &url, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_URL");
        assert_null(strstr(e.text, "secret"));
        assert_null(url.host);
    }
}

static void a_path_is_put_behind_that_of_the_base(void **state)
{
    static const struct {
        const char *base, *path, *wanted;
    } cases[] = {
        { "https://h/v1", "models", "https://h/v1/models" },
        { "https://h/v1/", "models", "https://h/v1/models" },
        { "https://h/v1//", "chat/completions", "https://h/v1/chat/completions" },
        { "http://h:1234", "api/chat", "http://h:1234/api/chat" },
        { "https://h/v1?api-version=2", "models", "https://h/v1/models?api-version=2" },
        { "https://h/v1?b=2#top", "models?a=1", "https://h/v1/models?a=1&b=2" },
        { "http://[::1]:8/x", "y", "http://[::1]:8/x/y" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *url = NULL;

        assert_int_equal(url_join(a, cases[i].base, cases[i].path, &url, NULL), 0);
        assert_string_equal(url, cases[i].wanted);
    }
}

static void a_redirect_leads_where_its_location_says(void **state)
{
    static const struct {
        const char *location, *wanted;
    } cases[] = {
        { "/b?c#d", "https://h/b?c" },
        { "b", "https://h/v1/b" },
        { "../b", "https://h/b" },
        { "//other:81/x", "https://other:81/x" },
        { "http://127.0.0.1/x", "http://127.0.0.1/x" },
        { "a b", "https://h/v1/a%20b" },
        { "?q", "https://h/v1/a?q" },
        { "file:///etc/passwd", NULL },
        { "http://user:secret@h/", NULL },
        { "gopher://h/", NULL },
        { "http://h:99999/", NULL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *url = NULL;

        assert_int_equal(url_follow(a, "https://h/v1/a?x=1", cases[i].location, &url, NULL),
                         cases[i].wanted ? 0 : -EINVAL);
        if (cases[i].wanted)
            assert_string_equal(url, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_scheme_host_and_port),
        cmocka_unit_test(what_is_no_address_is_refused_in_words),
        cmocka_unit_test(a_path_is_put_behind_that_of_the_base),
        cmocka_unit_test(a_redirect_leads_where_its_location_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
