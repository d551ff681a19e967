/* The SQL that makes the outbox, a part of the backend's migration. Every statement may be repeated; an owner of the
 * tables may run it, a superuser is not needed. Pure; any thread.
 *
 * <abbr>_outbox holds one row for each changed row, written by statement-level triggers in the writer's transaction.
 * The triggers run with the rights of their owner, and no error of theirs reaches the writer. <abbr>_outbox_mark is one
 * row that says what was pruned. The outbox is UNLOGGED: after a crash of the server it is empty, and readers, whose
 * connections are gone then, report a gap.
 *
 *     postgres_outbox_put(out, "svc");                                      after <abbr>_activities and
 * <abbr>_deletions postgres_outbox_put_table(out, &(struct postgres_outbox_table){ "svc", "\"public\".\"orders\"",
 * "orders", false });
 */
#pragma once

#include "base/buf.h"

/* How the trigger of changes pairs old and new rows. */
#define POSTGRES_OUTBOX_PAIRS "  FROM hearth_new n FULL JOIN hearth_old o ON o.id OPERATOR(pg_catalog.=) n.id\n"

/* The begin of a query that changes leases only. The trigger reads it in the text of the query. */
#define POSTGRES_SAYS_LEASES "/* hearth: leases only */ "

struct postgres_outbox_table {
    const char *abbr;
    const char *quoted; /* the table for SQL */
    const char *name;   /* as events report the table */
    bool is_deletions;  /* <abbr>_deletions: only its leases are reported */
};

/* Tables and functions. */
void postgres_outbox_put(struct buf *out, const char *abbr);
/* Triggers of one table. The function <abbr>_outbox_record is for the trigger of a table with columns of its own; its
 * arguments: the table's name, then the names of the columns of its key. */
void postgres_outbox_put_table(struct buf *out, const struct postgres_outbox_table *t);
/* The pair of numbers of the advisory lock that readers hold while they wait for a notification. */
void postgres_outbox_lock_key(const char *abbr, int32_t ret[2]);
