#include "store/tables/workspaces.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static const struct rows_missing no_workspace = { .code = "WORKSPACE_NOT_FOUND", .what = "workspace" };
static const struct rows_missing no_thread = { .code = "THREAD_NOT_FOUND", .what = "thread" };

struct insertion {
    const void *row;
    int64_t id;
};

/* --- workspaces --- */

static void read_workspace(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct workspace_row *)into = (struct workspace_row){
        .id = sql_int(rows, 0),
        .slug = sql_text(rows, a, 1),
        .name = sql_text(rows, a, 2),
        .type = sql_text(rows, a, 3),
        .created_at = sql_text(rows, a, 4),
    };
}

static int insert_workspace(struct sql_db *db, void *arg, struct err *e)
{
    struct insertion *ins = arg;
    const struct workspace_row *row = ins->row;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e,
                 "INSERT INTO workspaces (slug, name, type, created_at) SELECT ?, ?, coalesce(?, 'default'), ? "
                 "WHERE (SELECT count(*) FROM workspaces) < ?",
                 "ssssi", row->slug, row->name, row->type, now, (int64_t)LIMIT_WORKSPACES);
    if (r == -EEXIST)
        return err_set(e, r, "WORKSPACE_EXISTS", "There is a workspace %.200s already.", row->slug);
    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -E2BIG, "TOO_MANY_WORKSPACES", "There are %d workspaces already.", LIMIT_WORKSPACES);
    ins->id = sql_last_id(db);
    return r;
}

int store_workspaces_insert(struct store *s, const struct workspace_row *row, int64_t *ret_id, struct err *e)
{
    struct insertion ins = { .row = row };
    int r = store_write(s, insert_workspace, &ins, e);

    if (r == 0 && ret_id)
        *ret_id = ins.id;
    return r;
}

int store_workspaces_get(struct store *s, struct arena *a, const char *slug, struct workspace_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT id, slug, name, type, created_at FROM workspaces WHERE slug = ?",
                  "s", slug);
    return r < 0 ? r : rows_one(rows, a, read_workspace, ret, ROWS_NAMED(no_workspace, slug), e);
}

int store_workspaces_get_id(struct store *s, struct arena *a, int64_t id, struct workspace_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e, "SELECT id, slug, name, type, created_at FROM workspaces WHERE id = ?",
                      "i", id);

    return r < 0 ? r : rows_one(rows, a, read_workspace, ret, &no_workspace, e);
}

int store_workspaces_list(struct store *s, struct arena *a, struct workspace_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT id, slug, name, type, created_at FROM workspaces ORDER BY id", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct workspace_row), read_workspace, ret, ret_n, e);
}

/* --- threads --- */

static void read_thread(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct thread_row *)into = (struct thread_row){
        .id = sql_int(rows, 0),
        .workspace_id = sql_int(rows, 1),
        .slug = sql_text(rows, a, 2),
        .name = sql_text(rows, a, 3),
        .created_at = sql_text(rows, a, 4),
        .owner = sql_text(rows, a, 5),
    };
}

static int insert_thread(struct sql_db *db, void *arg, struct err *e)
{
    struct insertion *ins = arg;
    const struct thread_row *row = ins->row;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(db, e,
                 "INSERT INTO threads (workspace_id, slug, name, created_at, owner) SELECT ?, ?, ?, ?, ? "
                 "WHERE (SELECT count(*) FROM threads WHERE workspace_id = ?) < ?",
                 "issssii", row->workspace_id, row->slug, row->name, now, row->owner, row->workspace_id,
                 (int64_t)LIMIT_THREADS);
    if (r == -EEXIST)
        return err_set(e, r, "THREAD_EXISTS", "There is a thread %.200s in the workspace already.", row->slug);
    if (r == -ENOENT)
        return err_set(e, r, no_workspace.code, "The workspace of the thread %.200s is not there any more.", row->slug);
    if (r == 0 && sql_changes(db) == 0)
        return err_set(e, -E2BIG, "TOO_MANY_THREADS", "The workspace has %d threads already: use another one.",
                       LIMIT_THREADS);
    ins->id = sql_last_id(db);
    return r;
}

int store_threads_insert(struct store *s, const struct thread_row *row, int64_t *ret_id, struct err *e)
{
    struct insertion ins = { .row = row };
    int r = store_write(s, insert_thread, &ins, e);

    if (r == 0 && ret_id)
        *ret_id = ins.id;
    return r;
}

int store_threads_get(struct store *s, struct arena *a, int64_t workspace_id, const char *slug, struct thread_row *ret,
                      struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(
        store_reader(s), &rows, e,
        "SELECT id, workspace_id, slug, name, created_at, owner FROM threads WHERE workspace_id = ? AND slug = ?", "is",
        workspace_id, slug);
    return r < 0 ? r : rows_one(rows, a, read_thread, ret, ROWS_NAMED(no_thread, slug), e);
}

int store_threads_get_id(struct store *s, struct arena *a, int64_t id, struct thread_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT id, workspace_id, slug, name, created_at, owner FROM threads WHERE id = ?", "i", id);

    return r < 0 ? r : rows_one(rows, a, read_thread, ret, &no_thread, e);
}

int store_threads_list(struct store *s, struct arena *a, const struct threads_list_request *request,
                       struct thread_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(
        store_reader(s), &rows, e,
        "SELECT id, workspace_id, slug, name, created_at, owner FROM threads WHERE workspace_id = ? ORDER BY id DESC "
        "LIMIT ? OFFSET ?",
        "iii", request->workspace_id, rows_limit(request->limit), request->offset);
    return r < 0 ? r : rows_all(rows, a, sizeof(struct thread_row), read_thread, ret, ret_n, e);
}
