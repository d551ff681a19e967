/* As test_growth.c: JSON Schemas and what is checked against them. */
#include "growth.h"

#include "base/json_schema.h"
#include "llm/format.h"

/* {schema, value} */
static void read_schema(struct arena *a, struct slice text, const struct growing *g)
{
    struct json_value both = parse(a, text);
    struct err e = { 0 };

    (void)!json_schema_check(json_get(both, "schema"), json_get(both, "value"), "", &e);
    (void)!json_schema_check(json_get(both, "schema"), json_get(both, "value"), "", NULL);
}

/* The elements are members; as names they are also required, in reverse order. */
static void read_object_schema(struct arena *a, struct slice text, const struct growing *g)
{
    struct json_value members = parse(a, text), item;
    struct buf schema;
    struct slice name;
    struct err e = { 0 };

    buf_init(&schema, MIB(64));
    buf_add_str(&schema, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":");
    json_print(&schema, members);
    buf_add_str(&schema, ",\"required\":[\"m0\"");
    for (struct json_iter it = json_iter(members); json_next(&it, &name, &item);)
        buf_printf(&schema, ",\"%s\"", name.p);
    buf_add_str(&schema, "]}");
    item = parse(a, buf_slice(&schema));
    buf_clear(&schema);
    assert_true(llm_format_is_strict(item));
    (void)!json_schema_check(item, members, "", &e);
    (void)!json_schema_check(item, members, "", NULL);
}

static void a_schema_and_what_is_held_against_it_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "members that are required", 2000, "{", "\"m%\":{}", NULL, "}", read_object_schema },
        { "required that are missing", 4000, "{\"value\":{},\"schema\":{\"required\":[", "\"m%\"", NULL, "]}}",
          read_schema },
        { "required once more and once more", 4000,
          "{\"value\":{\"a1\":1,\"a2\":1,\"a3\":1,\"a4\":1,\"a5\":1,\"a6\":1,\"a7\":1,\"a8\":1,\"a9\":1},\"schema\":{\"required\":[",
          "\"a9\"", NULL, "]}}", read_schema },
        { "choices", 4000, "{\"value\":\"x\",\"schema\":{\"enum\":[", "\"choice %\"", NULL, "]}}", read_schema },
        { "elements, each of them a choice", 2000,
          "{\"schema\":{\"items\":{\"enum\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"x\"]}},\"value\":[",
          "\"x\"", NULL, "]}", read_schema },
        { "elements that break the rule", 4000, "{\"schema\":{\"items\":{\"type\":\"string\"}},\"value\":[", "%", NULL,
          "]}", read_schema },
        { "items that must differ", 4000, "{\"schema\":{\"uniqueItems\":true},\"value\":[", "%", NULL, "]}",
          read_schema },
        { "objects that must differ", 1000, "{\"schema\":{\"uniqueItems\":true},\"value\":[", "{\"a\":[%],\"b\":1}",
          NULL, "]}", read_schema },
        { "numbers of an enum", 2000, "{\"value\":[-1,-2,-3],\"schema\":{\"items\":{\"enum\":[", "%", NULL, "]}}}",
          read_schema },
        { "references", 1000, "{\"value\":1,\"schema\":{\"$defs\":{\"last\":{}},\"allOf\":[",
          "{\"$ref\":\"#/$defs/last\",\"$anchor\":\"a%\"}", NULL, "]}}", read_schema },
        { "schemas with names of their own", 500, "{\"value\":1,\"schema\":{\"$id\":\"http://a/\",\"allOf\":[",
          "{\"$id\":\"b%\",\"$ref\":\"b0\"}", NULL, ",{\"$id\":\"b0\"}]}}", read_schema },
        { "parts of a pointer", 2000, "{\"value\":1,\"schema\":{\"a\":{},\"$ref\":\"#/a", "/a", "", "\"}}",
          read_schema },
        { "members that no schema has evaluated", 2000,
          "{\"schema\":{\"allOf\":[{\"properties\":{\"m1\":{}}}],\"unevaluatedProperties\":{\"type\":\"integer\"}},\"value\":{",
          "\"m%\":1", NULL, "}}", read_schema },
        { "names under a pattern", 1000,
          "{\"schema\":{\"patternProperties\":{\"^m[0-9]+$\":true},\"additionalProperties\":false},\"value\":{",
          "\"m%\":1", NULL, "}}", read_schema },
        { "text under a pattern", 1000, "{\"schema\":{\"pattern\":\"^[a-z]+$\"},\"value\":\"", "abcdefgh", "", "\"}",
          read_schema },
        { "schemas of anyOf", 2000, "{\"value\":[1,2,3],\"schema\":{\"anyOf\":[", "{\"type\":\"string\",\"x%\":1}",
          NULL, "]}}", read_schema },
        { "members of a schema that are not known", 4000, "{\"value\":[[],[],[]],\"schema\":{\"items\":{", "\"x%\":1",
          NULL, "}}}", read_schema },
        { "definitions", 4000, "{\"value\":[1,1,1],\"schema\":{\"items\":{\"$ref\":\"#/$defs/last\"},\"$defs\":{",
          "\"d%\":{}", NULL, ",\"last\":{}}}}", read_schema },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

/* Two lists whose lengths multiply: the steps of a check are limited, so no text of the same length takes longer than
 * the first text that reaches the limit. */
static void lists_of_a_schema_that_multiply_reach_the_limit_of_steps(void **state)
{
    static const struct growing cases[] = {
        { "allOf over a list", 400, "[", "{\"items\":{\"type\":\"integer\"}}", NULL, "]", NULL },
        { "allOf over a long text", 400, "[", "{\"minLength\":1}", NULL, "]", NULL },
        { "enum of numbers", 20000, "[", "%", NULL, "]", NULL },
    };
    static const struct {
        const char *before, *behind;
    } forms[] = { { "{\"allOf\":", "}" }, { "{\"allOf\":", "}" }, { "{\"items\":{\"enum\":", "}}" } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct growing numbers = {
            "", 0, i == 1 ? "\"" : "[", i == 1 ? "x" : "-1", i == 1 ? "" : ",", i == 1 ? "\"" : "]", NULL
        };
        struct json_value value = parse(a, grow(a, &numbers, i == 1 ? 1000000 : 100000)), schema;
        struct err e = { 0 };
        int64_t began;

        schema = parse(
            a, slice_of(arena_printf(a, "%s%s%s", forms[i].before, grow(a, &cases[i], cases[i].n).p, forms[i].behind)));
        began = cpu_ns();
        assert_int_equal(json_schema_check(schema, value, "answer", &e), -EINVAL);
        assert_true(cpu_ns() - began < INT64_C(20000000000));
        if (i < 2)
            assert_non_null(strstr(e.text, "steps of checking"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_and_what_is_held_against_it_grow_with_their_length),
        cmocka_unit_test(lists_of_a_schema_that_multiply_reach_the_limit_of_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
