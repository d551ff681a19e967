/* Transactions of the logical stream, from messages that no server had to send. */
#include "pgoutput_message.h"
#include "recorder.h"
#include "backend/postgres/postgres_stream.h"
#include "base/limits.h"

enum { WORK = 7, TOMBSTONES = 8, OTHER = 9, UNKNOWN = 1 << 20, N_COLUMNS = 9 };

struct assembly {
    struct postgres_stream *stream;
    struct recorder *rec;
};

static const char *const columns[N_COLUMNS] = { "id",        "raw_data",   "status",
                                                "locked_at", "deleted_id", "source_table",
                                                "locked_by", "revision",   "handled_revision" };

static void take_event(void *arg, const struct backend_event *event)
{
    record_event(arg, event);
}

static void take_gap(void *arg)
{
    record_gap(arg);
}

/* The key of OTHER is its id, of which the catalog knows that it is a number. */
static int read_columns(void *arg, uint32_t relation, struct arena *a, struct postgres_columns *ret, struct err *e)
{
    static struct postgres_column id = { .name = "id", .type = 20, .is_key = true };

    if (relation == UNKNOWN)
        return err_set(e, -EIO, "STORE_FAILED", "the connection is gone");
    *ret = (struct postgres_columns){ &id, 1 };
    return 0;
}

static int make(void **state)
{
    struct assembly *as = xcalloc(1, sizeof(*as));

    as->rec = xcalloc(1, sizeof(*as->rec));
    pthread_mutex_init(&as->rec->lock, NULL);
    as->stream = postgres_stream_new("svc", &(struct postgres_outbox_sink){ take_event, take_gap, as->rec },
                                     &(struct postgres_stream_catalog){ read_columns, NULL });
    *state = as;
    return 0;
}

static int end(void **state)
{
    struct assembly *as = *state;

    postgres_stream_free(as->stream);
    pthread_mutex_destroy(&as->rec->lock);
    free(as->rec);
    free(as);
    return 0;
}

static int give(struct assembly *as, const struct message *m)
{
    return postgres_stream_take(as->stream, slice_of_message(m), 0, NULL);
}

static void give_begin(struct assembly *as)
{
    struct message m = { .n = 0 };

    put(&m, 'B', 1);
    put(&m, 1, 8);
    put(&m, 0, 12);
    assert_int_equal(give(as, &m), 0);
}

static void give_commit(struct assembly *as)
{
    struct message m = { .n = 0 };

    put(&m, 'C', 1);
    put(&m, 0, 9);
    put(&m, 2, 8);
    put(&m, 0, 8);
    assert_int_equal(give(as, &m), 0);
}

static int try_relation(struct assembly *as, int id, const char *schema, const char *name, size_t n_columns)
{
    struct message m = { .n = 0 };

    put(&m, 'R', 1);
    put(&m, (uint64_t)id, 4);
    put_name(&m, schema);
    put_name(&m, name);
    put(&m, 'f', 1);
    put(&m, n_columns, 2);
    for (size_t i = 0; i < n_columns; i++) {
        put(&m, 0, 1);
        put_name(&m, columns[i]);
        put(&m, 25, 4);
        put(&m, 0, 4);
    }
    return give(as, &m);
}

static void give_relation(struct assembly *as, int id, const char *name, size_t n_columns)
{
    assert_int_equal(try_relation(as, id, "public", name, n_columns), 0);
}

/* NULL: the value is NULL; "=": it was not sent again. */
static void put_tuple(struct message *m, const char *const *values, size_t n)
{
    put(m, n, 2);
    for (size_t i = 0; i < n; i++)
        if (values[i] && strcmp(values[i], "=") != 0)
            put_text(m, values[i]);
        else
            put(m, values[i] ? 'u' : 'n', 1);
}

static int give_insert(struct assembly *as, int id, const char *const values[N_COLUMNS])
{
    struct message m = { .n = 0 };

    put(&m, 'I', 1);
    put(&m, (uint64_t)id, 4);
    put(&m, 'N', 1);
    put_tuple(&m, values, N_COLUMNS);
    return give(as, &m);
}

static void give_update_of(struct assembly *as, int id, char old_kind, const char *const *old, const char *const *new,
                           size_t n)
{
    struct message m = { .n = 0 };

    put(&m, 'U', 1);
    put(&m, (uint64_t)id, 4);
    if (old) {
        put(&m, (uint64_t)old_kind, 1);
        put_tuple(&m, old, n);
    }
    put(&m, 'N', 1);
    put_tuple(&m, new, n);
    assert_int_equal(give(as, &m), 0);
}

static void give_update(struct assembly *as, char old_kind, const char *const *old, const char *const *new, size_t n)
{
    give_update_of(as, WORK, old_kind, old, new, n);
}

static void give_delete_of(struct assembly *as, int id, char old_kind, const char *const *old, size_t n)
{
    struct message m = { .n = 0 };

    put(&m, 'D', 1);
    put(&m, (uint64_t)id, 4);
    put(&m, (uint64_t)old_kind, 1);
    put_tuple(&m, old, n);
    assert_int_equal(give(as, &m), 0);
}

static void give_delete(struct assembly *as, const char *id)
{
    const char *const old[N_COLUMNS] = { id, "{}", "pending" };

    give_delete_of(as, WORK, 'O', old, N_COLUMNS);
}

static void begin_with_tables(struct assembly *as)
{
    give_begin(as);
    give_relation(as, WORK, "svc_activities", N_COLUMNS);
    give_relation(as, TOMBSTONES, "svc_deletions", N_COLUMNS);
}

static const char *const first[N_COLUMNS] = { "a", "{\"n\": 1}", "pending", NULL, NULL, NULL, NULL, "0" };

static void a_value_that_was_not_sent_again_is_that_of_the_old_row(void **state)
{
    static const char *const changed[N_COLUMNS] = { "a", "=", "later", NULL, NULL, NULL, NULL, "1" };
    struct assembly *as = *state;

    begin_with_tables(as);
    give_update(as, 'O', first, changed, N_COLUMNS);
    assert_int_equal(recorder_n(as->rec), 0); /* before the commit */
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 1);
    assert_string_equal(as->rec->events[0].new_raw, "{\"n\":1}");
    assert_string_equal(as->rec->events[0].new_status, "later");
    assert_int_equal(recorder_n_gaps(as->rec), 0);
}

static void a_change_without_its_whole_old_row_is_a_gap(void **state)
{
    struct assembly *as = *state;

    begin_with_tables(as);
    give_update(as, 'O', NULL, first, N_COLUMNS);
    give_update(as, 'K', first, first, N_COLUMNS);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 0);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
}

static void deletions_find_their_work_in_any_order(void **state)
{
    static const char *const work_of_b[N_COLUMNS] = { "wb", "{}", "pending", NULL, "b", "svc_activities", NULL, "0" };
    static const char *const work_of_a[N_COLUMNS] = { "wa", "{}", "pending", NULL, "a", "svc_activities", NULL, "0" };
    static const char *const of_other[N_COLUMNS] = { "wx", "{}", "pending", NULL, "a", "orders", NULL, "0" };
    struct assembly *as = *state;

    begin_with_tables(as);
    give_delete(as, "a");
    give_delete(as, "b");
    assert_int_equal(give_insert(as, TOMBSTONES, of_other), 0);
    assert_int_equal(give_insert(as, TOMBSTONES, work_of_b), 0);
    assert_int_equal(give_insert(as, TOMBSTONES, work_of_a), 0);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 2);
    assert_string_equal(as->rec->events[0].work_id, "wa");
    assert_string_equal(as->rec->events[1].work_id, "wb");
}

static void a_table_may_change_its_columns(void **state)
{
    static const char *const narrow[3] = { "7", "{}", "pending" };
    static const char *const other[3] = { "7", "{}", "later" };
    struct assembly *as = *state;

    begin_with_tables(as);
    assert_int_equal(give_insert(as, WORK, first), 0);
    give_commit(as);
    give_begin(as);
    give_relation(as, WORK, "orders", 3);
    give_update(as, 'O', narrow, other, 3);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 2);
    assert_string_equal(as->rec->events[0].table, "svc_activities");
    assert_string_equal(as->rec->events[1].table, "orders");
    assert_string_equal(as->rec->events[1].new_status, "later");
    assert_string_equal(as->rec->events[1].new_raw, "{\"id\":7,\"raw_data\":\"{}\",\"status\":\"later\"}");
}

/* --- tables with columns of their own --- */

static const char *const note[2] = { "7", "text" };

static void begin_with_notes(struct assembly *as)
{
    give_begin(as);
    assert_int_equal(try_relation(as, OTHER, "my \"own\"", "notes.2", 2), 0);
}

static void a_record_has_the_types_of_the_catalog_and_its_key(void **state)
{
    struct assembly *as = *state;
    struct message m = { .n = 0 };

    begin_with_notes(as);
    put(&m, 'I', 1);
    put(&m, OTHER, 4);
    put(&m, 'N', 1);
    put_tuple(&m, note, 2);
    assert_int_equal(give(as, &m), 0);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 1);
    assert_string_equal(as->rec->events[0].table, "\"my \"\"own\"\"\".\"notes.2\"");
    assert_string_equal(as->rec->events[0].id, "7");
    assert_string_equal(as->rec->events[0].new_raw, "{\"id\":7,\"raw_data\":\"text\"}");
    assert_string_equal(as->rec->events[0].new_status, "");
}

static void a_record_s_value_that_was_not_sent_again_is_that_of_the_old_one(void **state)
{
    static const char *const changed[2] = { "8", "=" };
    struct assembly *as = *state;

    begin_with_notes(as);
    give_update_of(as, OTHER, 'O', note, changed, 2);
    give_commit(as);
    assert_string_equal(as->rec->events[0].old_raw, "{\"id\":7,\"raw_data\":\"text\"}");
    assert_string_equal(as->rec->events[0].new_raw, "{\"id\":8,\"raw_data\":\"text\"}");
    assert_int_equal(recorder_n_gaps(as->rec), 0);
}

static void without_whole_old_records_the_key_is_told(void **state)
{
    static const char *const old_key[2] = { "7", NULL }, *const changed[2] = { "8", "new" };
    struct assembly *as = *state;

    begin_with_notes(as);
    give_update_of(as, OTHER, 'O', NULL, note, 2);
    give_update_of(as, OTHER, 'K', old_key, changed, 2);
    give_delete_of(as, OTHER, 'K', old_key, 2);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(as->rec->events[i].old_raw, "{\"id\":7}");
    assert_string_equal(as->rec->events[1].new_raw, "{\"id\":8,\"raw_data\":\"new\"}");
    assert_int_equal(recorder_n_gaps(as->rec), 0);
}

static void a_record_whose_value_is_not_known_is_a_gap(void **state)
{
    static const char *const changed[2] = { "7", "=" };
    struct assembly *as = *state;

    begin_with_notes(as);
    give_update_of(as, OTHER, 'O', NULL, changed, 2);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 0);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
}

static void a_table_that_cannot_be_looked_up_ends_the_stream(void **state)
{
    assert_int_equal(try_relation(*state, UNKNOWN, "public", "t", 1), -EIO);
}

static void a_change_out_of_place_ends_the_stream(void **state)
{
    struct assembly *as = *state;

    assert_int_equal(give_insert(as, WORK, first), -EIO); /* no table */
    give_relation(as, WORK, "svc_activities", N_COLUMNS);
    assert_int_equal(give_insert(as, WORK, first), -EIO); /* no transaction */
}

static void a_stream_has_as_many_tables_as_the_limit(void **state)
{
    struct assembly *as = *state;
    struct message m = { .n = 0 };

    for (int id = 0; id < LIMIT_EVENT_RELATIONS; id++)
        give_relation(as, id, "t", 1);
    give_relation(as, 0, "again", 1);
    put(&m, 'R', 1);
    put(&m, LIMIT_EVENT_RELATIONS, 4);
    put_name(&m, "public");
    put_name(&m, "t");
    put(&m, 'f', 1);
    put(&m, 0, 2);
    assert_int_equal(give(as, &m), -EIO);
}

static void a_transaction_with_too_many_changes_is_one_gap(void **state)
{
    struct assembly *as = *state;

    begin_with_tables(as);
    for (int i = 0; i <= LIMIT_EVENT_RANGE; i++)
        assert_int_equal(give_insert(as, WORK, first), 0);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 0);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
    give_begin(as);
    assert_int_equal(give_insert(as, WORK, first), 0); /* the next one is whole */
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 1);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
}

/* A message of OTHER whose data has n bytes. */
static int give_large(struct assembly *as, size_t n)
{
    char *bytes = xcalloc(1, n + 64);
    struct message m = { .n = 0 };
    int r;

    put(&m, 'I', 1);
    put(&m, OTHER, 4);
    put(&m, 'N', 1);
    put(&m, 3, 2);
    put_text(&m, "a");
    put(&m, 't', 1);
    put(&m, n, 4);
    memcpy(bytes, m.bytes, m.n);
    memset(bytes + m.n, ' ', n);
    memcpy(bytes + m.n + n, "t\0\0\0\7pending", 12);
    r = postgres_stream_take(as->stream, (struct slice){ bytes, m.n + n + 12 }, 0, NULL);
    free(bytes);
    return r;
}

static void a_row_beyond_the_limit_is_a_gap(void **state)
{
    struct assembly *as = *state;

    give_relation(as, OTHER, "notes", 3);
    give_begin(as);
    assert_int_equal(give_large(as, LIMIT_EVENT_IMAGE - 8), 0); /* with "a" and "pending", the limit */
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 1);
    give_begin(as);
    assert_int_equal(give_large(as, LIMIT_EVENT_IMAGE - 7), 0);
    give_commit(as);
    assert_int_equal(recorder_n(as->rec), 1);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
}

static void a_truncated_table_is_a_gap(void **state)
{
    struct assembly *as = *state;
    struct message m = { .n = 0 };

    begin_with_tables(as);
    put(&m, 'T', 1);
    put(&m, 1, 4);
    put(&m, 0, 1);
    put(&m, WORK, 4);
    assert_int_equal(give(as, &m), 0);
    give_commit(as);
    assert_int_equal(recorder_n_gaps(as->rec), 1);
}

#define ASSEMBLY_TEST(name) cmocka_unit_test_setup_teardown(name, make, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ASSEMBLY_TEST(a_value_that_was_not_sent_again_is_that_of_the_old_row),
        ASSEMBLY_TEST(a_change_without_its_whole_old_row_is_a_gap),
        ASSEMBLY_TEST(deletions_find_their_work_in_any_order),
        ASSEMBLY_TEST(a_table_may_change_its_columns),
        ASSEMBLY_TEST(a_record_has_the_types_of_the_catalog_and_its_key),
        ASSEMBLY_TEST(a_record_s_value_that_was_not_sent_again_is_that_of_the_old_one),
        ASSEMBLY_TEST(without_whole_old_records_the_key_is_told),
        ASSEMBLY_TEST(a_record_whose_value_is_not_known_is_a_gap),
        ASSEMBLY_TEST(a_table_that_cannot_be_looked_up_ends_the_stream),
        ASSEMBLY_TEST(a_change_out_of_place_ends_the_stream),
        ASSEMBLY_TEST(a_stream_has_as_many_tables_as_the_limit),
        ASSEMBLY_TEST(a_transaction_with_too_many_changes_is_one_gap),
        ASSEMBLY_TEST(a_row_beyond_the_limit_is_a_gap),
        ASSEMBLY_TEST(a_truncated_table_is_a_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
