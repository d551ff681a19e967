/* One archive of what a data folder holds: copies of the databases, the settings file, the master key. Any thread; blocking.
 *
 * A gzipped tar (mode 0600) with hearth-backup.json first; it opens what is sealed. Data of Local Apps is not in it. Made whole or not at
 * all, also while the service works on the databases; restored only after every database in it has been checked.
 *
 *     r = backup_create(arena, &(struct backup_source){ data_dir, backend_file }, "/mnt/hearth.tar.gz", &files, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct backup_source {
    const char *data_dir;
    const char *backend_file;           /* may lie elsewhere; in the archive it is backend.db */
};

struct backup_files { const char **items; size_t n; };  /* names in the archive, the manifest left out */

/* -EEXIST when path exists. */
int backup_create(struct arena *a, const struct backup_source *from, const char *path, struct backup_files *ret, struct err *e) MUST_CHECK;
struct backup_wish {
    bool is_forced;                     /* also over data that is there */
    int64_t max_bytes;                  /* what the files may take in all; 0: as archive_unpack() has it */
};

/* While no service runs: the caller holds the folder's lock. -EEXIST when data_dir holds databases and it is not forced; else they are kept as
 * <name>.before-restore-<time>. backend.db goes into data_dir, wherever it came from. */
int backup_restore(struct arena *a, const char *path, const char *data_dir, const struct backup_wish *wish, struct backup_files *ret, struct err *e) MUST_CHECK;
