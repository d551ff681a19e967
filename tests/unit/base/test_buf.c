#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static void an_empty_buffer_is_an_empty_string(void **state)
{
    struct buf b;

    buf_init(&b, 10);
    assert_string_equal(buf_str(&b), "");
    assert_int_equal(buf_slice(&b).n, 0);
    assert_int_equal(buf_check(&b, NULL), 0);
    buf_clear(&b);
    buf_clear(NULL);
}

static void every_way_of_adding_appends(void **state)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add(&b, "ab\0", 2);
    buf_add_str(&b, "cd");
    buf_add_slice(&b, SLICE_LIT("ef"));
    buf_add_char(&b, 'g');
    buf_printf(&b, "%d-%s", 12, "h");
    buf_add(&b, NULL, 0);
    buf_add_slice(&b, (struct slice){ 0 });
    assert_string_equal(buf_str(&b), "abcdefg12-h");
    assert_int_equal(b.n, 11);
    buf_clear(&b);
}

static void bytes_may_be_zero(void **state)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.n, 3);
    assert_memory_equal(b.p, "a\0b", 4);
    buf_clear(&b);
}

static void bytes_move_into_an_arena(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf b;
    char *empty, *bytes;

    buf_init(&b, 5);
    empty = buf_to_arena(&b, a);
    assert_string_equal(empty, "");
    buf_add(&b, "a\0b", 3);
    bytes = buf_to_arena(&b, a);
    assert_memory_equal(bytes, "a\0b", 4);
    assert_null(b.p);
    buf_add_str(&b, "12345");
    buf_add_char(&b, '6');
    assert_string_equal(buf_to_arena(&b, a), "12345");
    assert_int_equal(buf_check(&b, NULL), 0); /* usable again, with the same maximum */
    assert_string_equal(bytes, "a");
}

static void the_maximum_fits_and_one_more_byte_overflows(void **state)
{
    struct err e = { 0 };
    struct buf b;

    buf_init(&b, 5);
    buf_add_str(&b, "12345");
    assert_int_equal(buf_check(&b, &e), 0);
    buf_add_char(&b, '6');
    assert_true(b.overflowed);
    assert_int_equal(buf_check(&b, &e), -E2BIG);
    assert_string_equal(e.code, "TOO_LARGE");
    assert_string_equal(buf_str(&b), "12345");
    buf_clear(&b);
}

static void after_the_overflow_even_small_writes_are_dropped(void **state)
{
    struct buf b;

    buf_init(&b, 5);
    buf_add_str(&b, "1234");
    buf_add_str(&b, "too much");
    buf_add_char(&b, '5');
    buf_printf(&b, "%d", 5);
    assert_null(buf_reserve(&b, 0));
    assert_string_equal(buf_str(&b), "1234");
    buf_clear(&b);
}

static void a_buffer_that_was_reset_or_cleared_starts_anew_with_its_maximum(void **state)
{
    struct buf b;

    buf_init(&b, 5);
    buf_add_str(&b, "123456");
    buf_reset(&b);
    buf_add_str(&b, "12345");
    assert_int_equal(buf_check(&b, NULL), 0);
    buf_add_str(&b, "6");
    buf_clear(&b);
    assert_false(b.overflowed);
    buf_add_str(&b, "123456");
    assert_int_equal(buf_check(&b, NULL), -E2BIG);
    buf_clear(&b);
}

static void a_maximum_without_bound_never_wraps(void **state)
{
    struct buf b;

    buf_init(&b, SIZE_MAX);
    buf_add_str(&b, "x");
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_string_equal(buf_str(&b), "x");
    buf_clear(&b);
}

static void long_prints_are_whole_on_both_sides_of_the_small_buffer(void **state)
{
    struct buf b;

    buf_init(&b, 4096);
    for (int width = 254; width <= 258; width++) {
        buf_reset(&b);
        buf_printf(&b, "%0*d", width, 7);
        assert_int_equal(b.n, width);
        assert_int_equal(b.p[width - 1], '7');
        assert_int_equal(b.p[width], '\0');
    }
    buf_clear(&b);
}

static void a_print_that_does_not_fit_leaves_nothing_behind(void **state)
{
    struct buf b;

    buf_init(&b, 300);
    buf_printf(&b, "%0301d", 7);
    assert_int_equal(b.n, 0);
    assert_true(b.overflowed);
    buf_clear(&b);
}

static void reserved_room_may_be_used_in_part(void **state)
{
    struct buf b;
    char *room;

    buf_init(&b, 100);
    buf_add_str(&b, "ab");
    room = buf_reserve(&b, 50);
    memset(room, 'x', 50);
    b.n += 3;
    assert_string_equal(buf_str(&b), "abxxx");
    buf_clear(&b);
}

static void consume_drops_from_the_front(void **state)
{
    struct buf b;

    buf_init(&b, 100);
    buf_consume(&b, 3);
    buf_add_str(&b, "abcdef");
    buf_consume(&b, 0);
    buf_consume(&b, 4);
    assert_string_equal(buf_str(&b), "ef");
    buf_consume(&b, 99);
    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
}

static void take_hands_over_and_empties(void **state)
{
    AUTO(freep) char *some = NULL, *none = NULL;
    struct buf b;

    buf_init(&b, 100);
    none = buf_take(&b);
    buf_add_str(&b, "abc");
    some = buf_take(&b);
    assert_string_equal(none, "");
    assert_string_equal(some, "abc");
    assert_string_equal(buf_str(&b), "");
    assert_int_equal(b.max, 100);
}

static void growing_keeps_every_byte(void **state)
{
    struct buf b;

    buf_init(&b, 100000);
    for (int i = 0; i < 100000; i++)
        buf_add_char(&b, (char)('a' + i % 26));
    assert_int_equal(buf_check(&b, NULL), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(b.p[i], 'a' + i % 26);
    buf_clear(&b);
}

static void a_soft_buffer_that_memory_does_not_allow_overflows_and_keeps_what_it_has(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *bytes = arena_alloc(a, 2 << 20);
    struct err e = { 0 };
    struct buf b;

    buf_init_soft(&b, MIB(4), (size_t)1 << 60);
    buf_add_str(&b, "small");
    assert_int_equal(buf_check(&b, &e), 0);
    buf_add(&b, bytes, 2 << 20);
    assert_int_equal(buf_check(&b, &e), -ENOMEM);
    assert_string_equal(e.code, "OUT_OF_MEMORY");
    assert_string_equal(buf_str(&b), "small");
    buf_clear(&b);
    assert_true(b.may_fail);
    assert_false(b.overflowed);
    buf_init_soft(&b, MIB(4), 0);
    buf_add(&b, bytes, 2 << 20);
    assert_int_equal(buf_check(&b, &e), 0);
    assert_int_equal(b.n, 2 << 20);
    buf_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_string),
        cmocka_unit_test(every_way_of_adding_appends),
        cmocka_unit_test(bytes_may_be_zero),
        cmocka_unit_test(bytes_move_into_an_arena),
        cmocka_unit_test(the_maximum_fits_and_one_more_byte_overflows),
        cmocka_unit_test(after_the_overflow_even_small_writes_are_dropped),
        cmocka_unit_test(a_buffer_that_was_reset_or_cleared_starts_anew_with_its_maximum),
        cmocka_unit_test(a_maximum_without_bound_never_wraps),
        cmocka_unit_test(long_prints_are_whole_on_both_sides_of_the_small_buffer),
        cmocka_unit_test(a_print_that_does_not_fit_leaves_nothing_behind),
        cmocka_unit_test(reserved_room_may_be_used_in_part),
        cmocka_unit_test(consume_drops_from_the_front),
        cmocka_unit_test(take_hands_over_and_empties),
        cmocka_unit_test(growing_keeps_every_byte),
        cmocka_unit_test(a_soft_buffer_that_memory_does_not_allow_overflows_and_keeps_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
