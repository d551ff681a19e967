#include "base/json_example.h"

#include "base/json_schema.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *example(struct arena *a, const char *schema, size_t max, bool *ret_overflowed)
{
    struct json_value v = { 0 };
    struct json_writer w;
    struct buf out;
    const char *text;

    assert_int_equal(json_parse(a, slice_of(schema), &v, NULL), 0);
    buf_init(&out, max);
    json_write_init(&w, &out);
    json_example_write(&w, NULL, v);
    *ret_overflowed = out.overflowed;
    text = buf_to_arena(&out, a);
    return text;
}

/* Each value is checked against its schema by base/json_schema.h. */
static void the_smallest_value_fits_its_schema(void **state)
{
    static const struct {
        const char *schema, *value;
    } cases[] = {
        { "{}", "null" },
        { "{\"type\":\"string\"}", "\"\"" },
        { "{\"type\":\"string\",\"minLength\":3}", "\"xxx\"" },
        { "{\"type\":\"string\",\"format\":\"date\"}", "\"1970-01-01\"" },
        { "{\"type\":\"integer\"}", "0" },
        { "{\"type\":\"integer\",\"minimum\":1.5}", "2" },
        { "{\"type\":\"integer\",\"exclusiveMinimum\":4}", "5" },
        { "{\"type\":\"integer\",\"maximum\":-3}", "-3" },
        { "{\"type\":\"number\",\"minimum\":0.25}", "0.25" },
        { "{\"type\":\"boolean\"}", "false" },
        { "{\"type\":[\"string\",\"null\"]}", "\"\"" },
        { "{\"enum\":[\"billing\",\"other\"]}", "\"billing\"" },
        { "{\"const\":7}", "7" },
        { "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", "[]" },
        { "{\"type\":\"array\",\"minItems\":2,\"items\":{\"type\":\"integer\"}}", "[0,0]" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{}},\"required\":[\"a\"]}",
          "{\"a\":\"\"}" },
        { "{\"properties\":{},\"required\":[\"z\"]}", "{\"z\":null}" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "\"\"" },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", "0" },
        { "{\"allOf\":[{\"$ref\":\"#/$defs/n\"}],\"$defs\":{\"n\":{\"type\":\"boolean\"}}}", "false" },
        { "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"enum\":[null]}}}", "null" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_value schema = { 0 }, value = { 0 };
        bool overflowed;
        const char *text = example(a, cases[i].schema, 1000, &overflowed);

        assert_false(overflowed);
        assert_string_equal(text, cases[i].value);
        assert_int_equal(json_parse(a, slice_of(cases[i].schema), &schema, NULL), 0);
        assert_int_equal(json_parse(a, slice_of(text), &value, NULL), 0);
        assert_int_equal(json_schema_check(schema, value, "", NULL), 0);
    }
}

static void hostile_schemas_end(void **state)
{
    static const char *const schemas[] = {
        "{\"$ref\":\"#\"}",
        "{\"$ref\":\"\"}",
        "{\"$ref\":\"#/\"}",
        "{\"anyOf\":[]}",
        "{\"type\":\"array\",\"minItems\":1e300,\"items\":{\"type\":\"integer\"}}",
        "{\"type\":\"string\",\"minLength\":1e300}",
        "{\"type\":\"integer\",\"minimum\":1e300}",
        "{\"type\":\"object\",\"required\":[\"a\",\"b\"],\"properties\":{\"a\":{\"$ref\":\"#\"},\"b\":{\"$ref\":\"#\"}}}",
        "{\"type\":\"array\",\"minItems\":9,\"items\":{\"$ref\":\"#\"}}",
        "{\"properties\":3,\"required\":7,\"items\":[],\"enum\":{},\"type\":{}}",
        "[]",
        "true",
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    bool overflowed;

    for (size_t i = 0; i < ARRAY_SIZE(schemas); i++)
        assert_non_null(example(a, schemas[i], 10000, &overflowed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_value_fits_its_schema),
        cmocka_unit_test(hostile_schemas_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
