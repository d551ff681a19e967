/* Brings a database file to this program's schema by an ordered array of migrations; PRAGMA user_version counts the
 * migrations that ran. Each runs in a transaction of its own. Used by store/store.c and by src/backend for its own
 * file.
 *
 *     static const struct migration list[] = { { "tables", "CREATE TABLE ..." }, { "an index", "CREATE INDEX ..." } };
 *     r = migrate_run(path, list, ARRAY_SIZE(list), e);
 */
#pragma once

#include "store/sql.h"

enum { MIGRATE_MAX_COPIES = 64 }; /* that are listed, of one file */

struct migration {
    const char *name, *sql;
};

/* Keeps a copy <path>.v<version>-<time>.bak before changing an existing database. -EPROTONOSUPPORT SCHEMA_TOO_NEW when
 * the file is newer than the list; the file is then unchanged. */
int migrate_run(const char *path, const struct migration *list, size_t n, struct err *e) MUST_CHECK;
/* The part before the change, for a file whose schema is changed by other means: the refusal, and the copy of a file
 * with an older schema. Older copies are removed once the new copy is whole. */
int migrate_prepare(const char *path, size_t n_known, struct err *e) MUST_CHECK;
/* The same refusal for a file to be restored, without changing the file. */
int migrate_check(const char *path, size_t n_known, struct err *e) MUST_CHECK;

struct migrate_copy {
    const char *path;
    int64_t bytes;
};
/* The copies that were kept beside the database file, in no order. */
size_t migrate_copies(struct arena *a, const char *path, const struct migrate_copy **ret);
