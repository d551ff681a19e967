#include "http/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct {
    enum http_method method;
    const char *pattern;
} rows[] = {
    { HTTP_GET, "/" },
    { HTTP_GET, "/activities" },
    { HTTP_POST, "/activities" },
    { HTTP_GET, "/activities/:id" },
    { HTTP_DELETE, "/activities/:id" },
    { HTTP_GET, "/activities/stats" },
    { HTTP_POST, "/a/:x/b" },
    { HTTP_POST, "/a/lit/c" },
    { HTTP_GET, "/:p/:q/:r/:s" },
    { HTTP_GET, "/ui/{path*}" },
    { HTTP_GET, "/ui/:one/fixed" },
    { HTTP_POST, "/ui/form" },
    { HTTP_GET, "/ui/form/help" },
};

static struct http_matcher *make_matcher(void)
{
    struct http_matcher *m = http_matcher_new();
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(http_matcher_add(m, rows[i].method, rows[i].pattern, &rows[i], &e), 0);
    return m;
}

static void the_right_row_answers(void **state)
{
    static const struct {
        enum http_method method;
        const char *path, *pattern, *first_param; /* pattern NULL: no row */
        unsigned allowed;
    } cases[] = {
        { HTTP_GET, "/", "/", NULL, 1 << HTTP_GET },
        { HTTP_POST, "/", NULL, NULL, 1 << HTTP_GET },
        { HTTP_POST, "/activities", "/activities", NULL, 1 << HTTP_GET | 1 << HTTP_POST },
        { HTTP_GET, "/activities/", "/activities", NULL, 1 << HTTP_GET | 1 << HTTP_POST },
        { HTTP_GET, "/activities/7", "/activities/:id", "7", 1 << HTTP_GET | 1 << HTTP_DELETE },
        { HTTP_GET, "/activities/stats", "/activities/stats", NULL, 1 << HTTP_GET | 1 << HTTP_DELETE },
        { HTTP_DELETE, "/activities/stats", "/activities/:id", "stats", 1 << HTTP_GET | 1 << HTTP_DELETE },
        { HTTP_PUT, "/activities/7", NULL, NULL, 1 << HTTP_GET | 1 << HTTP_DELETE },
        { HTTP_POST, "/a/lit/b", "/a/:x/b", "lit", 1 << HTTP_POST },
        { HTTP_POST, "/a/lit/c", "/a/lit/c", NULL, 1 << HTTP_POST },
        { HTTP_GET, "/1/2/3/4", "/:p/:q/:r/:s", "1", 1 << HTTP_GET },
        { HTTP_GET, "//2/3/4", NULL, NULL, 0 },
        { HTTP_GET, "/activities//", NULL, NULL, 0 },
        { HTTP_GET, "/Activities", NULL, NULL, 0 },
        { HTTP_GET, "/activitiesx", NULL, NULL, 0 },
        { HTTP_GET, "/a", NULL, NULL, 0 },
        { HTTP_GET, "/1/2/3/4/5", NULL, NULL, 0 },
        { HTTP_GET, "/ui", "/ui/{path*}", "", 1 << HTTP_GET },
        { HTTP_GET, "/ui/", "/ui/{path*}", "", 1 << HTTP_GET },
        { HTTP_GET, "/ui/a.js", "/ui/{path*}", "a.js", 1 << HTTP_GET },
        { HTTP_GET, "/ui/a/b/c/d/e.js", "/ui/{path*}", "a/b/c/d/e.js", 1 << HTTP_GET },
        { HTTP_GET, "/ui/a/", "/ui/{path*}", "a/", 1 << HTTP_GET },
        { HTTP_GET, "/ui//a", "/ui/{path*}", "/a", 1 << HTTP_GET },
        { HTTP_GET, "/ui/a/fixed", "/ui/:one/fixed", "a", 1 << HTTP_GET },
        { HTTP_GET, "/ui/a/fixed/b", "/ui/{path*}", "a/fixed/b", 1 << HTTP_GET },
        { HTTP_GET, "/ui/form/help", "/ui/form/help", NULL, 1 << HTTP_GET },
        { HTTP_GET, "/ui/form/other", "/ui/{path*}", "form/other", 1 << HTTP_GET },
        { HTTP_GET, "/ui/form", "/ui/{path*}", "form", 1 << HTTP_GET | 1 << HTTP_POST },
        { HTTP_POST, "/ui/form", "/ui/form", NULL, 1 << HTTP_GET | 1 << HTTP_POST },
        { HTTP_POST, "/ui/x", NULL, NULL, 1 << HTTP_GET },
        { HTTP_GET, "/uix", NULL, NULL, 0 },
    };
    struct http_matcher *m = make_matcher();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_match match;
        const char *found;

        http_matcher_find(m, cases[i].method, cases[i].path, &match);
        found = match.row ? rows[(const typeof(rows[0]) *)match.row - rows].pattern : "none";
        assert_string_equal(found, cases[i].pattern ? cases[i].pattern : "none");
        assert_int_equal(match.allowed, cases[i].allowed);
        assert_int_equal(match.is_path_known, cases[i].allowed != 0);
        if (cases[i].first_param)
            assert_true(slice_eq_str(match.params[0], cases[i].first_param));
        else
            assert_int_equal(match.n_params, 0);
    }
    http_matcher_free(m);
}

static void parameters_come_in_the_order_of_the_pattern(void **state)
{
    struct http_matcher *m = make_matcher();
    struct http_match match;

    http_matcher_find(m, HTTP_GET, "/one/t w o/3/4", &match);
    assert_int_equal(match.n_params, 4);
    assert_true(slice_eq_str(match.params[1], "t w o"));
    assert_true(slice_eq_str(match.params[3], "4"));
    http_matcher_free(m);
}

static void bad_patterns_are_refused(void **state)
{
    static const struct {
        const char *pattern;
        int r;
    } cases[] = {
        { "", -EINVAL },
        { "a", -EINVAL },
        { "/a/", -EINVAL },
        { "//", -EINVAL },
        { "/:", -EINVAL },
        { "/a/:/b", -EINVAL },
        { "/:a/:b/:c/:d/:e", -EINVAL },
        { "/activities/:other", -EEXIST },
        { "/new/:a/:b/:c/:d", 0 },
        { "/new/:a/:b/:c/{d*}", 0 },
        { "/more/:a/:b/:c/:d/{e*}", -EINVAL },
        { "/{a*}/b", -EINVAL },
        { "/new/{a}", -EINVAL },
        { "/new/{*}", -EINVAL },
        { "/new/x{a*}", -EINVAL },
        { "/ui/{other*}", -EEXIST },
    };
    struct http_matcher *m = make_matcher();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(http_matcher_add(m, HTTP_GET, cases[i].pattern, &rows[0], &e), cases[i].r);
    }
    http_matcher_free(m);
    http_matcher_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_row_answers),
        cmocka_unit_test(parameters_come_in_the_order_of_the_pattern),
        cmocka_unit_test(bad_patterns_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
