/* Packs files into a gzipped tar and unpacks them, with libarchive. Blocking; any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct archive_item {
    const char *name, *path;
}; /* name in the archive; file on disk */

/* The last member holds the BLAKE2b digest of the names, sizes and bytes of all members before it. Mode 0600; the
 * archive has no name until it is complete and on disk, and its name is on disk when the call returns. -EEXIST when
 * path exists. */
int archive_pack(const char *path, const struct archive_item *items, size_t n, struct err *e) MUST_CHECK;
/* What an archive may hold: plain files of these names, each at most once. */
struct archive_member {
    const char *name;
    int64_t max_bytes;
}; /* max_bytes 0: only the limit for all members */
struct archive_limits {
    const struct archive_member *members;
    size_t n_members;
    int64_t max_bytes; /* of all members; 0: LIMIT_RESTORE_RATIO times the archive, at least LIMIT_RESTORE_FLOOR */
};

/* Writes the files into the folder, each fsynced. -EINVAL NOT_A_BACKUP for any other file, -EBADMSG BACKUP_DAMAGED when
 * the digest does not match, -E2BIG BACKUP_TOO_LARGE, -ENOSPC STORE_FULL; after an error the caller removes the files
 * already written. *ret_has_digest false: the archive is from a version that wrote no digest. */
int archive_unpack(const char *path, const struct archive_limits *limits, const char *folder, bool *ret_has_digest,
                   struct err *e) MUST_CHECK;
