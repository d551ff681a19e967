#include "pgoutput_message.h"
#include "backend/postgres/pgoutput.h"
#include "base/limits.h"

/* A relation `orders` in `sales` with the columns id and data; old rows are whole. */
static void put_relation(struct message *m)
{
    put(m, 'R', 1);
    put(m, 7, 4);
    put_name(m, "sales");
    put_name(m, "orders");
    put(m, 'f', 1);
    put(m, 2, 2);
    put(m, 1, 1);
    put_name(m, "id");
    put(m, 25, 8);
    put(m, 0, 1);
    put_name(m, "data");
    put(m, 25, 8);
}

/* UPDATE with a whole old row; the new row's data was not sent again. */
static void put_update(struct message *m)
{
    put(m, 'U', 1);
    put(m, 7, 4);
    put(m, 'O', 1);
    put(m, 2, 2);
    put_text(m, "1");
    put_text(m, "old");
    put(m, 'N', 1);
    put(m, 2, 2);
    put(m, 'n', 1);
    put(m, 'u', 1);
}

static void the_messages_of_a_transaction_are_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct message begin = { .n = 0 }, relation = { .n = 0 }, update = { .n = 0 }, commit = { .n = 0 };
    struct pgoutput_change change = { 0 };
    struct err e = { 0 };

    put(&begin, 'B', 1);
    put(&begin, 0x1122334455667788, 8);
    put(&begin, 0, 12);
    must(pgoutput_read(slice_of_message(&begin), a, &change, &e), &e);
    assert_true(change.end == 0x1122334455667788);

    put_relation(&relation);
    must(pgoutput_read(slice_of_message(&relation), a, &change, &e), &e);
    assert_int_equal(change.relation.id, 7);
    assert_string_equal(change.relation.schema, "sales");
    assert_string_equal(change.relation.name, "orders");
    assert_int_equal(change.relation.identity, 'f');
    assert_int_equal(change.relation.n_columns, 2);
    assert_string_equal(change.relation.columns[1], "data");

    put_update(&update);
    must(pgoutput_read(slice_of_message(&update), a, &change, &e), &e);
    assert_true(change.is_old_whole);
    assert_int_equal(change.old.n, 2);
    assert_true(slice_eq_str(change.old.values[1].text, "old"));
    assert_int_equal(change.new.values[0].kind, PGOUTPUT_NULL);
    assert_int_equal(change.new.values[1].kind, PGOUTPUT_UNCHANGED);

    put(&commit, 'C', 1);
    put(&commit, 0, 9);
    put(&commit, 99, 8);
    put(&commit, 0, 8);
    must(pgoutput_read(slice_of_message(&commit), a, &change, &e), &e);
    assert_int_equal(change.kind, PGOUTPUT_COMMIT);
    assert_true(change.end == 99);
}

static void a_message_cut_anywhere_or_too_long_is_refused(void **state)
{
    void (*const makers[])(struct message *) = { put_relation, put_update };

    for (size_t k = 0; k < ARRAY_SIZE(makers); k++) {
        struct message m = { .n = 0 };

        makers[k](&m);
        for (size_t n = 0; n <= m.n + 1; n++) {
            AUTO(arena_freep) struct arena *a = arena_new();
            struct pgoutput_change change;
            char *copy = malloc(n + 1); /* exact, so that ASan sees a read beyond it */
            struct err e = { 0 };

            memcpy(copy, m.bytes, n);
            if (n != m.n && pgoutput_read((struct slice){ copy, n }, a, &change, &e) != -EIO)
                fail_msg("message %zu with %zu of its %zu bytes was read", k, n, m.n);
            free(copy);
        }
    }
}

static void lengths_and_kinds_that_lie_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
#define BAD(literal) { literal, sizeof(literal) - 1 }
        BAD("X"),
        BAD("I\0\0\0\7X\0\0"),                  /* kind of row */
        BAD("I\0\0\0\7N\377\377"),              /* columns beyond the bytes */
        BAD("I\0\0\0\7N\0\1t\377\377\377\377"), /* length beyond the bytes */
        BAD("I\0\0\0\7N\0\1t\0\0\0\1\377"),     /* no UTF-8 */
        BAD("I\0\0\0\7N\0\1t\0\0\0\1\0"),       /* NUL in a text */
        BAD("I\0\0\0\7N\0\1b\0\0\0\1x"),        /* binary */
        BAD("D\0\0\0\7N\0\1n"),                 /* a deletion has an old row */
        BAD("T\377\377\377\377\0\0\0\0\1"),     /* tables beyond the bytes */
        BAD("R\0\0\0\7sales\0orders"),          /* a name without end */
        BAD("R\0\0\0\7s\0o\0f\377\377"),        /* columns beyond the bytes */
#undef BAD
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct pgoutput_change change;
        struct err e = { 0 };

        if (pgoutput_read((struct slice){ bad[i].bytes, bad[i].n }, a, &change, &e) != -EIO)
            fail_msg("message %zu was read", i);
        assert_string_equal(e.code, "STORE_FAILED");
    }
}

static int read_columns(size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct message m = { .n = 0 };
    struct pgoutput_change change;

    put(&m, 'I', 1);
    put(&m, 7, 4);
    put(&m, 'N', 1);
    put(&m, n, 2);
    for (size_t i = 0; i < n; i++)
        put(&m, 'n', 1);
    return pgoutput_read(slice_of_message(&m), a, &change, NULL);
}

static void a_row_may_have_as_many_columns_as_a_table(void **state)
{
    assert_int_equal(read_columns(LIMIT_PG_COLUMNS), 0);
    assert_int_equal(read_columns(LIMIT_PG_COLUMNS + 1), -EIO);
}

static void frames_are_read_and_a_status_is_written(void **state)
{
    struct message data = { .n = 0 }, alive = { .n = 0 };
    struct pgoutput_frame frame = { 0 };
    unsigned char status[PGOUTPUT_STATUS_BYTES];
    struct err e = { 0 };

    put(&data, 'w', 1);
    put(&data, 1, 8);
    put(&data, 5, 8);
    put(&data, 0, 8);
    put(&data, 'Y', 1);
    must(pgoutput_read_frame(slice_of_message(&data), &frame, &e), &e);
    assert_int_equal(frame.kind, PGOUTPUT_DATA);
    assert_true(frame.end == 5);
    assert_true(slice_eq_str(frame.body, "Y"));

    put(&alive, 'k', 1);
    put(&alive, 9, 8);
    put(&alive, 0, 8);
    put(&alive, 1, 1);
    must(pgoutput_read_frame(slice_of_message(&alive), &frame, &e), &e);
    assert_int_equal(frame.kind, PGOUTPUT_KEEPALIVE);
    assert_true(frame.end == 9 && frame.must_reply);
    alive.n--;
    assert_int_equal(pgoutput_read_frame(slice_of_message(&alive), &frame, &e), -EIO);
    assert_int_equal(pgoutput_read_frame((struct slice){ "", 0 }, &frame, &e), -EIO);

    pgoutput_write_status(0x0102030405060708, 2, true, status);
    assert_int_equal(status[0], 'r');
    assert_memory_equal(status + 1, "\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10\0\0\0\0\0\0\0\2\1", 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_messages_of_a_transaction_are_read),
        cmocka_unit_test(a_message_cut_anywhere_or_too_long_is_refused),
        cmocka_unit_test(lengths_and_kinds_that_lie_are_refused),
        cmocka_unit_test(a_row_may_have_as_many_columns_as_a_table),
        cmocka_unit_test(frames_are_read_and_a_status_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
