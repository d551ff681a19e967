/* Brings a database file to the schema this program knows: an ordered array of migrations, PRAGMA user_version counts
 * those that ran. Each runs in a transaction of its own. Used by store/store.c and by src/backend for its own file.
 *
 *     static const struct migration migrations[] = { { "tables", "CREATE TABLE ..." }, { "an index", "CREATE INDEX ..." } };
 *     r = migrate_run(path, migrations, ARRAY_SIZE(migrations), e);
 */
#pragma once

#include "store/sql.h"

struct migration { const char *name, *sql; };

/* A copy <path>.v<version>-<time>.bak is kept before an existing database is changed. -EPROTONOSUPPORT SCHEMA_TOO_NEW when the file is
 * newer than the list: then nothing was touched. */
int migrate_run(const char *path, const struct migration *list, size_t n, struct err *e) MUST_CHECK;
/* The same refusal for a file that shall be taken over (restore), without changing it. */
int migrate_check(const char *path, size_t n_known, struct err *e) MUST_CHECK;
