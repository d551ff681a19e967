#include "base/arena.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0)
            return false;
    }
    return true;
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 4095, 4096, 4097, 300000, 3, 1 << 20, 7 };
    char *blocks[ARRAY_SIZE(sizes)];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        blocks[i] = arena_alloc(a, sizes[i]);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        assert_true(is_zero(blocks[i], sizes[i]));
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        if (sizes[i] > 0) {
            assert_int_equal(blocks[i][0], i + 1);
            assert_int_equal(blocks[i][sizes[i] - 1], i + 1);
        }
    }
}

static void many_small_allocations_all_stay(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int **numbers = arena_array(a, 20000, sizeof(*numbers));

    for (int i = 0; i < 20000; i++) {
        numbers[i] = ARENA_NEW(a, int);
        *numbers[i] = i;
    }
    for (int i = 0; i < 20000; i++)
        assert_int_equal(*numbers[i], i);
}

static void texts_are_copied(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char original[] = "hello";

    char *whole = arena_strdup(a, original);
    char *part = arena_strndup(a, original, 3);
    char *short_one = arena_strndup(a, original, 99);
    char *of_slice = arena_slicedup(a, (struct slice){ original + 1, 2 });

    memset(original, 'x', 5);
    assert_string_equal(whole, "hello");
    assert_string_equal(part, "hel");
    assert_string_equal(short_one, "hello");
    assert_string_equal(of_slice, "el");
    assert_string_equal(arena_slicedup(a, (struct slice){ 0 }), "");
    assert_null(arena_strdup(a, NULL));
}

static void printing_is_never_cut(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_string_equal(arena_printf(a, "%s/%d", "dir", 5), "dir/5");
    assert_int_equal(strlen(arena_printf(a, "%0*d", 10000, 1)), 10000);
}

struct note {
    char *order; /* borrowed */
    char letter;
};

static void write_note(void *arg)
{
    const struct note *note = arg;

    strncat(note->order, &note->letter, 1);
}

static void clean_ups_run_latest_first_while_the_memory_still_lives(void **state)
{
    char order[8] = "";
    struct arena *a = arena_new();

    for (char letter = 'a'; letter <= 'c'; letter++) {
        struct note *note = ARENA_NEW(a, struct note);

        *note = (struct note){ order, letter };
        arena_defer(a, write_note, note);
    }
    assert_string_equal(order, "");
    assert_null(arena_free(a));
    assert_string_equal(order, "cba");
}

struct again {
    struct arena *arena; /* borrowed */
    struct note note;
};

static void defer_once_more(void *arg)
{
    struct again *again = arg;

    arena_defer(again->arena, write_note, &again->note);
}

static void a_clean_up_may_defer_another(void **state)
{
    char order[8] = "";
    struct arena *a = arena_new();
    struct again again = { a, { order, 'x' } };

    arena_defer(a, defer_once_more, &again);
    arena_freep(&a);
    assert_null(a);
    assert_string_equal(order, "x");
}

static void freeing_nothing_is_fine(void **state)
{
    struct arena *none = NULL;

    assert_null(arena_free(NULL));
    arena_freep(&none);
    assert_null(none);
}

/* The signal that ended a child running fn. */
static int signal_of_child(void (*fn)(struct arena *a))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        fn(arena_new());
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The most that one allocation of this size uses in addition to its bytes. */
enum { MOST_OVERHEAD = 256 };

static void alloc_the_limit(struct arena *a)
{
    arena_alloc(a, LIMIT_ARENA_BYTES - 2 * MOST_OVERHEAD);
    arena_alloc(a, 1);
}

static void alloc_above_the_limit(struct arena *a)
{
    arena_alloc(a, LIMIT_ARENA_BYTES - 2 * MOST_OVERHEAD);
    arena_alloc(a, 2 * MOST_OVERHEAD);
}

static void alloc_small_pieces_above_the_limit(struct arena *a)
{
    for (size_t i = 0; i <= LIMIT_ARENA_BYTES / 16; i++)
        arena_alloc(a, 1);
}

static void there_is_room_up_to_the_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_true(arena_has_room(a, LIMIT_ARENA_BYTES - MOST_OVERHEAD));
    assert_false(arena_has_room(a, LIMIT_ARENA_BYTES));
    arena_alloc(a, 100000);
    assert_true(arena_has_room(a, LIMIT_ARENA_BYTES - 100000 - 2 * MOST_OVERHEAD));
    assert_false(arena_has_room(a, LIMIT_ARENA_BYTES - 100000));
    assert_false(arena_has_room(a, SIZE_MAX));
}

static void what_it_holds_is_counted_with_every_byte_between_small_pieces(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t before = arena_bytes(a), n = 100000;

    assert_int_equal(arena_bytes(NULL), 0);
    for (size_t i = 0; i < n; i++)
        arena_alloc(a, 1);
    assert_in_range(arena_bytes(a) - before, 16 * n, 48 * n); /* includes the sanitizer's zones */
    before = arena_bytes(a);
    arena_adopt(a, xcalloc(1, 1 << 20), 1 << 20);
    assert_in_range(arena_bytes(a) - before, 1 << 20, (1 << 20) + (512 << 10));
    before = arena_bytes(a);
    arena_count(a, 5000);
    assert_int_equal(arena_bytes(a) - before, 5000);
}

static void alloc_an_array_that_wraps(struct arena *a)
{
    arena_array(a, SIZE_MAX / 2, 4);
}

static void the_limit_of_bytes_may_be_used_and_not_passed(void **state)
{
    assert_int_equal(signal_of_child(alloc_the_limit), 0);
    assert_int_equal(signal_of_child(alloc_above_the_limit), SIGABRT);
    assert_int_equal(signal_of_child(alloc_small_pieces_above_the_limit), SIGABRT);
    assert_int_equal(signal_of_child(alloc_an_array_that_wraps), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(many_small_allocations_all_stay),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(printing_is_never_cut),
        cmocka_unit_test(clean_ups_run_latest_first_while_the_memory_still_lives),
        cmocka_unit_test(a_clean_up_may_defer_another),
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test(there_is_room_up_to_the_limit),
        cmocka_unit_test(what_it_holds_is_counted_with_every_byte_between_small_pieces),
        cmocka_unit_test(the_limit_of_bytes_may_be_used_and_not_passed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
