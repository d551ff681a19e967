/* Checks that the schema of a database file is the one that this program would make. Blocking; any thread. */
#pragma once

#include "store/migrate.h"

/* Compares with the first user_version migrations of the list; -EUCLEAN STORE_DAMAGED names the first object that is
 * missing or different. */
int schema_check_file(const char *path, const struct migration *list, size_t n, struct err *e) MUST_CHECK;
/* Every object of `expected` must be in `found`; the SQL text of a table may differ as long as its columns are the
 * same. is_strict: triggers that only `found` has are errors too. */
int schema_compare(struct sql_db *expected, struct sql_db *found, bool is_strict, struct err *e) MUST_CHECK;
