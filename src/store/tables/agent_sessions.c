/* Sessions of agents: handles on threads. */
#include "store/tables/conversations.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static const struct rows_missing no_session = {
    .code = "SESSION_NOT_FOUND", .text = "There is no such session: it may have ended because nobody used it."
};

static int insert_session(struct sql_db *db, void *arg, struct err *e)
{
    const struct agent_session_row *row = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e,
                 "INSERT INTO agent_sessions (id, scope, thread_id, agent_name, created_at, used_at) "
                 "SELECT ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM agent_sessions WHERE scope = ?) < ?",
                 "ssissssi", row->id, row->scope, row->thread_id, row->agent_name, now, now, row->scope,
                 (int64_t)LIMIT_AGENT_SESSIONS);
    if (r == -ENOENT)
        return err_set(e, r, "THREAD_NOT_FOUND", "The thread of the session is not there any more.");
    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -EDQUOT, "TOO_MANY_SESSIONS", "The caller has %d sessions already: end one first.",
                       LIMIT_AGENT_SESSIONS);
    return r;
}

int store_agent_sessions_insert(struct store *s, const struct agent_session_row *row, struct err *e)
{
    struct agent_session_row copy = *row;

    return store_write(s, insert_session, &copy, e);
}

static void read_session(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct agent_session_row *)into = (struct agent_session_row){
        .id = sql_text(rows, a, 0),
        .scope = sql_text(rows, a, 1),
        .thread_id = sql_int(rows, 2),
        .agent_name = sql_text(rows, a, 3),
        .created_at = sql_text(rows, a, 4),
        .used_at = sql_text(rows, a, 5),
    };
}

int store_agent_sessions_get(struct store *s, struct arena *a, const char *id, const char *scope,
                             const char *used_after, struct agent_session_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT id, scope, thread_id, agent_name, created_at, used_at FROM agent_sessions "
                      "WHERE id = ? AND scope = ? AND used_at > ?",
                      "sss", id, scope, used_after);

    return r < 0 ? r : rows_one(rows, a, read_session, ret, &no_session, e);
}

int store_agent_sessions_touch(struct store *s, const char *id, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, NULL, "UPDATE agent_sessions SET used_at = ? WHERE id = ?", "ss", now, id);
}

int store_agent_sessions_remove(struct store *s, const char *id, const char *scope, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "DELETE FROM agent_sessions WHERE id = ? AND scope = ?", "ss", id, scope);

    return rows_changed(r, n, &no_session, e);
}

struct expiry {
    const char *before;
    int64_t n;
};

/* Threads that a session made (they have an owner) and nobody wrote into go with their last session. */
static int expire(struct sql_db *db, void *arg, struct err *e)
{
    struct expiry *expiry = arg;
    int r = sql_exec(
        db, e,
        "DELETE FROM agent_sessions WHERE used_at < ? AND NOT EXISTS (SELECT 1 FROM turns WHERE state = 'running' "
        "AND session_id = agent_sessions.id)",
        "s", expiry->before);

    if (r < 0)
        return r;
    expiry->n = sql_changes(db);
    return sql_exec(
        db, e,
        "DELETE FROM threads WHERE owner IS NOT NULL AND created_at < ? AND NOT EXISTS (SELECT 1 FROM turns "
        "WHERE thread_id = threads.id) AND NOT EXISTS (SELECT 1 FROM agent_sessions WHERE thread_id = "
        "threads.id)",
        "s", expiry->before);
}

int store_agent_sessions_expire(struct store *s, const char *used_before, int64_t *ret_n, struct err *e)
{
    struct expiry expiry = { .before = used_before };
    int r = store_write(s, expire, &expiry, e);

    if (r == 0)
        *ret_n = expiry.n;
    return r;
}
