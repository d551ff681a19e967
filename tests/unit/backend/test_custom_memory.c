/* What a process knows of leases of Custom Mode: the notes of the last rows, whatever their keys are. */
#include "backend/custom/custom_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void put_row(struct custom_memory *m, const char *table, int i)
{
    const struct custom_lease_note note = { .machine = "m0", .attempt = i + 1 };
    char id[16];

    snprintf(id, sizeof(id), "%d", i);
    custom_memory_put(m, table, id, &note);
}

/* 0: no note. */
static int64_t attempt_of(struct custom_memory *m, const char *table, int i)
{
    struct custom_lease_note note;
    char id[16];
    bool has;

    snprintf(id, sizeof(id), "%d", i);
    has = custom_memory_get(m, table, id, &note);
    assert_true(has == (note.attempt != 0));
    return note.attempt;
}

static void no_row_takes_the_place_of_another_while_there_is_room(void **state)
{
    struct custom_memory *m = custom_memory_new();

    for (int i = 0; i < LIMIT_CUSTOM_NOTES; i++)
        put_row(m, "orders", i);
    for (int i = 0; i < LIMIT_CUSTOM_NOTES; i++)
        assert_int_equal(attempt_of(m, "orders", i), i + 1);
    custom_memory_free(m);
}

static void the_row_that_was_noted_longest_ago_is_forgotten(void **state)
{
    struct custom_memory *m = custom_memory_new();

    for (int i = 0; i < LIMIT_CUSTOM_NOTES; i++)
        put_row(m, "orders", i);
    put_row(m, "orders", 0);
    put_row(m, "orders", LIMIT_CUSTOM_NOTES);
    assert_int_equal(attempt_of(m, "orders", 1), 0);
    assert_int_equal(attempt_of(m, "orders", 0), 1);
    for (int i = 2; i <= LIMIT_CUSTOM_NOTES; i++)
        assert_int_equal(attempt_of(m, "orders", i), i + 1);
    custom_memory_free(m);
}

static void rows_of_two_tables_are_two_rows(void **state)
{
    struct custom_memory *m = custom_memory_new();

    put_row(m, "orders", 1);
    assert_int_equal(attempt_of(m, "things", 1), 0);
    put_row(m, "things", 1);
    put_row(m, "orders", 1);
    assert_int_equal(attempt_of(m, "things", 1), 2);
    assert_int_equal(attempt_of(m, "orders", 1), 2);
    custom_memory_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_takes_the_place_of_another_while_there_is_room),
        cmocka_unit_test(the_row_that_was_noted_longest_ago_is_forgotten),
        cmocka_unit_test(rows_of_two_tables_are_two_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
