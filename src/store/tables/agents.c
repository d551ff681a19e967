#include "store/tables/agents.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"
#include "store/tables/approval_rules.h"

#define COLUMNS "name, display_name, description, hub_id, kind, definition, created_at, updated_at"

static const struct rows_missing missing = { .code = "AGENT_NOT_FOUND", .what = "agent" };

static void read_agent(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct agent_row *)into = (struct agent_row){
        .name = sql_text(rows, a, 0),
        .display_name = sql_text(rows, a, 1),
        .description = sql_text(rows, a, 2),
        .hub_id = sql_text(rows, a, 3),
        .kind = sql_text(rows, a, 4),
        .definition = sql_text(rows, a, 5),
        .created_at = sql_text(rows, a, 6),
        .updated_at = sql_text(rows, a, 7),
    };
}

int store_agents_insert(struct store *s, const struct agent_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "INSERT INTO agents (" COLUMNS
                   ") SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM agents) < ?",
                   "ssssssssi", row->name, row->display_name, row->description, row->hub_id, row->kind, row->definition,
                   now, now, (int64_t)LIMIT_AGENTS);
    if (r == -EEXIST)
        return err_set(e, r, "AGENT_EXISTS", "There is an agent of this name already.");
    if (r < 0 || n > 0)
        return r;
    return err_set(e, -E2BIG, "TOO_MANY_AGENTS", "There are %d agents already: remove one that is not used.",
                   LIMIT_AGENTS);
}

int store_agents_update(struct store *s, const struct agent_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "UPDATE agents SET display_name = ?, description = ?, hub_id = ?, kind = ?, definition = ?, updated_at = ? "
        "WHERE name = ?",
        "sssssss", row->display_name, row->description, row->hub_id, row->kind, row->definition, now, row->name);
    return rows_changed(r, n, ROWS_NAMED(missing, row->name), e);
}

int store_agents_get(struct store *s, struct arena *a, const char *name, struct agent_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM agents WHERE name = ?", "s", name);
    return r < 0 ? r : rows_one(rows, a, read_agent, ret, ROWS_NAMED(missing, name), e);
}

int store_agents_list(struct store *s, struct arena *a, struct agent_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM agents ORDER BY name", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct agent_row), read_agent, ret, ret_n, e);
}

struct deletion {
    const char *name;
    int64_t n;
};

static int delete_row(struct sql_db *db, void *arg, struct err *e)
{
    struct deletion *in = arg;
    int r = sql_exec(db, e, "DELETE FROM agents WHERE name = ?", "s", in->name);

    in->n = sql_changes(db);
    return r < 0 || in->n == 0 ? r : store_approval_rules_end_of(db, in->name, NULL, e);
}

int store_agents_delete(struct store *s, const char *name, struct err *e)
{
    struct deletion in = { .name = name };
    int r = store_write(s, delete_row, &in, e);

    return rows_changed(r, in.n, ROWS_NAMED(missing, name), e);
}
