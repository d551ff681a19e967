/* Files into a gzipped tar and out of it again, by libarchive. Blocking; any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct archive_item { const char *name, *path; };       /* name in the archive; file on disk */

/* Mode 0600, written beside path under a name nobody can guess, fsynced, then named. -EEXIST when path exists. */
int archive_pack(const char *path, const struct archive_item *items, size_t n, struct err *e) MUST_CHECK;
/* Writes those regular files whose name is in `names` (NULL-ended) into the folder; all others are refused. Each at most once.
 * -EINVAL NOT_A_BACKUP for what is no such archive. */
int archive_unpack(const char *path, const char *const *names, const char *folder, struct err *e) MUST_CHECK;
