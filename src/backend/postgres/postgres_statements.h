/* The conditional statements of the contract, written once: the backend runs them, and the SQL functions
 * <abbr>_fn_... run the same text. Templates of postgres_table.h; `table` is the text that names the table. */
#pragma once

#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/postgres/postgres_table.h"

/* $1 row, $2 machine, $3 ms until a lease is stale, $4 machines until quarantine. */
#define POSTGRES_CLAIM(table) POSTGRES_CLAIM_SET(table) " WHERE id = $1::uuid AND " POSTGRES_MAY_CLAIM

#define POSTGRES_CLAIM_SET(table)                                                                                      \
    "UPDATE " table " SET status = 'claimed', locked_by = $2, claimed_by = $2, locked_at = {now},"                     \
    " completed_at = NULL, attempt = attempt + 1, handled_revision = revision"
#define POSTGRES_MAY_CLAIM                                                                                             \
    "(status IN ({claimable}) OR (status IN ({leased}) AND " POSTGRES_IS_OLD(                                          \
        "locked_at", "$3::bigint") "))"                                                                                \
                                   " AND " POSTGRES_MAY_TRY("$2", "$4::bigint")

/* The rows of $1, an array, that nobody has locked: a statement for several rows waits for none of them. */
#define POSTGRES_IS_FREE_ROW                                                                                           \
    "id = ANY (ARRAY(SELECT id FROM {table} WHERE id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED))"

/* Rows that this machine has not failed, and not too many others either. */
#define POSTGRES_MAY_TRY(machine, max_machines)                                                                        \
    "cardinality(attempted_by) < " max_machines " AND NOT coalesce(" machine " = ANY (attempted_by), false)"

/* $1 row, $2 machine, $3 attempt */
#define POSTGRES_IS_HELD " WHERE id = $1::uuid AND " POSTGRES_MAY_END("$2", "$3::bigint")

#define POSTGRES_MAY_END(machine, of_attempt)                                                                          \
    "locked_by = " machine " AND (attempt = " of_attempt " OR " of_attempt " = -1) AND status IN ({leased})"

/* $4 result */
#define POSTGRES_COMPLETE(table) POSTGRES_COMPLETE_SET(table, "$4") POSTGRES_IS_HELD
#define POSTGRES_COMPLETE_SET(table, result)                                                                           \
    "UPDATE " table " SET status = 'completed', result = " result "::jsonb, completed_at = {now},"                     \
    " error_message = NULL, locked_by = NULL, locked_at = NULL"

/* $4 message */
#define POSTGRES_FAIL(table)                                                                                           \
    "UPDATE " table " SET status = 'failed', error_message = left($4, {max_error}), locked_by = NULL,"                 \
    " locked_at = NULL, retry_count = retry_count + 1, attempted_by = CASE WHEN $2 = ANY (attempted_by)"               \
    " THEN attempted_by ELSE attempted_by || $2 END" POSTGRES_IS_HELD
