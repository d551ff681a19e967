/* The row filter of a Local App: one condition "column=operator.value" (specification, Local App configuration).
 *
 * column: a column of the activities table, or a path into a JSON column: raw_data->>key, raw_data->a->>b. operator: eq
 * neq gt gte lt lte. value: the rest of the text, unchanged; a value in double quotes keeps its blanks and may escape
 * with a backslash. Comparison follows the type of the column's value: numbers as numbers, times as times, booleans as
 * true/false, everything else as text by code point. A NULL or missing column matches nothing, not even neq (as in
 * SQL).
 */
#pragma once

#include "backend/backend.h"

struct filter;

/* NULL, "" and blanks: *ret is NULL, which matches every row. -EINVAL INVALID_FILTER states the mistake and a correct
 * form. */
int filter_parse(struct arena *a, const char *text, struct filter **ret, struct err *e) MUST_CHECK;
bool filter_matches(const struct filter *f, const struct backend_row *row);

/* The same grammar for a table with columns of its own: any name, with a path or without. The caller compares the
 * column as its type asks for; a member below a path, filter_matches_member() does. */
int filter_parse_own(struct arena *a, const char *text, struct filter **ret, struct err *e);
const char *filter_column(const struct filter *f);
bool filter_has_path(const struct filter *f);
struct slice filter_value(const struct filter *f);
/* Whether the operator takes a value that is less than (< 0), equal to (0) or greater than the filter's. */
bool filter_accepts(const struct filter *f, int difference);
/* column: the value of the JSON column. */
bool filter_matches_member(const struct filter *f, struct json_value column);
