#include "base/blocks.h"

#include "base/arena.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

static void free_new(size_t n)
{
    char *block = malloc(n);

    assert_non_null(block);
    memset(block, 0xAA, n);
    block_free(block);
}

/* Bytes of all kept blocks, which are freed. */
static size_t count_kept(size_t *ret_n)
{
    size_t n = 0, n_all = 0;
    void *block;

    *ret_n = 0;
    for (size_t wanted = BLOCK_LEAST_BYTES; wanted <= BLOCKS_MOST_BYTES; wanted += wanted / 8)
        while ((block = block_take(wanted, &n))) {
            n_all += n;
            (*ret_n)++;
            free(block);
        }
    return n_all;
}

static void nothing_is_kept_before_the_set_up(void **state)
{
    size_t n = 0;

    free_new(MIB);
    block_free(NULL);
    assert_null(block_take(MIB, &n));
    blocks_set_up();
}

static void a_large_block_is_taken_again(void **state)
{
    size_t n = 0;
    char *block;

    free_new(MIB);
    assert_null(block_take(2 * MIB, &n));
    block = block_take(MIB, &n);
    assert_non_null(block);
    assert_true(n >= MIB);
    memset(block, 1, n);
    assert_null(block_take(MIB, &(size_t){ 0 }));
    free(block);
}

/* A request that uses little would hold all of it. */
static void a_much_larger_block_is_not_taken(void **state)
{
    size_t n = 0;

    free_new(7 * MIB);
    assert_null(block_take(BLOCK_LEAST_BYTES, &n));
    assert_null(block_take(5 * MIB, &n));
    free(block_take(6 * MIB, &n));
    assert_true(n >= 7 * MIB);
}

static void the_smallest_that_suffices_is_taken(void **state)
{
    size_t n = 0;

    free_new(3 * MIB);
    free_new(MIB);
    free_new(2 * MIB);
    free_new(MIB + MIB / 8);
    free(block_take(MIB - MIB / 8, &n));
    assert_true(n >= MIB && n < MIB + MIB / 8);
    assert_true(blocks_drop());
    assert_false(blocks_drop());
    assert_int_equal(count_kept(&n), 0);
}

static void small_blocks_are_not_kept(void **state)
{
    size_t n = 0;

    free_new(BLOCK_LEAST_BYTES - 4096);
    assert_int_equal(count_kept(&n), 0);
    free_new(BLOCK_LEAST_BYTES);
    assert_null(block_take(BLOCK_LEAST_BYTES - 1, &n));
    count_kept(&n);
    assert_int_equal(n, 1);
}

static void bytes_and_places_have_a_limit(void **state)
{
    size_t n = 0, n_bytes;

    for (size_t i = 0; i < 12; i++)
        free_new(MIB);
    n_bytes = count_kept(&n);
    assert_true(n_bytes > BLOCKS_MOST_BYTES - 2 * MIB && n_bytes <= BLOCKS_MOST_BYTES);
    for (size_t i = 0; i < BLOCKS_MOST + 1; i++)
        free_new(BLOCK_LEAST_BYTES);
    count_kept(&n);
    assert_int_equal(n, BLOCKS_MOST);
    free_new(BLOCKS_MOST_BYTES + MIB);
    assert_int_equal(count_kept(&n), 0);
}

static void a_block_that_nobody_takes_is_freed_at_the_second_call(void **state)
{
    size_t n = 0;

    free_new(MIB);
    blocks_drop_idle();
    free_new(2 * MIB);
    blocks_drop_idle();
    assert_true(count_kept(&n) >= 2 * MIB);
    assert_int_equal(n, 1);
}

static void a_buffer_grows_into_a_kept_block(void **state)
{
    size_t n = 0;
    struct buf b;

    free_new(4 * MIB);
    buf_init(&b, 4 * MIB);
    for (size_t i = 0; i < 3 * MIB; i++)
        buf_add_char(&b, (char)(i * 7));
    assert_null(block_take(4 * MIB, &n));
    assert_int_equal(buf_check(&b, NULL), 0);
    for (size_t i = 0; i < 3 * MIB; i++)
        if (b.p[i] != (char)(i * 7))
            fail_msg("byte %zu", i);
    buf_clear(&b);
    assert_true(count_kept(&n) >= 3 * MIB);
}

static void a_buffer_keeps_its_limit_in_a_larger_block(void **state)
{
    size_t n = 0;
    struct buf b;

    free_new(MIB + MIB / 8);
    buf_init(&b, MIB);
    assert_non_null(buf_reserve(&b, MIB));
    b.n = MIB;
    buf_add_char(&b, 'x');
    assert_true(b.overflowed);
    buf_clear(&b);
    count_kept(&n);
}

static void memory_of_an_arena_is_zero_also_in_a_kept_block(void **state)
{
    struct arena *a = arena_new();
    size_t n = 0;
    char *bytes;

    free_new(MIB + MIB / 8);
    bytes = arena_alloc(a, MIB);
    for (size_t i = 0; i < MIB; i++)
        assert_int_equal(bytes[i], 0);
    arena_free(a);
    assert_true(count_kept(&n) >= MIB + MIB / 8);
}

static void *take_and_free(void *arg)
{
    for (size_t i = 0; i < 300; i++) {
        size_t n = BLOCK_LEAST_BYTES + i % 5 * 4096;
        char *block = block_take(n, &n);

        if (!block)
            block = malloc(n);
        memset(block, (int)(intptr_t)arg, 64);
        sched_yield();
        for (size_t k = 0; k < 64; k++)
            if (block[k] != (char)(intptr_t)arg)
                return block;
        block_free(block);
        if (i % 50 == 0)
            blocks_drop_idle();
    }
    return NULL;
}

static void threads_share_no_block(void **state)
{
    pthread_t threads[4];
    void *shared;

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_free, (void *)(i + 1)), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], &shared);
        assert_null(shared);
    }
    blocks_drop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_before_the_set_up),
        cmocka_unit_test(a_large_block_is_taken_again),
        cmocka_unit_test(a_much_larger_block_is_not_taken),
        cmocka_unit_test(the_smallest_that_suffices_is_taken),
        cmocka_unit_test(small_blocks_are_not_kept),
        cmocka_unit_test(bytes_and_places_have_a_limit),
        cmocka_unit_test(a_block_that_nobody_takes_is_freed_at_the_second_call),
        cmocka_unit_test(a_buffer_grows_into_a_kept_block),
        cmocka_unit_test(a_buffer_keeps_its_limit_in_a_larger_block),
        cmocka_unit_test(memory_of_an_arena_is_zero_also_in_a_kept_block),
        cmocka_unit_test(threads_share_no_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
