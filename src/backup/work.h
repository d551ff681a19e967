/* Folders in which a backup is made or unpacked: next to the data, so on the same file system and equally private. For
 * the files of this folder only. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

int backup_work_make(struct arena *a, const char *data_dir, const char *prefix, const char **ret,
                     struct err *e) MUST_CHECK;
/* A failure is ignored: the next start removes a folder that is left. */
void backup_work_remove(const char *folder);
