#include "base/json_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct json_value parse(struct arena *a, const char *text)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    return v;
}

/* field "": valid; else the first field that is reported as invalid. */
static void values_are_held_against_their_schema(void **state)
{
    static const struct {
        const char *schema, *value, *field;
    } cases[] = {
        { "{}", "3", NULL },
        { "{\"type\":\"object\"}", "[]", "" },
        { "{\"type\":\"integer\"}", "3.0", NULL },
        { "{\"type\":\"integer\"}", "3.5", "" },
        { "{\"type\":[\"string\",\"null\"]}", "null", NULL },
        { "{\"type\":[\"string\",\"null\"]}", "1", "" },
        { "{\"type\":\"object\",\"required\":[\"a\"]}", "{}", "a" },
        { "{\"type\":\"object\",\"required\":[\"a\"]}", "{\"a\":null}", NULL },
        { "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}", "a" },
        { "{\"properties\":{\"a\":{\"properties\":{\"b\":{\"type\":\"string\"}}}}}", "{\"a\":{\"b\":1}}", "a.b" },
        { "{\"additionalProperties\":false,\"properties\":{\"a\":{}}}", "{\"a\":1,\"b\":2}", "b" },
        { "{\"additionalProperties\":{\"type\":\"string\"}}", "{\"b\":2}", "b" },
        { "{\"items\":{\"type\":\"number\"}}", "[1,2.5,\"x\"]", "[2]" },
        { "{\"items\":{\"enum\":[1,\"a\"]}}", "[\"a\",1.0]", NULL },
        { "{\"enum\":[\"a\",\"b\"]}", "\"c\"", "" },
        { "{\"const\":null}", "0", "" },
        { "{\"minimum\":1,\"maximum\":2}", "3", "" },
        { "{\"minLength\":2}", "\"\xc3\xb6\"", "" },
        { "{\"minItems\":1}", "[]", "" },
        { "{\"maxItems\":1}", "[1,2]", "" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}", "true", "" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}", "1", NULL },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "1", "" },
        { "{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "1", "" },
        { "{\"$defs\":{\"n\":{\"type\":\"string\"}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}}}", "{\"a\":1}",
          "a" },
        { "{\"$ref\":\"#/nowhere\"}", "1", NULL },
        { "{\"properties\":{\"next\":{\"$ref\":\"#\"}}}", "{\"next\":{\"next\":{}}}", NULL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };
        int r = json_schema_check(parse(a, cases[i].schema), parse(a, cases[i].value), "", &e);

        assert_int_equal(r, cases[i].field ? -EINVAL : 0);
        if (cases[i].field)
            assert_string_equal(e.fields[0].field, cases[i].field);
    }
}

static void a_schema_that_would_never_end_ends(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value schema = parse(
        a,
        "{\"anyOf\":[{\"$ref\":\"#/\"},{\"$ref\":\"#/anyOf/0\"},{\"$ref\":\"#/anyOf/1\"}],"
        "\"allOf\":[{\"$ref\":\"#/x\"}],\"x\":{\"anyOf\":[{\"$ref\":\"#/x\"},{\"$ref\":\"#/x\"},{\"$ref\":\"#/x\"}]}}");
    int r = json_schema_check(schema, parse(a, "1"), "", NULL);

    assert_true(r == 0 || r == -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_held_against_their_schema),
        cmocka_unit_test(a_schema_that_would_never_end_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
