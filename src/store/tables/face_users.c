#include "store/tables/face_users.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

#define COLUMNS "id, email, password, user_data, created_at, updated_at, last_sign_in_at"

static const struct rows_missing missing = { "USER_NOT_FOUND", "There is no such user." };

static void read_user(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct face_user_row *)into = (struct face_user_row){
        .id = sql_text(rows, a, 0),
        .email = sql_text(rows, a, 1),
        .password = sql_text(rows, a, 2),
        .user_data = sql_text(rows, a, 3),
        .created_at = sql_text(rows, a, 4),
        .updated_at = sql_text(rows, a, 5),
        .last_sign_in_at = sql_text(rows, a, 6),
    };
}

int store_face_users_insert(struct store *s, const struct face_user_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, NULL, &n,
                   "INSERT INTO face_users (id, email, password, user_data, created_at, updated_at) "
                   "SELECT ?1, ?2, ?3, ?4, ?5, ?5 WHERE (SELECT count(*) FROM face_users) < ?6",
                   "sssssi", row->id, row->email, row->password, row->user_data, now, (int64_t)LIMIT_FACE_USERS);
    if (r == -EEXIST)
        return err_set(e, r, "USER_ALREADY_EXISTS", "User already registered");
    if (r < 0)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The user could not be stored.");
    return n > 0 ? 0 : err_set(e, -EDQUOT, "TOO_MANY_USERS", "There are %d users already.", LIMIT_FACE_USERS);
}

int store_face_users_find(struct store *s, struct arena *a, const char *id_or_email, struct face_user_row *ret,
                          struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM face_users WHERE id = ?1 OR email = ?1", "s",
                      id_or_email);

    return r < 0 ? r : rows_one(rows, a, read_user, ret, &missing, e);
}

int store_face_users_list(struct store *s, struct arena *a, struct face_user_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM face_users ORDER BY email", "");

    return r < 0 ? r : rows_all(rows, a, sizeof(struct face_user_row), read_user, ret, ret_n, e);
}

static int change_user(struct sql_db *db, void *arg, struct err *e)
{
    const struct face_user_change *c = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e,
                 "UPDATE face_users SET email = ifnull(?2, email), password = ifnull(?3, password), "
                 "user_data = ifnull(?4, user_data), updated_at = ?5 WHERE id = ?1",
                 "sssss", c->id, c->email, c->password, c->user_data, now);
    if (r == -EEXIST)
        return err_set(e, r, "EMAIL_EXISTS", "A user with this email address has already been registered");
    r = rows_changed(r, sql_changes(db), &missing, e);
    if (r < 0 || !c->password)
        return r;
    return sql_exec(db, e, "DELETE FROM face_sessions WHERE user_id = ? AND id <> ifnull(?, '')", "ss", c->id,
                    c->kept_session);
}

int store_face_users_change(struct store *s, const struct face_user_change *change, struct err *e)
{
    return store_write(s, change_user, (void *)(uintptr_t)change, e);
}

int store_face_users_remove(struct store *s, const char *id, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "DELETE FROM face_users WHERE id = ?", "s", id);

    return rows_changed(r, n, &missing, e);
}
