/* SQL functions of our own connections, for what SQLite's operators and types lack: the statements of queries use them,
 * the schema does not. A NULL argument gives NULL; JSON that cannot be read does too.
 *
 *     query_like(text, pattern, is_folded)   LIKE of PostgreSQL; is_folded: ASCII letters of either case are equal
 *     query_json(json, path, is_text)        the member at the path (a JSON array of steps), as JSON or as text
 *     query_key(json)                        a value that compares and orders as the JSON value does
 *     query_contains(json, json)             @> of jsonb and of arrays
 *     query_overlaps(json, json)             && of arrays
 *     query_cast(value, from, to)            types of enum table_type
 *
 * A comparison ends with the error EMBEDDED_TOO_MUCH_WORK after LIMIT_QUERY_STEPS.
 */
#pragma once

#include "backend/query_values.h"
#include "store/sql.h"

#define EMBEDDED_TOO_MUCH_WORK "query: too much work"
#define EMBEDDED_BAD_CAST "query: bad value: "

int embedded_functions_add(struct sql_db *db, struct err *e) MUST_CHECK;
/* query_key() of a value. */
void embedded_json_key(struct arena *a, struct json_value v, struct query_value *ret);
/* Whether the text matches the pattern; false with *steps at 0: not decided within *steps. */
bool embedded_like(struct slice text, struct slice pattern, bool is_folded, size_t *steps);
