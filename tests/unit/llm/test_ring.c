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

/* One block for as many events as fit, however small they are. */
static void many_small_events_take_few_blocks(void **state)
{
    enum { EVENTS = 2000, OF_BYTES = 100 };
    struct llm_ring ring = { 0 };
    char event[OF_BYTES];

    memset(event, 'x', sizeof(event));
    assert_int_equal(ring.n_blocks, 0);
    for (int i = 0; i < EVENTS; i++)
        llm_ring_add(&ring, (struct slice){ event, sizeof(event) });
    assert_int_equal(ring.n_bytes, EVENTS * OF_BYTES);
    assert_int_equal(ring.n_blocks, 1);
    for (int i = 0; i < 50 * EVENTS; i++) {
        llm_ring_add(&ring, (struct slice){ event, sizeof(event) });
        assert_true(ring.n_blocks <= LIMIT_RING_BYTES / RING_BLOCK_BYTES + 2);
    }
    assert_true(ring.n_bytes <= LIMIT_RING_BYTES && ring.n_bytes > LIMIT_RING_BYTES - OF_BYTES);
    llm_ring_clear(&ring);
    assert_int_equal(ring.n_blocks, 0);
    assert_int_equal(ring.n_bytes, 0);
    assert_null(ring.first);
    assert_null(ring.last);
}

static void an_event_larger_than_a_block_is_kept_whole(void **state)
{
    const size_t sizes[] = { 0, RING_BLOCK_BYTES - 1, RING_BLOCK_BYTES, RING_BLOCK_BYTES + 1, LIMIT_RING_BYTES };
    char *piece = xcalloc(1, 2 * LIMIT_RING_BYTES);
    struct buf out;

    buf_init(&out, 4 * (size_t)LIMIT_RING_BYTES);
    memset(piece, 'x', 2 * LIMIT_RING_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct llm_ring ring = { 0 };

        llm_ring_add(&ring, (struct slice){ piece, sizes[i] });
        assert_int_equal(strlen(replay(&ring, 0, &out)), sizes[i]);
        assert_int_equal(ring.n_blocks, 1);
        llm_ring_add(&ring, (struct slice){ piece, 2 * LIMIT_RING_BYTES }); /* alone it is kept above the limit */
        assert_null(replay(&ring, 0, &out));
        assert_int_equal(strlen(replay(&ring, 1, &out)), 2 * LIMIT_RING_BYTES);
        assert_int_equal(ring.n_blocks, 1);
        llm_ring_clear(&ring);
    }
    buf_clear(&out);
    free(piece);
}

/* Every number answers what a plain list of the events would, over many blocks and drops. */
static void each_event_is_found_across_blocks(void **state)
{
    enum { EVENTS = 600 };
    struct llm_ring ring = { 0 };
    char *piece = xcalloc(1, 8000);
    struct buf out;

    buf_init(&out, 2 * (size_t)LIMIT_RING_BYTES);
    for (int i = 1; i <= EVENTS; i++) {
        memset(piece, 'a' + i % 26, 8000);
        llm_ring_add(&ring, (struct slice){ piece, (size_t)i * 7919 % 8000 });
    }
    for (int64_t after = EVENTS, n_bytes = 0; after >= EVENTS - ring.n_held; after--) {
        const char *found = replay(&ring, after, &out);

        assert_non_null(found);
        assert_int_equal(out.n, n_bytes);
        if (n_bytes > 0 && (after + 1) * 7919 % 8000 > 0)
            assert_int_equal(found[0], 'a' + (after + 1) % 26);
        n_bytes += after * 7919 % 8000;
    }
    assert_null(replay(&ring, EVENTS - ring.n_held - 1, &out));
    llm_ring_clear(&ring);
    buf_clear(&out);
    free(piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_given_again_from_behind_any_of_them),
        cmocka_unit_test(the_oldest_leave_above_the_limit),
        cmocka_unit_test(many_small_events_take_few_blocks),
        cmocka_unit_test(an_event_larger_than_a_block_is_kept_whole),
        cmocka_unit_test(each_event_is_found_across_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
