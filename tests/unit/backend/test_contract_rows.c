#include "contract.h"
#include "base/uuid.h"
#include "../skip.h"
#include "../tsan.h"

#define USER "9f8b3c1e-52d7-4a0e-8a51-0c3f6f1f2a11"

static int insert(struct rig *rig, const struct backend_new_row *in, struct backend_row *ret, struct err *e)
{
    *e = (struct err){ 0 };
    return backend_insert(rig->backend, in, rig->arena, ret, e);
}

static int update(struct rig *rig, struct backend_update_request request, struct backend_row *ret, struct err *e)
{
    request.table = TABLE;
    return backend_update(rig->backend, &request, rig->arena, ret, e);
}

static void a_new_row_is_pending_and_has_every_default(void **state)
{
    struct rig *rig = *state;
    struct backend_new_row in = {
        .table = TABLE, .app_id = "app-1", .user_id = USER, .raw_data = "{\"a\": [1, \"\\u00fc\"]}"
    };
    struct backend_row row;
    int64_t created_ms;
    struct err e;

    must(insert(rig, &in, &row, &e), &e);
    assert_true(uuid_is_valid(slice_of(row.id)));
    assert_string_equal(row.table, TABLE);
    assert_string_equal(row.app_id, "app-1");
    assert_string_equal(row.user_id, USER);
    assert_string_equal(json_to_str(rig->arena, rig_json(rig, row.raw_data)), "{\"a\":[1,\"\u00fc\"]}");
    assert_string_equal(row.status, "pending");
    assert_string_equal(row.attempted_by, "[]");
    assert_int_equal(row.event, BACKEND_INSERT);
    assert_int_equal(row.attempt, 0);
    assert_false(row.is_dirty);
    assert_null(row.old_data);
    assert_null(row.result);
    assert_null(row.locked_by);
    assert_null(row.source_table);
    assert_int_equal(clock_parse(slice_of(row.created_at), &created_ms), 0);
    assert_true(created_ms > clock_wall_ms() - 60000 && created_ms < clock_wall_ms() + 60000);
}

static void an_id_may_be_given_once(void **state)
{
    struct rig *rig = *state;
    struct backend_new_row in = { .table = TABLE, .id = "6f9619ff-8b86-4d01-b42d-00c04fc964ff", .raw_data = "{}" };
    struct backend_row row = { 0 };
    struct err e;

    must(insert(rig, &in, &row, &e), &e);
    assert_string_equal(row.id, in.id);
    assert_int_equal(insert(rig, &in, &row, &e), -EEXIST);
    assert_string_equal(e.code, "ALREADY_EXISTS");
    in.id = "not a uuid";
    assert_int_equal(insert(rig, &in, &row, &e), -EINVAL);
}

static void raw_data_must_be_an_object(void **state)
{
    static const char *const refused[] = { "", "[]", "1", "null", "\"text\"", "{", "{\"a\":1}x" };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct backend_new_row in = { .table = TABLE, .raw_data = refused[i] };
        struct backend_row row;
        struct err e;

        assert_int_equal(insert(rig, &in, &row, &e), -EINVAL);
        assert_string_equal(e.fields[0].field, "raw_data");
    }
    assert_int_equal(rig_list(rig, (struct backend_query){ 0 }).n, 0);
}

static void raw_data_is_bounded(void **state)
{
    struct rig *rig = *state;
    char *text = arena_alloc(rig->arena, LIMIT_BODY_ACTIVITY + 2);
    struct backend_new_row in = { .table = TABLE, .raw_data = text };
    struct backend_row row;
    struct err e;

    memset(text, 'x', LIMIT_BODY_ACTIVITY + 1);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + LIMIT_BODY_ACTIVITY - 1, "\"}", 3);
    assert_int_equal(insert(rig, &in, &row, &e), -E2BIG);
    memcpy(text + LIMIT_BODY_ACTIVITY - 2, "\"}", 3);
    must(insert(rig, &in, &row, &e), &e);
    assert_int_equal(strlen(row.raw_data), LIMIT_BODY_ACTIVITY);
}

static void an_app_sees_its_own_rows_only(void **state)
{
    struct rig *rig = *state;
    const char *mine = rig_insert_as(rig, "app-1", "{}"), *theirs = rig_insert_as(rig, "app-2", "{}"),
               *nobodys = rig_insert(rig);
    struct backend_patch patch = { .status = "done" };
    struct backend_rows rows;
    struct backend_row row;
    struct err e = { 0 };

    must(backend_get(rig->backend, TABLE, mine, "app-1", rig->arena, &row, &e), &e);
    assert_int_equal(backend_get(rig->backend, TABLE, theirs, "app-1", rig->arena, &row, &e), -ENOENT);
    assert_string_equal(e.code, "NOT_FOUND");
    assert_string_equal(e.text, "Activity not found");
    assert_int_equal(backend_get(rig->backend, TABLE, nobodys, "app-1", rig->arena, &row, &e), -ENOENT);
    assert_int_equal(update(rig, (struct backend_update_request){ .id = theirs, .app_id = "app-1", .patch = &patch },
                            &row, &e),
                     -ENOENT);
    assert_int_equal(OPS(rig)->remove(rig->backend, TABLE, theirs, "app-1", &e), -ENOENT);
    assert_string_equal(rig_get(rig, theirs).status, "pending");
    rows = rig_list(rig, (struct backend_query){ .app_id = "app-1" });
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, mine);
    must(OPS(rig)->remove(rig->backend, TABLE, mine, "app-1", &e), &e);
    assert_int_equal(backend_get(rig->backend, TABLE, mine, NULL, rig->arena, &row, &e), -ENOENT);
}

static void lists_are_newest_first_in_pages_and_by_status(void **state)
{
    struct rig *rig = *state;
    const char *ids[5];
    struct backend_rows rows;

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        ids[i] = rig_insert_as(rig, "app-1", "{}");
    rig_claim(rig, ids[2], "lin-a");
    rows = rig_list(rig, (struct backend_query){ .app_id = "app-1", .limit = 2 });
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[0].id, ids[4]);
    assert_string_equal(rows.items[1].id, ids[3]);
    rows = rig_list(rig, (struct backend_query){ .limit = 2, .offset = 2 });
    assert_string_equal(rows.items[0].id, ids[2]);
    assert_string_equal(rows.items[1].id, ids[1]);
    rows = rig_list(rig, (struct backend_query){ .status = "claimed" });
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, ids[2]);
    assert_int_equal(rig_list(rig, (struct backend_query){ .app_id = "app-1", .status = "pending" }).n, 4);
    assert_int_equal(rig_list(rig, (struct backend_query){ .status = "no such status" }).n, 0);
    assert_int_equal(rig_list(rig, (struct backend_query){ .offset = 5 }).n, 0);
}

static void a_list_of_one_user_has_no_rows_of_others(void **state)
{
    static const char user[] = "11111111-2222-4333-8444-55555555aaaa";
    struct rig *rig = *state;
    struct backend_new_row in = { .table = TABLE, .app_id = "app-1", .user_id = user, .raw_data = "{}" };
    struct backend_row row;
    struct backend_rows rows;

    assert_int_equal(backend_insert(rig->backend, &in, rig->arena, &row, NULL), 0);
    in.user_id = "11111111-2222-4333-8444-55555555bbbb";
    assert_int_equal(backend_insert(rig->backend, &in, rig->arena, &(struct backend_row){ 0 }, NULL), 0);
    rig_insert_as(rig, "app-1", "{}");
    rows = rig_list(rig, (struct backend_query){ .user_id = user });
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, row.id);
    assert_int_equal(rig_list(rig, (struct backend_query){ .user_id = user, .app_id = "app-1", .status = "pending" }).n,
                     1);
    assert_int_equal(rig_list(rig, (struct backend_query){ .user_id = user, .app_id = "app-2" }).n, 0);
    assert_int_equal(rig_list(rig, (struct backend_query){ .user_id = user, .status = "claimed" }).n, 0);
}

static void a_page_has_a_default_and_a_largest_size(void **state)
{
    struct rig *rig = *state;

    if (IS_UNDER_TSAN)
        SKIP_TEST("a size at its limit is tested under ASan");
    rig_write(rig, (struct foreign_write){ .op = BACKEND_INSERT, .raw_data = "{}", .n = LIMIT_LIST + 1 });
    assert_int_equal(rig_list(rig, (struct backend_query){ 0 }).n, LIMIT_LIST_DEFAULT);
    assert_int_equal(rig_list(rig, (struct backend_query){ .limit = LIMIT_LIST }).n, LIMIT_LIST);
    assert_int_equal(rig_list(rig, (struct backend_query){ .limit = LIMIT_LIST + 1 }).n, LIMIT_LIST);
}

static void a_page_of_huge_rows_is_refused_in_words(void **state)
{
    struct rig *rig = *state;
    struct backend_query q = { .table = TABLE, .limit = 100 };
    char *text = arena_alloc(rig->arena, 4000001);
    struct backend_rows rows;
    struct err e = { 0 };

    if (IS_UNDER_TSAN)
        SKIP_TEST("a size at its limit is tested under ASan");
    memset(text, 'x', 4000000);
    text[4000000] = '\0';
    rig_write(rig, (struct foreign_write){
                       .op = BACKEND_INSERT, .raw_data = arena_printf(rig->arena, "{\"x\":\"%s\"}", text), .n = 20 });
    assert_int_equal(backend_list(rig->backend, &q, rig->arena, &rows, &e), -E2BIG);
    q.limit = 10;
    must(backend_list(rig->backend, &q, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 10);
}

static void a_patch_changes_what_it_names_and_nothing_else(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert_as(rig, "app-1", "{\"n\":1}");
    struct backend_row row;
    struct err e = { 0 };

    must(update(rig,
                (struct backend_update_request){
                    .id = id, .app_id = "app-1", .patch = &(struct backend_patch){ .status = "archived by hand" } },
                &row, &e),
         &e);
    assert_string_equal(row.status, "archived by hand");
    assert_string_equal(row.raw_data, "{\"n\":1}");
    assert_null(row.old_data);
    must(update(rig,
                (struct backend_update_request){
                    .id = id, .patch = &(struct backend_patch){ .raw_data = "{\"n\":2}", .error_message = "hm" } },
                &row, &e),
         &e);
    assert_string_equal(row.status, "archived by hand");
    assert_string_equal(row.raw_data, "{\"n\":2}");
    assert_string_equal(row.old_data, "{\"n\":1}"); /* the answer has the trigger's changes */
    assert_string_equal(row.error_message, "hm");
    assert_true(row.is_dirty);
    assert_int_equal(
        update(rig, (struct backend_update_request){ .id = id, .patch = &(struct backend_patch){ .raw_data = "[]" } },
               &row, &e),
        -EINVAL);
    assert_int_equal(
        update(rig, (struct backend_update_request){ .id = id, .patch = &(struct backend_patch){ .result = "{" } },
               &row, &e),
        -EINVAL);
}

static void a_deletion_leaves_work_with_the_whole_row_behind(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert_as(rig, "app-1", "{\"n\":1}");
    struct backend_rows rows;
    struct err e = { 0 };

    must(OPS(rig)->remove(rig->backend, TABLE, id, NULL, &e), &e);
    rows = rig_list(rig, (struct backend_query){ .table = DELETIONS });
    assert_int_equal(rows.n, 1);
    assert_string_not_equal(rows.items[0].id, id);
    assert_string_equal(rows.items[0].app_id, "app-1");
    assert_string_equal(rows.items[0].raw_data, "{\"n\":1}");
    assert_string_equal(rows.items[0].source_table, TABLE);
    assert_string_equal(rows.items[0].status, "pending");
    assert_int_equal(rows.items[0].event, BACKEND_DELETE);
    assert_non_null(strstr(rows.items[0].old_data, id));
    assert_non_null(strstr(rows.items[0].old_data, "\"raw_data\":{\"n\":1}"));
    must(OPS(rig)->remove(rig->backend, DELETIONS, rows.items[0].id, NULL, &e), &e);
    assert_int_equal(rig_list(rig, (struct backend_query){ .table = DELETIONS }).n, 0);
}

static void work_of_a_deletion_is_claimed_and_completed_like_any(void **state)
{
    struct rig *rig = *state;
    struct backend_claim claim = {
        .table = DELETIONS, .machine_id = "lin-a", .stale_after_ms = STALE_MS, .max_machines = 3
    };
    struct backend_lease lease;
    struct backend_rows rows;
    struct backend_row row;
    struct err e = { 0 };

    must(OPS(rig)->remove(rig->backend, TABLE, rig_insert(rig), NULL, &e), &e);
    must(OPS(rig)->claimable(rig->backend, DELETIONS, &claim, NULL, 10, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 1);
    claim.row_id = rows.items[0].id;
    must(backend_claim(rig->backend, &claim, rig->arena, &row, &lease, &e), &e);
    assert_int_equal(row.event, BACKEND_DELETE);
    must(backend_complete(rig->backend, &lease, "{}", &e), &e);
}

/* --- tables --- */

static void a_user_table_is_made_on_demand_and_holds_rows(void **state)
{
    struct rig *rig = *state;
    struct backend_new_row in = { .table = "sales.orders", .raw_data = "{}" };
    struct backend_row row;
    struct err e;

    if (rig->fixture->has_fixed_tables)
        SKIP_TEST("the project sees no tables that are made later");
    assert_int_equal(insert(rig, &in, &row, &e), -ENOENT);
    assert_string_equal(e.code, "UNKNOWN_TABLE");
    must(OPS(rig)->ensure_table(rig->backend, "sales.orders", &e), &e);
    must(OPS(rig)->ensure_table(rig->backend, "sales.orders", &e), &e);
    must(insert(rig, &in, &row, &e), &e);
    assert_string_equal(row.table, "sales.orders");
    rig->backend = backend_close(rig->backend);
    rig->backend = rig_backend(rig);
    assert_int_equal(rig_list(rig, (struct backend_query){ .table = "sales.orders" }).n, 1);
}

static void tables_that_are_not_an_app_s_are_refused(void **state)
{
    static const char *const refused[] = { DELETIONS, "a b", "a.b.c", "" };
    struct rig *rig = *state;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (OPS(rig)->ensure_table(rig->backend, refused[i], &e) != -EINVAL)
            fail_msg("%s was taken", refused[i]);
}

static void waiting_rows_are_counted_by_their_owner_and_what_holds_them_up(void **state)
{
    struct rig *rig = *state;
    struct backend_owners owners = { 0 };
    struct backend_lease lease;
    struct err e = { 0 };

    rig_insert_as(rig, "app-1", "{}");
    rig_insert_as(rig, "app-1", "{}");
    rig_set(rig, rig_insert(rig), "status", "Pending ");
    lease = rig_claim(rig, rig_insert_as(rig, "app-2", "{}"), "lin-a");
    must(backend_fail(rig->backend, &lease, "no", &e), &e);
    must(OPS(rig)->owners(rig->backend, 1, rig->arena, &owners, &e), &e);
    assert_int_equal(owners.n, 3);
    for (size_t i = 0; i < owners.n; i++) {
        const struct backend_owner *o = &owners.items[i];

        assert_string_equal(o->table, TABLE);
        assert_int_equal(o->stuck, !o->app_id                        ? BACKEND_STUCK_STATUS
                                   : strcmp(o->app_id, "app-2") == 0 ? BACKEND_STUCK_ATTEMPTS
                                                                     : BACKEND_NOT_STUCK);
        assert_int_equal(o->n_waiting, o->stuck == BACKEND_NOT_STUCK ? 2 : 1);
    }
    assert_string_equal(owners.items[0].app_id, "app-1"); /* the most rows first */
    must(OPS(rig)->check(rig->backend, NULL, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_row_is_pending_and_has_every_default),
        TEST(an_id_may_be_given_once),
        TEST(raw_data_must_be_an_object),
        TEST(raw_data_is_bounded),
        TEST(an_app_sees_its_own_rows_only),
        TEST(lists_are_newest_first_in_pages_and_by_status),
        TEST(a_list_of_one_user_has_no_rows_of_others),
        TEST(a_page_has_a_default_and_a_largest_size),
        TEST(a_page_of_huge_rows_is_refused_in_words),
        TEST(a_patch_changes_what_it_names_and_nothing_else),
        TEST(a_deletion_leaves_work_with_the_whole_row_behind),
        TEST(work_of_a_deletion_is_claimed_and_completed_like_any),
        TEST(a_user_table_is_made_on_demand_and_holds_rows),
        TEST(tables_that_are_not_an_app_s_are_refused),
        TEST(waiting_rows_are_counted_by_their_owner_and_what_holds_them_up),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
