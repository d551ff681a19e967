#include "vector/vector_filter.h"
#include "rig.h"

static int parse(struct arena *a, const char *text, struct vector_filter *ret, struct err *e)
{
    struct json_value value = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &value, e), 0);
    return vector_filter_parse(a, value, ret, e);
}

static const struct {
    const char *filter, *metadata;
    bool matches;
} cases[] = {
    { "{}", "{}", true },
    { "null", "{\"a\":1}", true },
    { "{\"a\":\"x\"}", "{\"a\":\"x\",\"b\":2}", true },
    { "{\"a\":\"x\"}", "{\"a\":\"X\"}", false },
    { "{\"a\":\"x\"}", "{}", false },
    { "{\"a\":1}", "{\"a\":1.0}", true },
    { "{\"a\":1}", "{\"a\":\"1\"}", false },
    { "{\"a\":9007199254740993}", "{\"a\":9007199254740992}", false },
    { "{\"a\":9007199254740993}", "{\"a\":9007199254740993}", true },
    { "{\"a\":true}", "{\"a\":true}", true },
    { "{\"a\":true}", "{\"a\":1}", false },
    { "{\"a\":null}", "{}", true },
    { "{\"a\":null}", "{\"a\":null}", true },
    { "{\"a\":null}", "{\"a\":0}", false },
    { "{\"a\":\"x\"}", "{\"a\":[\"x\"]}", false },
    { "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}", true },
    { "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", false },
    { "{\"a\":{\"$eq\":3}}", "{\"a\":3}", true },
    { "{\"a\":{\"$ne\":3}}", "{\"a\":3.0}", false },
    { "{\"a\":{\"$ne\":3}}", "{\"a\":4}", true },
    { "{\"a\":{\"$ne\":3}}", "{\"a\":\"3\"}", true },
    { "{\"a\":{\"$ne\":3}}", "{}", true },
    { "{\"a\":{\"$ne\":null}}", "{}", false },
    { "{\"a\":{\"$ne\":null}}", "{\"a\":[]}", true },
    { "{\"a\":{\"$gt\":2}}", "{\"a\":2}", false },
    { "{\"a\":{\"$gt\":2}}", "{\"a\":2.5}", true },
    { "{\"a\":{\"$gt\":2}}", "{\"a\":\"9\"}", false },
    { "{\"a\":{\"$gte\":2}}", "{\"a\":2}", true },
    { "{\"a\":{\"$lt\":2}}", "{\"a\":2}", false },
    { "{\"a\":{\"$lt\":2}}", "{}", false },
    { "{\"a\":{\"$lte\":2}}", "{\"a\":2}", true },
    { "{\"a\":{\"$gte\":2,\"$lt\":5}}", "{\"a\":4}", true },
    { "{\"a\":{\"$gte\":2,\"$lt\":5}}", "{\"a\":5}", false },
    { "{\"a\":{\"$gt\":\"2026-01\"}}", "{\"a\":\"2026-02-03\"}", true },
    { "{\"a\":{\"$gt\":\"a\"}}", "{\"a\":\"ä\"}", true },
    { "{\"a\":{\"$lt\":18446744073709551615}}", "{\"a\":9223372036854775807}", true },
    { "{\"a\":{\"$in\":[1,\"x\",null]}}", "{\"a\":\"x\"}", true },
    { "{\"a\":{\"$in\":[1,\"x\",null]}}", "{}", true },
    { "{\"a\":{\"$in\":[1,\"x\"]}}", "{\"a\":2}", false },
    { "{\"a\":{\"$in\":[]}}", "{\"a\":2}", false },
    { "{\"a.b\":1}", "{\"a\":{\"b\":1}}", false },
    { "{\"a.b\":1}", "{\"a.b\":1}", true },
};

static void a_filter_matches_what_its_conditions_say(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_filter f = { 0 };
        struct json_value metadata = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse(a, cases[i].filter, &f, &e), 0);
        assert_int_equal(json_parse(a, slice_of(cases[i].metadata), &metadata, &e), 0);
        if (vector_filter_matches(&f, metadata) != cases[i].matches)
            fail_msg("%s on %s", cases[i].filter, cases[i].metadata);
    }
}

static const struct {
    const char *filter, *field, *rule;
} refused[] = {
    { "[]", "filter", "must be an object" },
    { "\"a\"", "filter", "must be an object" },
    { "{\"a\":[1]}", "filter.a", "must be a string, a number" },
    { "{\"a\":{}}", "filter.a", "must name an operator" },
    { "{\"a\":{\"$regex\":\"x\"}}", "filter.a", "must use $eq" },
    { "{\"a\":{\"b\":1}}", "filter.a", "must use $eq" },
    { "{\"a\":{\"$gt\":true}}", "filter.a", "must compare with a number or a string" },
    { "{\"a\":{\"$gt\":null}}", "filter.a", "must compare with a number or a string" },
    { "{\"a\":{\"$in\":1}}", "filter.a", "must give $in an array" },
    { "{\"a\":{\"$in\":[[1]]}}", "filter.a", "must give $in strings" },
    { "{\"$and\":[]}", "filter", "no $ in front" },
    { "{\"a\\u0000b\":1}", "filter", "no NUL inside" },
};

static void what_is_no_filter_is_refused_in_words(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_filter f = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse(a, refused[i].filter, &f, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, refused[i].field);
        assert_non_null(strstr(e.fields[0].rule, refused[i].rule));
    }
}

static char *many(struct arena *a, size_t n, const char *open, const char *close, bool has_names)
{
    struct buf text;
    char *copy;

    buf_init(&text, 1 << 20);
    buf_add_str(&text, open);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, has_names ? "%s\"k%zu\":1" : "%s%zu", i ? "," : "", i);
    buf_add_str(&text, close);
    copy = arena_slicedup(a, buf_slice(&text));
    buf_clear(&text);
    return copy;
}

static void conditions_and_choices_end_at_their_limits(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_filter f = { 0 };

    assert_int_equal(parse(a, many(a, LIMIT_VECTOR_CONDITIONS, "{", "}", true), &f, NULL), 0);
    assert_int_equal(f.n, LIMIT_VECTOR_CONDITIONS);
    assert_int_equal(parse(a, many(a, LIMIT_VECTOR_CONDITIONS + 1, "{", "}", true), &f, NULL), -EINVAL);
    assert_int_equal(parse(a, many(a, LIMIT_VECTOR_CHOICES, "{\"a\":{\"$in\":[", "]}}", false), &f, NULL), 0);
    assert_int_equal(parse(a, many(a, LIMIT_VECTOR_CHOICES + 1, "{\"a\":{\"$in\":[", "]}}", false), &f, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_matches_what_its_conditions_say),
        cmocka_unit_test(what_is_no_filter_is_refused_in_words),
        cmocka_unit_test(conditions_and_choices_end_at_their_limits),
    };

    return cmocka_run_group_tests_name("vector_filter", tests, NULL, NULL);
}
