#include "store/tables/conversations.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static const struct rows_missing no_turn = { .code = "TURN_NOT_FOUND", .what = "turn" };

/* --- turns --- */

#define TURN_COLUMNS                                                                                                   \
    "id, uuid, thread_id, session_id, task_uuid, scope, who, agent_name, state, why, error_code, error, n_steps, "     \
    "provider, model, prompt_tokens, completion_tokens, is_estimated, cut, thoughts, blocks, started_at, ended_at"

static void read_turn(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct turn_row *)into = (struct turn_row){
        .id = sql_int(rows, 0),
        .uuid = sql_text(rows, a, 1),
        .thread_id = sql_int(rows, 2),
        .session_id = sql_text(rows, a, 3),
        .task_uuid = sql_text(rows, a, 4),
        .scope = sql_text(rows, a, 5),
        .who = sql_text(rows, a, 6),
        .agent_name = sql_text(rows, a, 7),
        .state = sql_text(rows, a, 8),
        .why = sql_text(rows, a, 9),
        .error_code = sql_text(rows, a, 10),
        .error = sql_text(rows, a, 11),
        .n_steps = sql_int(rows, 12),
        .provider = sql_text(rows, a, 13),
        .model = sql_text(rows, a, 14),
        .prompt_tokens = sql_int(rows, 15),
        .completion_tokens = sql_int(rows, 16),
        .is_estimated = sql_int(rows, 17),
        .cut = sql_text(rows, a, 18),
        .thoughts = sql_text(rows, a, 19),
        .blocks = sql_text(rows, a, 20),
        .started_at = sql_text(rows, a, 21),
        .ended_at = sql_text(rows, a, 22),
    };
}

static int insert_message(struct sql_db *db, const struct message_row *row, int64_t turn_id, const char *now,
                          struct err *e)
{
    return sql_exec(db, e,
                    "INSERT INTO messages (turn_id, role, message, tool_name, is_error, took_ms, provider, model, "
                    "prompt_tokens, completion_tokens, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    "isssiissiis", turn_id, row->role, row->message, row->tool_name, (int64_t)row->is_error,
                    row->took_ms, row->provider, row->model, row->prompt_tokens, row->completion_tokens, now);
}

struct beginning {
    const struct turn_row *turn;
    const struct message_row *first;
    int64_t replaces, id;
};

static int remove_turns(struct sql_db *db, int64_t thread_id, int64_t turn_id, struct err *e)
{
    int r = sql_exec(db, e, "DELETE FROM turns WHERE thread_id = ? AND id >= ? AND state <> 'running'", "ii", thread_id,
                     turn_id);

    return r < 0 ? r
                 : sql_exec(db, e, "DELETE FROM thread_summaries WHERE thread_id = ? AND through_turn >= ?", "ii",
                            thread_id, turn_id);
}

static int insert_turn(struct sql_db *db, const struct turn_row *row, const char *now, struct err *e)
{
    int r = sql_exec(db, e,
                     "INSERT INTO turns (uuid, thread_id, session_id, task_uuid, scope, who, agent_name, state, "
                     "started_at) SELECT ?, ?, ?, ?, ?, ?, ?, 'running', ? "
                     "WHERE (SELECT count(*) FROM turns WHERE thread_id = ?) < ?",
                     "sissssssii", row->uuid, row->thread_id, row->session_id, row->task_uuid, row->scope, row->who,
                     row->agent_name, now, row->thread_id, (int64_t)LIMIT_THREAD_TURNS);

    if (r == -ENOENT)
        return err_set(e, r, "THREAD_NOT_FOUND", "The thread of the turn is not there any more.");
    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -EDQUOT, "THREAD_FULL", "The thread has %d turns already: use another thread.",
                       LIMIT_THREAD_TURNS);
    return r;
}

static int begin_turn(struct sql_db *db, void *arg, struct err *e)
{
    struct beginning *b = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = b->replaces > 0 ? remove_turns(db, b->turn->thread_id, b->replaces, e) : 0;
    if (r == 0)
        r = insert_turn(db, b->turn, now, e);
    if (r < 0)
        return r;
    b->id = sql_last_id(db);
    return insert_message(db, b->first, b->id, now, e);
}

int store_turns_begin(struct store *s, const struct turn_row *turn, const struct message_row *first, int64_t replaces,
                      int64_t *ret_id, struct err *e)
{
    struct beginning b = { .turn = turn, .first = first, .replaces = replaces };
    int r = store_write(s, begin_turn, &b, e);

    if (r == 0)
        *ret_id = b.id;
    return r;
}

int store_turns_end(struct store *s, const struct turn_row *end, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "UPDATE turns SET state = ?, why = ?, error_code = ?, error = ?, n_steps = ?, provider = ?, "
                   "model = ?, prompt_tokens = ?, completion_tokens = ?, is_estimated = ?, cut = ?, thoughts = ?, "
                   "blocks = ?, ended_at = ? WHERE id = ? AND state = 'running'",
                   "ssssissiiissssi", end->state, end->why, end->error_code, end->error, end->n_steps, end->provider,
                   end->model, end->prompt_tokens, end->completion_tokens, (int64_t)end->is_estimated, end->cut,
                   end->thoughts, end->blocks, now, end->id);
    return rows_changed(r, n, ROWS_NAMED(no_turn, end->uuid), e);
}

int store_turns_recover(struct store *s, int64_t *ret_n, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, ret_n,
                      "UPDATE turns SET state = 'interrupted', why = 'interrupted', ended_at = ?, n_steps = (SELECT "
                      "count(*) FROM messages WHERE turn_id = turns.id AND role = 'assistant') WHERE state = 'running'",
                      "s", now);
}

int store_turns_get(struct store *s, struct arena *a, const char *uuid, struct turn_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, "SELECT " TURN_COLUMNS " FROM turns WHERE uuid = ?", "s", uuid);

    return r < 0 ? r : rows_one(rows, a, read_turn, ret, ROWS_NAMED(no_turn, uuid), e);
}

int store_turns_newest(struct store *s, struct arena *a, int64_t thread_id, struct turn_row *ret, struct err *e)
{
    static const struct rows_missing none = { .code = "TURN_NOT_FOUND", .text = "The thread has no turn yet." };
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r =
        sql_query(store_reader(s), &rows, e,
                  "SELECT " TURN_COLUMNS " FROM turns WHERE thread_id = ? ORDER BY id DESC LIMIT 1", "i", thread_id);

    return r < 0 ? r : rows_one(rows, a, read_turn, ret, &none, e);
}

/* ?5 is bound in each of them. A condition with OR would keep SQLite from the index turns_by_task. */
#define TURNS(of_task, order)                                                                                          \
    "SELECT " TURN_COLUMNS " FROM turns WHERE thread_id = ?1 AND id > ?2 AND id < ?3 AND " of_task                     \
    " ORDER BY id " order " LIMIT ?4"

int store_turns_list(struct store *s, struct arena *a, const struct turns_list_request *request, struct turn_row **ret,
                     size_t *ret_n, struct err *e)
{
    static const char *const queries[2][2] = {
        { TURNS("?5 IS NULL", "ASC"), TURNS("?5 IS NULL", "DESC") },
        { TURNS("task_uuid = ?5", "ASC"), TURNS("task_uuid = ?5", "DESC") },
    };
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const int64_t before = request->before > 0 ? request->before : INT64_MAX;
    int r = sql_query(store_reader(s), &rows, e, queries[request->task_uuid != NULL][request->newest_first], "iiiis",
                      request->thread_id, request->after, before, rows_limit(request->limit), request->task_uuid);

    return r < 0 ? r : rows_all(rows, a, sizeof(struct turn_row), read_turn, ret, ret_n, e);
}

/* --- conversations --- */

#define CONVERSATIONS                                                                                                  \
    "SELECT t.id, w.slug, t.slug, t.name, t.created_at FROM threads t JOIN workspaces w ON w.id = t.workspace_id "     \
    "WHERE EXISTS (SELECT 1 FROM turns WHERE thread_id = t.id AND (?1 IS NULL OR scope = ?1)) "

static void read_conversation(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct conversation_row *)into = (struct conversation_row){
        .thread_id = sql_int(rows, 0),
        .workspace_slug = sql_text(rows, a, 1),
        .thread_slug = sql_text(rows, a, 2),
        .name = sql_text(rows, a, 3),
        .created_at = sql_text(rows, a, 4),
    };
}

int store_conversations_list(struct store *s, struct arena *a, const char *scope, int64_t limit, int64_t offset,
                             struct conversation_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, CONVERSATIONS "ORDER BY t.id DESC LIMIT ?2 OFFSET ?3", "sii", scope,
                      rows_limit(limit), offset);

    return r < 0 ? r : rows_all(rows, a, sizeof(struct conversation_row), read_conversation, ret, ret_n, e);
}

int store_conversations_get(struct store *s, struct arena *a, const char *scope, const char *workspace_slug,
                            const char *thread_slug, struct conversation_row *ret, struct err *e)
{
    static const struct rows_missing no_thread = { .code = "THREAD_NOT_FOUND", .what = "thread" };
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, CONVERSATIONS "AND w.slug = ?2 AND t.slug = ?3", "sss", scope,
                      workspace_slug, thread_slug);

    return r < 0 ? r : rows_one(rows, a, read_conversation, ret, ROWS_NAMED(no_thread, thread_slug), e);
}

/* --- messages --- */

#define MESSAGE_COLUMNS                                                                                                \
    "m.id, m.turn_id, m.role, m.message, m.tool_name, m.is_error, m.took_ms, m.provider, m.model, m.prompt_tokens, "   \
    "m.completion_tokens, m.created_at"

static void read_stored_message(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct message_row *)into = (struct message_row){
        .id = sql_int(rows, 0),
        .turn_id = sql_int(rows, 1),
        .role = sql_text(rows, a, 2),
        .message = sql_text(rows, a, 3),
        .tool_name = sql_text(rows, a, 4),
        .is_error = sql_int(rows, 5),
        .took_ms = sql_int(rows, 6),
        .provider = sql_text(rows, a, 7),
        .model = sql_text(rows, a, 8),
        .prompt_tokens = sql_int(rows, 9),
        .completion_tokens = sql_int(rows, 10),
        .created_at = sql_text(rows, a, 11),
    };
}

static int add_message(struct sql_db *db, void *arg, struct err *e)
{
    const struct message_row *row = arg;
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return insert_message(db, row, row->turn_id, now, e);
}

int store_messages_add(struct store *s, const struct message_row *row, struct err *e)
{
    struct message_row copy = *row;

    return store_write(s, add_message, &copy, e);
}

int store_messages_of_turn(struct store *s, struct arena *a, int64_t turn_id, struct message_row **ret, size_t *ret_n,
                           struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT " MESSAGE_COLUMNS " FROM messages m WHERE m.turn_id = ? ORDER BY m.id", "i", turn_id);

    return r < 0 ? r : rows_all(rows, a, sizeof(struct message_row), read_stored_message, ret, ret_n, e);
}

int store_messages_count(struct store *s, int64_t thread_id, int64_t *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT count(*) FROM turns t JOIN messages m ON m.turn_id = t.id WHERE t.thread_id = ?", "i",
                      thread_id);

    return r < 0 ? r : rows_int(rows, ret, e);
}

/* --- summaries --- */

static void read_summary(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct summary_row *)into = (struct summary_row){
        .through_turn = sql_int(rows, 0),
        .n_turns = sql_int(rows, 1),
        .text = sql_text(rows, a, 2),
    };
}

int store_summaries_get(struct store *s, struct arena *a, int64_t thread_id, struct summary_row *ret, struct err *e)
{
    static const struct rows_missing none = { .code = "NOT_FOUND", .text = "The thread has no summary." };
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT through_turn, n_turns, text FROM thread_summaries WHERE thread_id = ?", "i", thread_id);

    if (r == 0)
        r = rows_one(rows, a, read_summary, ret, &none, NULL);
    if (r == -ENOENT)
        *ret = (struct summary_row){ 0 };
    return r == -ENOENT ? 0 : r;
}

int store_summaries_put(struct store *s, int64_t thread_id, const struct summary_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return store_exec(s, e, NULL,
                      "INSERT INTO thread_summaries (thread_id, through_turn, n_turns, text, made_at) "
                      "SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM turns WHERE id = ?2) "
                      "ON CONFLICT (thread_id) DO UPDATE SET through_turn = excluded.through_turn, "
                      "n_turns = excluded.n_turns, text = excluded.text, made_at = excluded.made_at",
                      "iiiss", thread_id, row->through_turn, row->n_turns, row->text, now);
}
