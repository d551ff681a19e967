/* Records of peers that support flat fields only: the tokens of a record, and the tokens that a condition requires. */
#include "vector/remote/remote_record.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct json_value tokens_of_record(struct arena *a, const char *metadata, const char *uuid)
{
    const struct vector_record record = { "a", NULL, metadata };
    struct json_value v = { 0 };
    struct remote_body b;

    remote_begin(&b);
    remote_add_members(&b.w, "sdk_a_b", &record, 2.5, uuid);
    json_end(&b.w);
    assert_int_equal(json_parse(a, buf_slice(&b.text), &v, NULL), 0);
    buf_clear(&b.text);
    assert_string_equal(json_cstr(json_get(v, REMOTE_ID)), "a");
    assert_string_equal(json_cstr(json_get(v, REMOTE_NAMESPACE)), "sdk_a_b");
    assert_string_equal(json_cstr(json_get(v, REMOTE_JSON)), metadata ? metadata : "{}");
    return json_get(v, REMOTE_TOKENS);
}

static bool has(struct json_value tokens, const char *wanted)
{
    struct json_value token;

    for (struct json_iter it = json_iter(tokens); json_next(&it, NULL, &token);)
        if (strcmp(json_cstr(token), wanted) == 0)
            return true;
    return false;
}

static struct vector_filter filter_of(struct arena *a, const char *text)
{
    struct vector_filter f = { 0 };
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    assert_int_equal(vector_filter_parse(a, v, &f, NULL), 0);
    assert_int_equal(f.n, 1);
    return f;
}

static bool is_found(struct arena *a, const char *metadata, const char *filter)
{
    struct json_value tokens = tokens_of_record(a, metadata, NULL);
    struct vector_filter f = filter_of(a, filter);
    struct field_strings wanted;

    assert_true(remote_has_tokens(&f.items[0]));
    wanted = remote_tokens_of(a, &f.items[0]);
    for (size_t i = 0; i < wanted.n; i++)
        if (has(tokens, wanted.items[i]))
            return true;
    return false;
}

static void a_record_is_found_by_equality_of_strings_numbers_and_booleans(void **state)
{
    static const struct {
        const char *metadata, *filter;
        bool is_found;
    } cases[] = {
        { "{\"k\":\"x\"}", "{\"k\":\"x\"}", true },
        { "{\"k\":\"x\"}", "{\"k\":\"y\"}", false },
        { "{\"k\":\"x\"}", "{\"l\":\"x\"}", false },
        { "{\"k\":1}", "{\"k\":1.0}", true },
        { "{\"k\":1}", "{\"k\":\"1\"}", false },
        { "{\"k\":-0.0}", "{\"k\":0}", true },
        { "{\"k\":true}", "{\"k\":true}", true },
        { "{\"k\":true}", "{\"k\":\"true\"}", false },
        { "{\"k\":false}", "{\"k\":true}", false },
        { "{\"k\":\"x\"}", "{\"k\":{\"$in\":[\"y\",1,\"x\"]}}", true },
        { "{\"k\":\"z\"}", "{\"k\":{\"$in\":[\"y\",1,\"x\"]}}", false },
        { "{\"k\":{\"l\":\"x\"}}", "{\"k\":\"x\"}", false },
        { "{\"k\":9007199254740993}", "{\"k\":9007199254740992}", true }, /* Hearth compares again */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();

        if (is_found(a, cases[i].metadata, cases[i].filter) != cases[i].is_found)
            fail_msg("%s: %s", cases[i].metadata, cases[i].filter);
    }
}

static void what_equality_does_not_decide_has_no_tokens(void **state)
{
    static const char *const filters[] = {
        "{\"k\":{\"$ne\":1}}",      "{\"k\":{\"$gt\":1}}",        "{\"k\":null}",
        "{\"k\":{\"$in\":[null]}}", "{\"k\":{\"$in\":[1,null]}}", "{\"k\":{\"$in\":[]}}"
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
        if (remote_has_tokens(&filter_of(a, filters[i]).items[0]))
            fail_msg("%s", filters[i]);
}

static void a_record_of_more_members_than_the_limit_matches_whatever_is_asked(void **state)
{
    for (int n = REMOTE_TOKENS_MAX; n <= REMOTE_TOKENS_MAX + 1; n++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *metadata = "{\"k0\":0";
        struct json_value tokens;

        for (int i = 1; i < n; i++)
            metadata = arena_printf(a, "%s,\"k%d\":%d", metadata, i, i);
        metadata = arena_printf(a, "%s}", metadata);
        tokens = tokens_of_record(a, metadata, "uuid");
        assert_int_equal(json_length(tokens), n <= REMOTE_TOKENS_MAX ? n + 1 : 2);
        assert_true(has(tokens, "uuid"));
        assert_int_equal(has(tokens, REMOTE_MANY), n > REMOTE_TOKENS_MAX);
        assert_int_equal(is_found(a, metadata, "{\"k7\":8}"), n > REMOTE_TOKENS_MAX);
    }
}

static void names_and_ids_of_peers_are_held_against_their_form(void **state)
{
    static const char uuid[] = "11111111-1111-4111-8111-111111111111";
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *name = remote_hashed_name(a, "sdk_a_b", "Hearth_");
    const struct field_strings both = { (const char *const[]){ "a", "b" }, 2 };

    assert_true(remote_is_hashed_name(name, "Hearth_"));
    assert_false(remote_is_hashed_name(name, "hearth_") || remote_is_hashed_name(NULL, "Hearth_") ||
                 remote_is_hashed_name("Hearth_", "Hearth_") ||
                 remote_is_hashed_name(arena_printf(a, "%sa", name), "Hearth_") ||
                 remote_is_hashed_name("Hearth_/../../../../../../../../../../../../../", "Hearth_"));
    assert_true(remote_is_uuid(uuid));
    assert_false(remote_is_uuid(NULL) || remote_is_uuid("") || remote_is_uuid(uuid + 1) ||
                 remote_is_uuid("../../../../../../../../../../../../"));
    assert_string_equal(remote_quoted(a, &both), "\"a\",\"b\"");
    assert_true(json_is_absent(remote_first(json_get(tokens_of_record(a, NULL, NULL), "none"))));
}

static int prepare(void **state)
{
    return hash_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_found_by_equality_of_strings_numbers_and_booleans),
        cmocka_unit_test(what_equality_does_not_decide_has_no_tokens),
        cmocka_unit_test(a_record_of_more_members_than_the_limit_matches_whatever_is_asked),
        cmocka_unit_test(names_and_ids_of_peers_are_held_against_their_form),
    };

    return cmocka_run_group_tests(tests, prepare, NULL);
}
