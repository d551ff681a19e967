/* Decisions that a person made for all later calls of a tool by an agent (table approval_rules). Any thread; row texts
 * live in the arena.
 *
 *     r = store_approval_rules_set(store, &(struct approval_rule_row){ .agent = "triage", .server = "files",
 *                                      .tool = "write_file", .is_allowed = true }, e);
 */
#pragma once

#include "store/store.h"

struct approval_rule_row {
    const char *agent, *server, *tool; /* server "": a built-in tool */
    bool is_allowed;
    const char *decided_at; /* only read */
};

/* Replaces an earlier decision. -E2BIG TOO_MANY_RULES beyond LIMIT_APPROVAL_RULES. */
int store_approval_rules_set(struct store *s, const struct approval_rule_row *row, struct err *e) MUST_CHECK;
/* 1: found, 0: there is none. */
int store_approval_rules_get(struct store *s, const char *agent, const char *server, const char *tool,
                             bool *ret_is_allowed, struct err *e) MUST_CHECK;
/* Within the transaction that deletes an agent or an MCP server (the other is NULL): what was allowed for good must not
 * count for another one of that name. What was forbidden stays. */
int store_approval_rules_end_of(struct sql_db *db, const char *agent, const char *server, struct err *e) MUST_CHECK;
/* Ordered by agent, server, tool. */
int store_approval_rules_list(struct store *s, struct arena *a, struct approval_rule_row **ret, size_t *ret_n,
                              struct err *e) MUST_CHECK;
/* 1: there was one, 0: there was none. */
int store_approval_rules_remove(struct store *s, const char *agent, const char *server, const char *tool,
                                struct err *e) MUST_CHECK;
