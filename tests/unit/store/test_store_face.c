/* The tables face_users and face_sessions, where no request reaches their edges. */
#include "fixture.h"
#include "base/limits.h"
#include "store/tables/face_users.h"

static int fill_users(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e,
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO face_users (id, email, password, user_data, created_at, updated_at) "
                    "SELECT i, i || '@example.org', '', '{}', '', '' FROM n",
                    "i", (int64_t)(LIMIT_FACE_USERS - 1));
}

static void the_last_user_below_the_limit_is_taken_and_a_removal_makes_room(void **state)
{
    struct face_user_row last = { .id = "last", .email = "last@example.org", .password = "", .user_data = "{}" };
    struct face_user_row more = { .id = "more", .email = "more@example.org", .password = "", .user_data = "{}" };
    struct fixture x = fixture_open();

    MUST(store_write(x.store, fill_users, NULL, &x.e));
    MUST(store_face_users_insert(x.store, &last, &x.e));
    MUST_FAIL(store_face_users_insert(x.store, &more, &x.e), -EDQUOT, "TOO_MANY_USERS");
    MUST(store_face_users_remove(x.store, "last", &x.e));
    MUST(store_face_users_insert(x.store, &more, &x.e));
    fixture_close(&x);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_user_below_the_limit_is_taken_and_a_removal_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
