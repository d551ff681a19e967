#include "store/tables/sessions.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static const struct rows_missing no_session = { "SESSION_NOT_FOUND", "There is no such session, or it has ended." };
static const struct rows_missing no_link = { "LINK_NOT_FOUND", "This link was used already or is too old." };

static void read_session(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct session_row *)into = (struct session_row){
        .id_hash = sql_blob(rows, a, 0),
        .kind = sql_text(rows, a, 1),
        .created_at = sql_text(rows, a, 2),
        .expires_at = sql_text(rows, a, 3),
        .revoked_at = sql_text(rows, a, 4),
        .proof_hash = sql_blob(rows, a, 5),
    };
}

static int insert_session(struct sql_db *db, void *arg, struct err *e)
{
    const struct session_row *row = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e, "DELETE FROM sessions WHERE expires_at <= ? OR revoked_at IS NOT NULL", "s", now);
    if (r == 0)
        r = sql_exec(db, e,
                     "INSERT INTO sessions (id_hash, kind, created_at, expires_at, proof_hash) SELECT ?, ?, ?, ?, ? "
                     "WHERE (SELECT count(*) FROM sessions) < ?",
                     "bsssbi", row->id_hash, row->kind, now, row->expires_at, row->proof_hash, (int64_t)LIMIT_SESSIONS);
    if (r < 0 || sql_changes(db) > 0)
        return r;
    return err_set(e, -E2BIG, "TOO_MANY_SESSIONS", "There are %d sessions already.", LIMIT_SESSIONS);
}

int store_sessions_insert(struct store *s, const struct session_row *row, struct err *e)
{
    return store_write(s, insert_session, (void *)row, e);
}

int store_sessions_find(struct store *s, struct arena *a, struct slice id_hash, struct session_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_query(store_reader(s), &rows, e,
                  "SELECT id_hash, kind, created_at, expires_at, revoked_at, proof_hash FROM sessions "
                  "WHERE id_hash = ? AND expires_at > ? AND revoked_at IS NULL",
                  "bs", id_hash, now);
    return r < 0 ? r : rows_one(rows, a, read_session, ret, &no_session, e);
}

int store_sessions_revoke(struct store *s, struct slice id_hash, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n, "UPDATE sessions SET revoked_at = ? WHERE id_hash = ? AND revoked_at IS NULL", "sb", now,
                   id_hash);
    return rows_changed(r, n, &no_session, e);
}

struct login_link {
    struct slice token_hash;
    const char *expires_at;
};

static int insert_link(struct sql_db *db, void *arg, struct err *e)
{
    const struct login_link *link = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e, "DELETE FROM login_links WHERE expires_at <= ?", "s", now);
    return r < 0 ? r
                 : sql_exec(db, e, "INSERT INTO login_links (token_hash, expires_at) VALUES (?, ?)", "bs",
                            link->token_hash, link->expires_at);
}

int store_login_links_insert(struct store *s, struct slice token_hash, const char *expires_at, struct err *e)
{
    struct login_link link = { .token_hash = token_hash, .expires_at = expires_at };

    return store_write(s, insert_link, &link, e);
}

int store_login_links_take(struct store *s, struct slice token_hash, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n, "DELETE FROM login_links WHERE token_hash = ? AND expires_at > ?", "bs", token_hash, now);
    return rows_changed(r, n, &no_link, e);
}
