/* Files and folders as the service keeps them: private, whole or not at all. Any thread; blocking. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include <sys/types.h>

/* Makes the folder and its parents (mode 0700 for those made). An existing one is left as it is. */
int dir_make(const char *path, struct err *e) MUST_CHECK;
/* Refuses a folder in which another user may put or replace files: one of another owner (root looks into any), or writable by group or others. */
int dir_check_owner(const char *path, struct err *e) MUST_CHECK;
/* Reads a whole file of at most max bytes. -EFBIG above. */
int file_read(struct arena *a, const char *path, size_t max, struct slice *ret, struct err *e) MUST_CHECK;
/* As file_read(), to where the caller keeps a secret: no copy is left elsewhere. */
int file_read_into(const char *path, void *to, size_t max, size_t *ret_n, struct err *e) MUST_CHECK;
/* Writes beside it, fsyncs, renames over it, fsyncs the folder. */
int file_write(const char *path, struct slice bytes, mode_t mode, struct err *e) MUST_CHECK;
/* Removes a folder with everything in it; missing is fine; never follows a symbolic link. */
int dir_remove(const char *path, struct err *e) MUST_CHECK;
/* Joins and checks that the result stays below root. */
int path_below(struct arena *a, const char *root, const char *name, char **ret, struct err *e) MUST_CHECK;
/* Free bytes of the file system that holds path. */
int disk_free(const char *path, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
