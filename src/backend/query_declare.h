/* The rules of a declared table, for every backend. Pure; any thread.
 *
 *     r = query_declare_check(declared, e);                  before anything is made
 *     what = query_declare_difference(&column, &existing);   NULL: the column fits
 */
#pragma once

#include "backend/query.h"

/* -EINVAL VALIDATION_ERROR with the field "columns.NAME.rule", -E2BIG TOO_LARGE. */
int query_declare_check(const struct table_shape *declared, struct err *e) MUST_CHECK;
bool query_default_is_word(const char *default_text); /* gen_random_uuid(), now() or auth.uid() */
/* -EEXIST TABLE_DIFFERS unless the existing table has the declared columns with their types, or lacks only columns that
 * can be added: nullable ones that are no key, not unique, and have no computed default. */
int query_declare_compare(const struct table_shape *declared, const struct table_shape *existing,
                          struct err *e) MUST_CHECK;
