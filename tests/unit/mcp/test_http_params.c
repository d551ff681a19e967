#include "mcp/http_params.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct json_value parsed(struct arena *a, const char *text)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    return v;
}

static void annotations_that_break_a_rule_are_refused(void **state)
{
    static const struct {
        const char *schema;
        int r;
    } cases[] = {
        { "{\"type\":\"object\"}", 0 },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}", 0 },
        { "{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\",\"x-mcp-header\":\"B\"}}}}}",
          0 },
        { "{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}", 0 },
        { "{\"properties\":{\"a\":{\"type\":\"object\",\"default\":{\"x-mcp-header\":1}}}}", 0 },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}", -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}}", -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}}", -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\\r\\nB\"}}}", -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}", -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}",
          -EINVAL },
        { "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}",
          -EINVAL },
        { "{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}]}", -EINVAL },
        { "{\"$defs\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}", -EINVAL },
        { "{\"x-mcp-header\":\"A\",\"type\":\"object\"}", -EINVAL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(mcp_params_check(parsed(a, cases[i].schema), NULL), cases[i].r);
}

static void no_more_parameters_are_mirrored_than_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (int n = LIMIT_MCP_PARAMS; n <= LIMIT_MCP_PARAMS + 1; n++) {
        struct buf schema;

        buf_init(&schema, KIB(64));
        buf_add_str(&schema, "{\"properties\":{");
        for (int i = 0; i < n; i++)
            buf_printf(&schema, "%s\"p%d\":{\"type\":\"string\",\"x-mcp-header\":\"P%d\"}", i ? "," : "", i, i);
        buf_add_str(&schema, "}}");
        assert_int_equal(mcp_params_check(parsed(a, buf_str(&schema)), NULL), n <= LIMIT_MCP_PARAMS ? 0 : -EINVAL);
        buf_clear(&schema);
    }
}

static void present_arguments_become_headers(void **state)
{
    static const char schema[] =
        "{\"properties\":{\"s\":{\"type\":\"string\",\"x-mcp-header\":\"S\"},"
        "\"i\":{\"type\":\"integer\",\"x-mcp-header\":\"I\"},"
        "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
        "\"n\":{\"type\":\"string\",\"x-mcp-header\":\"N\"},"
        "\"o\":{\"type\":\"object\",\"properties\":{\"d\":{\"type\":\"string\",\"x-mcp-header\":\"D\"}}}}}";
    static const char *const wanted[][2] = { { "Mcp-Param-S", "=?base64?w6k=?=" },
                                             { "Mcp-Param-I", "-7" },
                                             { "Mcp-Param-B", "false" },
                                             { "Mcp-Param-D", "deep" } };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_header *headers = NULL;
    size_t n = 0;

    assert_int_equal(
        mcp_params_of(parsed(a, schema),
                      parsed(a, "{\"s\":\"\xc3\xa9\",\"i\":-7,\"b\":false,\"n\":null,\"o\":{\"d\":\"deep\"}}"), a,
                      &headers, &n, NULL),
        0);
    assert_int_equal(n, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(headers[i].name, wanted[i][0]);
        assert_string_equal(headers[i].value, wanted[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(annotations_that_break_a_rule_are_refused),
        cmocka_unit_test(no_more_parameters_are_mirrored_than_the_limit),
        cmocka_unit_test(present_arguments_become_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
