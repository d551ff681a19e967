#include "store/tables/face_sessions.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

enum { DAY_MS = 24 * 3600 * 1000, MS_A_SECOND = 1000 };

static const struct rows_missing missing = { "SESSION_NOT_FOUND",
                                             "Session from session_id claim in JWT does not exist" };

struct new_session {
    const char *id, *user_id;
};

/* The new session is one of those that stay. */
static int trim_sessions(struct sql_db *db, const char *user_id, struct err *e)
{
    char idle_since[TIME_TEXT_SIZE];
    int r;

    clock_format(clock_wall_ms() - (int64_t)LIMIT_FACE_SESSION_IDLE_DAYS * DAY_MS, idle_since);
    r = sql_exec(db, e, "DELETE FROM face_sessions WHERE refreshed_at < ?", "s", idle_since);
    return r < 0 ? r
                 : sql_exec(db, e,
                            "DELETE FROM face_sessions WHERE id IN (SELECT id FROM face_sessions WHERE user_id = ? "
                            "ORDER BY refreshed_at DESC LIMIT -1 OFFSET ?)",
                            "si", user_id, (int64_t)LIMIT_FACE_USER_SESSIONS - 1);
}

static int begin_session(struct sql_db *db, void *arg, struct err *e)
{
    const struct new_session *in = arg;
    char now[TIME_TEXT_SIZE];
    int r = trim_sessions(db, in->user_id, e);

    clock_now_text(now);
    if (r == 0)
        r = sql_exec(db, e,
                     "INSERT INTO face_sessions (id, user_id, created_at, refreshed_at) "
                     "SELECT ?1, id, ?3, ?3 FROM face_users WHERE id = ?2",
                     "sss", in->id, in->user_id, now);
    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -ENOENT, "USER_NOT_FOUND", "There is no such user.");
    return r < 0 ? r
                 : sql_exec(db, e, "UPDATE face_users SET last_sign_in_at = ? WHERE id = ?", "ss", now, in->user_id);
}

int store_face_sessions_begin(struct store *s, const char *id, const char *user_id, struct err *e)
{
    struct new_session in = { .id = id, .user_id = user_id };

    return store_write(s, begin_session, &in, e);
}

int store_face_sessions_check(struct store *s, const char *id, const char *user_id, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t n = 0;
    int r = sql_query(store_reader(s), &rows, e, "SELECT count(*) FROM face_sessions WHERE id = ? AND user_id = ?",
                      "ss", id, user_id);

    if (r == 0)
        r = rows_int(rows, &n, e);
    return rows_changed(r, n, &missing, e);
}

/* ---- refreshing ---- */

struct current {
    int64_t counter, refreshed_ms;
    bool is_there;
};

static int read_current(struct sql_db *db, struct face_refresh *refresh, struct current *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT counter, refreshed_at, user_id FROM face_sessions WHERE id = ?", "s",
                      refresh->session_id);

    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r;
    ret->is_there = true;
    ret->counter = sql_int(rows, 0);
    refresh->user_id = sql_text(rows, refresh->arena, 2);
    return clock_parse(slice_of(sql_text(rows, refresh->arena, 1)), &ret->refreshed_ms) < 0
               ? err_set(e, -EIO, "STORE_ERROR", "The time of a session is damaged.")
               : 0;
}

static int advance(struct sql_db *db, struct face_refresh *refresh, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    refresh->newest = refresh->counter + 1;
    return sql_exec(db, e, "UPDATE face_sessions SET counter = ?, refreshed_at = ? WHERE id = ?", "iss",
                    refresh->newest, now, refresh->session_id);
}

/* A closure that fails is rolled back, so the end of the session is no failure of the closure. */
struct refreshing {
    struct face_refresh *refresh;
    bool is_reused;
};

static int take_token(struct sql_db *db, void *arg, struct err *e)
{
    struct refreshing *in = arg;
    struct face_refresh *refresh = in->refresh;
    struct current now = { 0 };
    int r = read_current(db, refresh, &now, e);
    int64_t age_ms;

    if (r < 0)
        return r;
    if (!now.is_there || refresh->counter > now.counter)
        return err_set(e, -ENOENT, "REFRESH_TOKEN_NOT_FOUND", "Invalid Refresh Token: Refresh Token Not Found");
    if (refresh->counter == now.counter)
        return advance(db, refresh, e);
    age_ms = clock_wall_ms() - now.refreshed_ms;
    in->is_reused = refresh->counter < now.counter - 1 || age_ms < 0 || age_ms > LIMIT_FACE_REUSE_S * MS_A_SECOND;
    refresh->newest = now.counter;
    return in->is_reused ? sql_exec(db, e, "DELETE FROM face_sessions WHERE id = ?", "s", refresh->session_id) : 0;
}

int store_face_sessions_refresh(struct store *s, struct face_refresh *refresh, struct err *e)
{
    struct refreshing in = { .refresh = refresh };
    int r = store_write(s, take_token, &in, e);

    if (r == 0 && in.is_reused)
        return err_set(e, -ESTALE, "REFRESH_TOKEN_ALREADY_USED", "Invalid Refresh Token: Already Used");
    return r;
}

int store_face_sessions_end(struct store *s, const char *id, const char *user_id, enum face_sessions_ended which,
                            struct err *e)
{
    static const char *const statements[] = {
        [FACE_THIS_SESSION] = "DELETE FROM face_sessions WHERE user_id = ?1 AND id = ?2",
        [FACE_OTHER_SESSIONS] = "DELETE FROM face_sessions WHERE user_id = ?1 AND id <> ?2",
        [FACE_ALL_SESSIONS] = "DELETE FROM face_sessions WHERE user_id = ?1 AND ?2 IS NOT NULL",
    };

    return store_exec(s, e, NULL, statements[which], "ss", user_id, id);
}
