#include "api/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct some_body {
    const char *name;
};

static const struct field some_fields[] = { FIELD_STRING(struct some_body, name, "name"), FIELD_END };

static int handler(struct request *req, struct response *res, struct err *e)
{
    return 0;
}

static int check(const struct request *req, const void *body, struct err *e)
{
    return 0;
}

/* Each case is the valid row with one member overwritten. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define GOOD                                                                                                           \
    .path = "/a/:id", .permission = PERM_NONE, .answer = some_fields, .handler = handler, .summary = "s", .tag = "t"

static struct settings *settings_of(const char *flag)
{
    struct settings_sources from = { .flags = &flag, .n_flags = flag ? 1 : 0 };
    struct settings *s = NULL;
    struct err e = { 0 };

    if (settings_load(&from, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static int try_rows(const struct route *rows, const char *flag, struct router **ret, struct err *e)
{
    const struct route *tables[] = { rows, NULL };
    AUTO(settings_freep) struct settings *s = settings_of(flag);

    return router_new(tables, s, ret, e);
}

static void a_row_that_forgets_something_is_refused_by_name(void **state)
{
    static const struct {
        struct route row;
        const char *says;
    } cases[] = {
        { { GOOD, .permission = NULL }, "permission" },
        { { GOOD, .permission = "made.up" }, "permission" },
        { { GOOD, .handler = NULL }, "handler" },
        { { GOOD, .summary = NULL }, "summary" },
        { { GOOD, .tag = NULL }, "summary" },
        { { GOOD, .answer = NULL }, "answer" },
        { { GOOD, .method = HTTP_POST, .body = some_fields }, "ROUTE_BODY" },
        { { GOOD, .query_size = 8 }, "ROUTE_QUERY" },
        { { GOOD, ROUTE_BODY(some_fields, struct some_body) }, "body" },
        { { GOOD, .check_body = check }, "body" },
        { { GOOD, .kind = ROUTE_INLINE, .permission = PERM_ADMIN }, "ROUTE_INLINE" },
        { { GOOD, .kind = ROUTE_INLINE, .permission = PERM_LLM_CHAT }, "ROUTE_INLINE" },
        { { GOOD, .status = 404 }, "status" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct route rows[] = { cases[i].row, ROUTE_END };
        struct router *r = NULL;
        struct err e = { 0 };

        assert_int_equal(try_rows(rows, NULL, &r, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_ROUTE");
        assert_non_null(strstr(e.text, "/a/:id"));
        if (!strstr(e.text, cases[i].says))
            fail_msg("\"%s\" does not say %s", e.text, cases[i].says);
    }
}

static void a_path_twice_is_refused(void **state)
{
    const struct route rows[] = { { GOOD }, { GOOD, .path = "/a/:other" }, ROUTE_END };
    struct router *r = NULL;
    struct err e = { 0 };

    assert_int_equal(try_rows(rows, NULL, &r, &e), -EEXIST);
}

static bool answers(struct router *r, enum http_method method, const char *path)
{
    struct http_match match;

    return router_find(r, method, path, &match) != NULL;
}

static void the_token_answers_as_set_and_as_svc(void **state)
{
    const struct route rows[] = { { GOOD, .method = HTTP_POST, .path = "/webhooks/{token}", .is_sdk = true },
                                  ROUTE_END };
    struct router *r = NULL;
    struct err e = { 0 };

    assert_int_equal(try_rows(rows, NULL, &r, &e), 0);
    assert_int_equal(router_count(r), 2);
    assert_true(answers(r, HTTP_POST, "/webhooks/svc"));
    assert_true(answers(r, HTTP_POST, "/api/webhooks/svc"));
    router_free(r);
    assert_int_equal(try_rows(rows, "identity.token=acme", &r, &e), 0);
    assert_int_equal(router_count(r), 4);
    assert_true(answers(r, HTTP_POST, "/webhooks/svc"));
    assert_true(answers(r, HTTP_POST, "/webhooks/acme"));
    assert_true(answers(r, HTTP_POST, "/api/webhooks/acme"));
    assert_false(answers(r, HTTP_GET, "/webhooks/acme"));
    assert_false(answers(r, HTTP_POST, "/webhooks/other"));
    router_free(r);
    assert_int_equal(try_rows(rows, "identity.dialect=realtimex", &r, &e), 0);
    assert_true(answers(r, HTTP_POST, "/webhooks/svc"));
    assert_true(answers(r, HTTP_POST, "/api/webhooks/realtimex"));
    router_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_forgets_something_is_refused_by_name),
        cmocka_unit_test(a_path_twice_is_refused),
        cmocka_unit_test(the_token_answers_as_set_and_as_svc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
