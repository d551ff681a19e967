#include "store/tables/approval_rules.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

static void read_rule(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct approval_rule_row *)into = (struct approval_rule_row){
        .agent = sql_text(rows, a, 0),
        .server = sql_text(rows, a, 1),
        .tool = sql_text(rows, a, 2),
        .is_allowed = sql_int(rows, 3) != 0,
        .decided_at = sql_text(rows, a, 4),
    };
}

int store_approval_rules_set(struct store *s, const struct approval_rule_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(s, e, &n,
                   "INSERT INTO approval_rules (agent, server, tool, is_allowed, decided_at) "
                   "SELECT ?1, ?2, ?3, ?4, ?5 WHERE (SELECT count(*) FROM approval_rules) < ?6 "
                   "OR EXISTS (SELECT 1 FROM approval_rules WHERE agent = ?1 AND server = ?2 AND tool = ?3) "
                   "ON CONFLICT DO UPDATE SET is_allowed = excluded.is_allowed, decided_at = excluded.decided_at",
                   "sssisi", row->agent, row->server, row->tool, (int64_t)row->is_allowed, now,
                   (int64_t)LIMIT_APPROVAL_RULES);
    if (r < 0 || n > 0)
        return r;
    return err_set(e, -E2BIG, "TOO_MANY_RULES", "%d decisions about tools are kept already; remove some first.",
                   LIMIT_APPROVAL_RULES);
}

int store_approval_rules_get(struct store *s, const char *agent, const char *server, const char *tool,
                             bool *ret_is_allowed, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT is_allowed FROM approval_rules WHERE agent = ? AND server = ? AND tool = ?", "sss", agent,
                      server, tool);

    if (r == 0)
        r = sql_step(rows, e);
    if (r == 1)
        *ret_is_allowed = sql_int(rows, 0) != 0;
    return r;
}

int store_approval_rules_end_of(struct sql_db *db, const char *agent, const char *server, struct err *e)
{
    return sql_exec(db, e, "DELETE FROM approval_rules WHERE is_allowed AND (agent = ? OR server = ?)", "ss", agent,
                    server);
}

int store_approval_rules_list(struct store *s, struct arena *a, struct approval_rule_row **ret, size_t *ret_n,
                              struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT agent, server, tool, is_allowed, decided_at FROM approval_rules "
                      "ORDER BY agent, server, tool",
                      "");

    return r < 0 ? r : rows_all(rows, a, sizeof(struct approval_rule_row), read_rule, ret, ret_n, e);
}

int store_approval_rules_remove(struct store *s, const char *agent, const char *server, const char *tool, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "DELETE FROM approval_rules WHERE agent = ? AND server = ? AND tool = ?", "sss", agent,
                       server, tool);

    return r < 0 ? r : n > 0;
}
