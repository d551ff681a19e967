/* Reads a database file without changing anything: no schema, no file beside it. Also while a service works on it, or
 * after one was killed. Blocking; any thread.
 *
 *     r = examine_version(path, is_in_use, &version, e);      version 0: the file is missing or empty
 */
#pragma once

#include "store/tables/settings_rows.h"

/* is_in_use: a service has the file open. */
int examine_version(const char *path, bool is_in_use, int64_t *ret, struct err *e) MUST_CHECK;
/* The stored settings of a hearth.db, of any schema that has their table; none from an older one. */
int examine_settings(const char *path, bool is_in_use, struct arena *a, struct setting_row **ret, size_t *ret_n,
                     struct err *e) MUST_CHECK;
