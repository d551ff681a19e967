#include "base/json_schema.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct json_value parse_slice(struct arena *a, struct slice text)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, text, &v, NULL), 0);
    return v;
}

static struct json_value parse(struct arena *a, const char *text)
{
    return parse_slice(a, slice_of(text));
}

/* What tests/peers/json_schema.test.mjs does not: the words, and the paths. words NULL: valid. */
static const struct {
    const char *schema, *value, *words;
} violations[] = {
    { "{}", "3", NULL },
    { "true", "3", NULL },
    { "false", "3", "is not allowed" },
    { "{\"type\":\"object\"}", "[]", "must be an object" },
    { "{\"type\":\"integer\"}", "3.0", NULL },
    { "{\"type\":\"integer\"}", "3.5", "must be an integer" },
    { "{\"type\":[\"string\",\"null\"]}", "1", "must be a string or null" },
    { "{\"required\":[\"city\"]}", "{}", "`city` is required" },
    { "{\"required\":[\"a\"]}", "{\"a\":null}", NULL },
    { "{\"properties\":{\"a\":{\"properties\":{\"b\":{\"type\":\"boolean\"}}}}}", "{\"a\":{\"b\":1}}",
      "`a.b` must be true or false" },
    { "{\"additionalProperties\":false,\"properties\":{\"city\":{},\"unit\":{}}}", "{\"town\":1}",
      "`town` is not a known member; known are city, unit" },
    { "{\"additionalProperties\":false}", "{\"b\":2}", "`b` is not a known member" },
    { "{\"unevaluatedProperties\":false,\"allOf\":[{\"properties\":{\"a\":{}}}]}", "{\"a\":1,\"b\":2}",
      "`b` is not a known member" },
    { "{\"items\":{\"type\":\"number\"}}", "[1,2.5,\"x\"]", "`[2]` must be a number" },
    { "{\"prefixItems\":[{}],\"items\":false}", "[1,2]", "`[1]` is not allowed" },
    { "{\"enum\":[\"a\",{\"b\":1}]}", "\"c\"", "must be one of \"a\", {\"b\":1}" },
    { "{\"enum\":[1,\"a\"]}", "1.0", NULL },
    { "{\"const\":null}", "0", "must be null" },
    { "{\"minimum\":1}", "0", "must be at least 1" },
    { "{\"maximum\":2}", "3", "must be at most 2" },
    { "{\"exclusiveMinimum\":1}", "1", "must be greater than 1" },
    { "{\"exclusiveMaximum\":2.5}", "2.5", "must be less than 2.5" },
    { "{\"multipleOf\":0.01}", "0.075", "must be a multiple of 0.01" },
    { "{\"multipleOf\":0.01}", "19.99", NULL },
    { "{\"minLength\":2}", "\"\xc3\xb6\"", "must have at least 2 characters" },
    { "{\"maxLength\":1}", "\"ab\"", "must have at most 1 character" },
    { "{\"pattern\":\"^[a-z]+$\"}", "\"a1\"", "must match the pattern ^[a-z]+$" },
    { "{\"minItems\":1}", "[]", "must have at least 1 item" },
    { "{\"maxItems\":1}", "[1,2]", "must have at most 1 item" },
    { "{\"uniqueItems\":true}", "[0,{\"a\":1,\"b\":[2]},3,{\"b\":[2.0],\"a\":1}]",
      "must not have equal items, but [1] equals [3]" },
    { "{\"contains\":{\"type\":\"string\"},\"minContains\":2}", "[1,\"a\"]",
      "must have at least 2 items that fit the schema of contains" },
    { "{\"minProperties\":1}", "{}", "must have at least 1 member" },
    { "{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}",
      "`ab` has a name that is not allowed: the name must have at most 1 character" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "`b` is required beside a" },
    { "{\"not\":{\"type\":\"string\"}}", "\"a\"", "must not fit the schema of not" },
    { "{\"if\":{\"type\":\"string\"},\"then\":{\"minLength\":2}}", "\"a\"", "must have at least 2 characters" },
    { "{\"anyOf\":[{\"type\":\"string\"},{\"required\":[\"a\"],\"type\":\"object\"}]}", "{}",
      "must fit at least one schema of anyOf: 1. must be a string; 2. a is required" },
    { "{\"oneOf\":[{\"type\":\"string\"},{\"minimum\":2}]}", "1",
      "must fit one schema of oneOf: 1. must be a string; 2. must be at least 2" },
    { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"null\"},{\"type\":\"number\"}]}", "1",
      "must fit only one schema of oneOf, but fits number 1 and number 3" },
    { "{\"$ref\":\"#/$defs/a~1b%20c\",\"$defs\":{\"a/b c\":{\"type\":\"null\"}}}", "1", "must be null" },
    { "{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"required\":[\"n\"]}", "{\"n\":1,\"next\":{\"next\":{}}}",
      "`next.n` is required" },
};

static void violations_name_the_path_and_the_rule(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(violations); i++) {
        struct err e = { 0 };
        int r = json_schema_check(parse(a, violations[i].schema), parse(a, violations[i].value), "", &e);

        assert_int_equal(r, violations[i].words ? -EINVAL : 0);
        assert_string_equal(e.text, violations[i].words ? violations[i].words : "");
        assert_int_equal(json_schema_check(parse(a, violations[i].schema), parse(a, violations[i].value), "", NULL), r);
    }
}

static void every_violation_is_reported_below_the_path(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    struct err e = { 0 };

    assert_int_equal(json_schema_compile(a,
                                         parse(a, "{\"required\":[\"city\"],\"properties\":{\"n\":{\"minimum\":1},"
                                                  "\"tags\":{\"items\":{\"type\":\"string\"}}}}"),
                                         "", &schema, &e),
                     0);
    assert_int_equal(json_schema_apply(schema, parse(a, "{\"n\":0,\"tags\":[1,\"a\",2]}"), "arguments", &e), -EINVAL);
    assert_int_equal(e.n_fields, 4);
    assert_string_equal(e.text, "`arguments.city` is required");
    assert_string_equal(e.fields[1].field, "arguments.n");
    assert_string_equal(e.fields[1].rule, "must be at least 1");
    assert_string_equal(e.fields[3].field, "arguments.tags[2]");
}

static void no_more_violations_are_stored_than_an_error_holds(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "[0");
    for (int i = 0; i < 100; i++)
        buf_add_str(&text, ",0");
    buf_add_str(&text, "]");
    assert_int_equal(
        json_schema_check(parse(a, "{\"items\":{\"minimum\":1}}"), parse_slice(a, buf_slice(&text)), "", &e), -EINVAL);
    assert_int_equal(e.n_fields, ERR_MAX_FIELDS);
    buf_clear(&text);
}

static void integers_of_64_bits_stay_exact(void **state)
{
    static const struct {
        const char *schema, *value;
        bool is_valid;
    } cases[] = {
        { "{\"const\":9007199254740993}", "9007199254740992", false },
        { "{\"const\":9007199254740993}", "9007199254740993", true },
        { "{\"const\":9007199254740992}", "9007199254740992.0", true },
        { "{\"minimum\":9223372036854775807}", "9223372036854775806", false },
        { "{\"maximum\":18446744073709551614}", "18446744073709551615", false },
        { "{\"enum\":[18446744073709551615]}", "18446744073709551614", false },
        { "{\"enum\":[18446744073709551615]}", "18446744073709551615", true },
        { "{\"uniqueItems\":true}", "[9223372036854775807,9223372036854775806]", true },
        { "{\"uniqueItems\":true}", "[1,1.0]", false },
        { "{\"uniqueItems\":true}", "[1,true,\"1\",0,false,null,[],{},\"\"]", true },
        { "{\"uniqueItems\":true}", "[0,-0.0]", false },
        { "{\"exclusiveMaximum\":9007199254740993}", "9007199254740992.5", true },
        { "{\"maximum\":1e300}", "18446744073709551615", true },
        { "{\"minimum\":-1e300}", "-9223372036854775808", true },
        { "{\"maximum\":0.5}", "0", true },
        { "{\"maximum\":-0.5}", "0", false },
        { "{\"multipleOf\":3}", "9223372036854775807", false },
        { "{\"multipleOf\":7}", "9223372036854775807", true },
        { "{\"multipleOf\":1e-300}", "1e300", true },
        { "{\"multipleOf\":3e-300}", "1e300", false },
        { "{\"multipleOf\":1e300}", "1e-300", false },
        { "{\"multipleOf\":5}", "0", true },
        { "{\"type\":\"integer\"}", "1e300", true },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(json_schema_check(parse(a, cases[i].schema), parse(a, cases[i].value), "", NULL),
                         cases[i].is_valid ? 0 : -EINVAL);
}

static void a_schema_that_cannot_be_used_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *schema, *field, *words;
    } cases[] = {
        { "3", "s", "must be a schema: an object, true or false" },
        { "{\"items\":3}", "s.items", "must be a schema" },
        { "{\"$schema\":\"https://example.org/my-schema\"}", "s", "has the $schema https://example.org/my-schema" },
        { "{\"properties\":{\"a\":{\"type\":\"strng\"}}}", "s.properties.a.type", "not strng" },
        { "{\"type\":[]}", "s.type", "must be a type or a list of types" },
        { "{\"required\":true}", "s.required", "must be a list" },
        { "{\"required\":[1]}", "s.required", "must be a list of names" },
        { "{\"exclusiveMinimum\":true}", "s.exclusiveMinimum", "must be a number" },
        { "{\"minLength\":-1}", "s.minLength", "must be a whole number of at least 0" },
        { "{\"minItems\":1.5}", "s.minItems", "must be a whole number of at least 0" },
        { "{\"multipleOf\":0}", "s.multipleOf", "must be greater than 0" },
        { "{\"anyOf\":[]}", "s.anyOf", "must hold at least one schema" },
        { "{\"allOf\":[{},{\"enum\":3}]}", "s.allOf[1].enum", "must be a list" },
        { "{\"pattern\":\"(a\"}", "s.pattern", "is not a pattern that can be used: it cannot be used: missing" },
        { "{\"patternProperties\":{\"a++\":{}}}", "s.patternProperties.a++", "nothing before it to repeat" },
        { "{\"$ref\":\"https://example.org/x.json#/a\"}", "s.$ref",
          "refers to https://example.org/x.json#/a outside of this schema; such references are never followed" },
        { "{\"$id\":\"https://example.org/dir/one\",\"items\":{\"$ref\":\"two\"}}", "s.items.$ref",
          "refers to two outside" },
        { "{\"$ref\":\"file:///etc/passwd\"}", "s.$ref", "refers to file:///etc/passwd outside" },
        { "{\"$ref\":\"#/nowhere\"}", "s.$ref", "refers to #/nowhere, which this schema does not have" },
        { "{\"$ref\":\"#nowhere\"}", "s.$ref", "which this schema does not have" },
        { "{\"$ref\":\"#/a%\",\"a%\":{}}", "s.$ref", "which this schema does not have" },
        { "{\"$ref\":\"#/allOf/01\",\"allOf\":[{},{}]}", "s.$ref", "which this schema does not have" },
        { "{\"$ref\":\"#/allOf/2\",\"allOf\":[{},{}]}", "s.$ref", "which this schema does not have" },
        { "{\"$ref\":\"#/type\",\"type\":\"string\"}", "s.$ref", "must be a schema" },
        { "{\"$ref\":7}", "s.$ref", "must be a string" },
        { "{\"$recursiveRef\":\"#\"}", "s.$recursiveRef", "draft 2019-09" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct json_schema *schema = NULL;
        struct err e = { 0 };

        assert_int_equal(json_schema_compile(a, parse(a, cases[i].schema), "s", &schema, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
        if (!strstr(e.fields[0].rule, cases[i].words))
            fail_msg("%s: %s", cases[i].schema, e.fields[0].rule);
        assert_null(schema);
        assert_int_equal(json_schema_compile(a, parse(a, cases[i].schema), "s", &schema, NULL), -EINVAL);
    }
}

/* What tools without $schema, written for draft-07, have. */
static void a_tuple_of_draft_07_is_understood_without_its_dialect(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value schema = parse(a, "{\"items\":[{\"type\":\"string\"}],\"additionalItems\":false}");

    assert_int_equal(json_schema_check(schema, parse(a, "[\"a\"]"), "", NULL), 0);
    assert_int_equal(json_schema_check(schema, parse(a, "[1]"), "", NULL), -EINVAL);
    assert_int_equal(json_schema_check(schema, parse(a, "[\"a\",1]"), "", NULL), -EINVAL);
}

static void references_reach_what_no_keyword_names(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value schema = parse(a, "{\"$ref\":\"#/components/schemas/a\",\"components\":{\"schemas\":{\"a\":"
                                        "{\"$ref\":\"#/components/schemas/b\"},\"b\":{\"type\":\"string\"}}}}");

    assert_int_equal(json_schema_check(schema, parse(a, "\"x\""), "", NULL), 0);
    assert_int_equal(json_schema_check(schema, parse(a, "1"), "", NULL), -EINVAL);
}

static void a_schema_that_would_never_end_ends(void **state)
{
    static const char *const schemas[] = {
        "{\"$ref\":\"#\"}",
        "{\"$dynamicRef\":\"#a\",\"$dynamicAnchor\":\"a\"}",
        "{\"not\":{\"$ref\":\"#\"}}",
        "{\"anyOf\":[{\"$ref\":\"#/x\"},{\"$ref\":\"#/anyOf/0\"}],\"allOf\":[{\"$ref\":\"#/x\"}],\"x\":{\"anyOf\":["
        "{\"$ref\":\"#/x\"},{\"$ref\":\"#/x\"},{\"$ref\":\"#/x\"}]}}",
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(schemas); i++) {
        struct err e = { 0 };

        assert_int_equal(json_schema_check(parse(a, schemas[i]), parse(a, "1"), "v", &e), -EINVAL);
        assert_non_null(strstr(e.text, "schemas within each other"));
    }
}

/* ---- limits at their edges ---- */

/* before, the piece n times (% is its number), after */
static struct json_value repeat(struct arena *a, const char *before, const char *piece, int n, const char *after)
{
    struct json_value v;
    struct buf text;

    buf_init(&text, MIB(64));
    buf_add_str(&text, before);
    for (int i = 0; i < n; i++) {
        buf_add_str(&text, i > 0 ? "," : "");
        for (const char *p = piece; *p; p++) {
            if (*p == '%')
                buf_printf(&text, "%d", i);
            else
                buf_add_char(&text, *p);
        }
    }
    buf_add_str(&text, after);
    v = parse_slice(a, buf_slice(&text));
    buf_clear(&text);
    return v;
}

static void assert_compiles_up_to(const char *before, const char *piece, int n, const char *after, const char *words)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    struct err e = { 0 };

    if (json_schema_compile(a, repeat(a, before, piece, n, after), "", &schema, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(json_schema_compile(a, repeat(a, before, piece, n + 1, after), "", &schema, &e), -EINVAL);
    if (!strstr(e.text, words))
        fail_msg("%s", e.text);
}

static void a_schema_is_read_up_to_its_limits(void **state)
{
    assert_compiles_up_to("{\"$defs\":{", "\"%\":true", LIMIT_SCHEMAS - 1, "}}", "than the 20000 schemas");
    assert_compiles_up_to("{\"patternProperties\":{", "\"%\":true", LIMIT_SCHEMA_PATTERNS, "}}",
                          "than the 256 patterns");
}

static void a_schema_is_read_up_to_its_number_of_elements(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    int low = 1000, high = LIMIT_SCHEMA_VALUES;
    struct err e = { 0 };

    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (json_schema_compile(a, repeat(a, "{\"required\":[", "\"a\"", middle, "]}"), "", &schema, NULL) == 0)
            low = middle;
        else
            high = middle;
    }
    assert_in_range(high, LIMIT_SCHEMA_VALUES - 100, LIMIT_SCHEMA_VALUES);
    assert_int_equal(json_schema_compile(a, repeat(a, "{\"required\":[", "\"a\"", high, "]}"), "", &schema, &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "has more than the 200000 elements"));
}

static void a_check_takes_its_steps_and_no_more(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    struct err e = { 0 };

    assert_int_equal(json_schema_compile(a, parse(a, "{\"items\":{\"type\":\"integer\"}}"), "", &schema, NULL), 0);
    assert_int_equal(json_schema_apply(schema, repeat(a, "[", "1", LIMIT_SCHEMA_STEPS - 1, "]"), "v", &e), 0);
    assert_int_equal(json_schema_apply(schema, repeat(a, "[", "1", LIMIT_SCHEMA_STEPS, "]"), "v", &e), -EINVAL);
    assert_string_equal(e.text, "`v` takes more than the 500000 steps of checking that are allowed");
}

/* n schemas within each other, by references */
static struct json_value chain(struct arena *a, int n)
{
    struct json_value v;
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "{\"$ref\":\"#/$defs/1\",\"$defs\":{");
    for (int i = 1; i < n - 1; i++)
        buf_printf(&text, "\"%d\":{\"$ref\":\"#/$defs/%d\"},", i, i + 1);
    buf_printf(&text, "\"%d\":{\"type\":\"null\"}}}", n - 1);
    v = parse_slice(a, buf_slice(&text));
    buf_clear(&text);
    return v;
}

static void schemas_are_applied_within_each_other_up_to_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };

    assert_int_equal(json_schema_check(chain(a, LIMIT_SCHEMA_DEPTH), parse(a, "null"), "v", &e), 0);
    assert_int_equal(json_schema_check(chain(a, LIMIT_SCHEMA_DEPTH + 1), parse(a, "null"), "v", &e), -EINVAL);
    assert_string_equal(e.text, "`v` needs more than the 256 schemas within each other that are allowed");
}

static void a_slow_pattern_is_a_violation_and_no_wait(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    static const char *const schemas[] = {
        "{\"pattern\":\"^(a+)+$\"}",           "{\"pattern\":\"^(a|a)*$\"}",
        "{\"pattern\":\"(?:.*a){12}[!;]\"}",   "{\"items\":{\"pattern\":\"^(a+)+$\"}}",
        "{\"not\":{\"pattern\":\"^(a+)+$\"}}", "{\"patternProperties\":{\"^(a+)+$\":false}}",
    };
    struct json_value texts[] = {
        parse(a, "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?\""),
        parse(a, "[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?\"]"),
        parse(a, "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?\":1}"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(schemas); i++) {
        struct err e = { 0 };
        int r = json_schema_check(parse(a, schemas[i]), texts[i == 3 ? 1 : i == 5 ? 2 : 0], "v", &e);

        assert_int_equal(r, -EINVAL);
        assert_non_null(strstr(e.text, "a pattern of the schema is too slow"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(violations_name_the_path_and_the_rule),
        cmocka_unit_test(every_violation_is_reported_below_the_path),
        cmocka_unit_test(no_more_violations_are_stored_than_an_error_holds),
        cmocka_unit_test(integers_of_64_bits_stay_exact),
        cmocka_unit_test(a_schema_that_cannot_be_used_is_refused_with_the_reason),
        cmocka_unit_test(a_tuple_of_draft_07_is_understood_without_its_dialect),
        cmocka_unit_test(references_reach_what_no_keyword_names),
        cmocka_unit_test(a_schema_that_would_never_end_ends),
        cmocka_unit_test(a_schema_is_read_up_to_its_limits),
        cmocka_unit_test(a_schema_is_read_up_to_its_number_of_elements),
        cmocka_unit_test(a_check_takes_its_steps_and_no_more),
        cmocka_unit_test(schemas_are_applied_within_each_other_up_to_the_limit),
        cmocka_unit_test(a_slow_pattern_is_a_violation_and_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
