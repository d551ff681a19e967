/* Files into a gzipped tar and out of it again, by libarchive. Blocking; any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct archive_item { const char *name, *path; };       /* name in the archive; file on disk */

/* Mode 0600, written beside path under a name nobody can guess, fsynced, then named. -EEXIST when path exists. */
int archive_pack(const char *path, const struct archive_item *items, size_t n, struct err *e) MUST_CHECK;
/* What an archive may hold: plain files of these names, each at most once. */
struct archive_member { const char *name; int64_t max_bytes; };         /* max_bytes 0: only the limit of all together */
struct archive_limits {
    const struct archive_member *members;
    size_t n_members;
    int64_t max_bytes;                  /* of all together; 0: LIMIT_RESTORE_RATIO times the archive, but at least LIMIT_RESTORE_FLOOR */
};

/* Writes the files into the folder. -EINVAL NOT_A_BACKUP for what is no such archive, -E2BIG BACKUP_TOO_LARGE, -ENOSPC STORE_FULL; what was written
 * until then is the caller's to remove. */
int archive_unpack(const char *path, const struct archive_limits *limits, const char *folder, struct err *e) MUST_CHECK;
