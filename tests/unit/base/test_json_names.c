#include "base/json_names.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stddef.h>

static struct json_value parse(struct arena *a, const char *text)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    return v;
}

static void members_are_found_by_name_and_the_first_of_equal_ones_counts(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_names names = json_names_of(a, parse(a, "{\"b\":1,\"a\":2,\"b\":3,\"ab\":[4],\"\":5,\"a\\u0000b\":6}"));

    assert_int_equal(names.n, 6);
    assert_int_equal(json_int(json_names_get(&names, SLICE_LIT("b"))), 1);
    assert_int_equal(json_int(json_names_get(&names, SLICE_LIT("a"))), 2);
    assert_int_equal(json_length(json_names_get(&names, SLICE_LIT("ab"))), 1);
    assert_int_equal(json_int(json_names_get(&names, SLICE_LIT(""))), 5);
    assert_int_equal(json_int(json_names_get(&names, SLICE_LIT("a\0b"))), 6);
    assert_true(json_is_absent(json_names_get(&names, SLICE_LIT("c"))));
}

static void of_an_array_the_texts_are_found(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_names names = json_names_of(a, parse(a, "[\"z\",1,null,\"y\",[\"x\"],\"z\"]"));

    assert_int_equal(names.n, 3);
    assert_true(slice_eq_str(json_string(json_names_get(&names, SLICE_LIT("y"))), "y"));
    assert_true(json_is_absent(json_names_get(&names, SLICE_LIT("x"))));
    names = json_names_of(a, parse(a, "7"));
    assert_int_equal(names.n, 0);
    assert_true(json_is_absent(json_names_get(&names, SLICE_LIT("7"))));
}

/* With few or many members and containers, an index finds the same as json_get(). */
static void an_index_finds_what_json_get_finds(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_index *index = json_index_new(a);
    struct json_value all, object, member;
    struct slice name;
    struct buf text;

    buf_init(&text, MIB(1));
    for (size_t i = 0; i < 200; i++) {
        buf_printf(&text, "%s{", i ? "," : "[");
        for (size_t k = 0; k < i % 20; k++)
            buf_printf(&text, "%s\"m%zu\":%zu", k ? "," : "", k * 7 % 20, i + k);
        buf_add_str(&text, "}");
    }
    buf_add_str(&text, "]");
    all = parse(a, buf_str(&text));
    buf_clear(&text);
    for (size_t round = 0; round < 2; round++)
        for (struct json_iter it = json_iter(all); json_next(&it, NULL, &object);) {
            for (struct json_iter inner = json_iter(object); json_next(&inner, &name, &member);)
                assert_int_equal(json_int(json_index_get(index, object, name)), json_int(json_get(object, name.p)));
            assert_int_equal(json_type(json_index_get(index, object, SLICE_LIT("m20"))), JSON_ABSENT);
        }
    assert_int_equal(json_type(json_index_get(index, (struct json_value){ 0 }, SLICE_LIT("a"))), JSON_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name_and_the_first_of_equal_ones_counts),
        cmocka_unit_test(of_an_array_the_texts_are_found),
        cmocka_unit_test(an_index_finds_what_json_get_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
