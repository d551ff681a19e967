#include "protocol.h"

#include "llm/ring.h"

static const char *replay(struct llm_ring *ring, int64_t after, struct buf *out)
{
    buf_reset(out);
    return llm_ring_replay(ring, after, out) < 0 ? NULL : buf_str(out);
}

static void events_are_given_again_from_behind_any_of_them(void **state)
{
    struct llm_ring ring = { 0 };
    struct buf out;

    buf_init(&out, 100);
    assert_string_equal(replay(&ring, 0, &out), "");
    assert_null(replay(&ring, 1, &out));
    llm_ring_add(&ring, SLICE_LIT("a"));
    llm_ring_add(&ring, SLICE_LIT("b"));
    llm_ring_add(&ring, SLICE_LIT("c"));
    assert_string_equal(replay(&ring, 0, &out), "abc");
    assert_string_equal(replay(&ring, 2, &out), "c");
    assert_string_equal(replay(&ring, 3, &out), "");
    assert_null(replay(&ring, 4, &out));
    assert_null(replay(&ring, -1, &out));
    llm_ring_clear(&ring);
    buf_clear(&out);
}

static void the_oldest_leave_above_the_limit(void **state)
{
    char *piece = xcalloc(1, LIMIT_RING_BYTES);
    struct llm_ring ring = { 0 };
    struct buf out;

    buf_init(&out, 2 * (size_t)LIMIT_RING_BYTES);
    memset(piece, 'x', LIMIT_RING_BYTES);
    llm_ring_add(&ring, (struct slice){ piece, LIMIT_RING_BYTES / 2 - 1 });
    assert_false(llm_ring_is_full(&ring));
    llm_ring_add(&ring, (struct slice){ piece, LIMIT_RING_BYTES / 2 });
    assert_true(llm_ring_is_full(&ring));
    llm_ring_add(&ring, SLICE_LIT("y"));
    assert_int_equal(strlen(replay(&ring, 0, &out)), LIMIT_RING_BYTES);
    llm_ring_add(&ring, SLICE_LIT("z"));
    assert_null(replay(&ring, 0, &out));
    assert_int_equal(strlen(replay(&ring, 1, &out)), LIMIT_RING_BYTES / 2 + 2);
    assert_string_equal(replay(&ring, 2, &out), "yz");
    llm_ring_clear(&ring);
    buf_clear(&out);
    free(piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_given_again_from_behind_any_of_them),
        cmocka_unit_test(the_oldest_leave_above_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
