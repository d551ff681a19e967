/* The members that an archive may hold; for the files of this folder only. */
#pragma once

#include "base/limits.h"
#include "base/util.h"

#define BACKUP_MANIFEST "hearth-backup.json"
#define BACKUP_WORK "backup-"         /* prefix of a folder next to the data in which a backup is made ... */
#define RESTORE_WORK "restore-"       /* ... or unpacked; six letters follow */
#define RESTORE_READY "restore.ready" /* a folder of files that must be moved into place ... */
#define RESTORE_PLAN "plan"           /* ... and what happens to the existing files */

/* Files of format 1 have no digests. */
enum { BACKUP_FORMAT = 2, BACKUP_FORMAT_WITHOUT_DIGESTS = 1, BACKUP_N_PARTS = 5 };

/* A database is copied and checked; every other file is read unchanged. */
struct backup_part {
    const char *name;
    bool is_database;
    bool is_own; /* optional: a folder without this part is restored without it */
    int64_t max_bytes;
};
extern const struct backup_part backup_parts[BACKUP_N_PARTS];
