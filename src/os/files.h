/* Private files and folders of the service, written completely or not at all. Any thread; blocking. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include <sys/types.h>

/* Makes the folder and missing parents, with mode 0700. Existing folders are left unchanged. */
int dir_make(const char *path, struct err *e) MUST_CHECK;
/* Refuses a folder in which another user may create or replace files: one with another owner (root accepts any owner),
 * or writable by group or others. */
int dir_check_owner(const char *path, struct err *e) MUST_CHECK;
/* Reads a whole file of at most max bytes. -EFBIG above. */
int file_read(struct arena *a, const char *path, size_t max, struct slice *ret, struct err *e) MUST_CHECK;
/* Like file_read(), directly into the caller's memory for a secret; no other copy is left. */
int file_read_into(const char *path, void *to, size_t max, size_t *ret_n, struct err *e) MUST_CHECK;
/* BLAKE2b hash of the file as hex, and the size of the file. */
int file_hash(const char *path, char ret_hex[HASH_HEX_SIZE], int64_t *ret_size, struct err *e) MUST_CHECK;
/* Writes a temporary file in the same folder, fsyncs it, renames it over path, fsyncs the folder. */
int file_write(const char *path, struct slice bytes, mode_t mode, struct err *e) MUST_CHECK;
/* Makes entries created or renamed in the folder of path durable. */
int file_sync_folder(const char *path, struct err *e) MUST_CHECK;
/* Removes a folder with its content; a missing folder is fine; never follows a symbolic link. */
int dir_remove(const char *path, struct err *e) MUST_CHECK;
/* Joins root and name, and checks that the result is below root. */
int path_below(struct arena *a, const char *root, const char *name, char **ret, struct err *e) MUST_CHECK;
/* Whether files can be written there: -EROFS when the file system is read-only, -ENOSPC when fewer than min_bytes are
 * free, no more files can be created, or a quota is used up. Writes to a file without a name. */
int disk_check(const char *path, uint64_t min_bytes, struct err *e) MUST_CHECK;
/* Free bytes of the file system that holds path. */
int disk_free(const char *path, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
