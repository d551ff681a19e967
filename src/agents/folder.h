/* The files of one thread: a folder of its own, which no path from a model leaves.
 *
 * Every path is resolved by the kernel below the folder's descriptor, without symbolic links (openat2(2):
 * RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS), so neither ".." nor a link that a command planted, nor
 * one that is swapped in between, leads out. Only plain files are opened. A file is written completely or not at all.
 * Any thread; blocking. Changes of one folder come one after another (a lock of this process).
 *
 *     AUTO(folder_close) struct folder folder = { .fd = -1 };
 *     r = folder_open(dir, MIB(256), &folder, e);
 *     r = folder_write(&folder, "notes/today.md", bytes, e);
 *
 * Errors: -EINVAL FILE_NAME, -ENOENT FILE_NOT_FOUND, -EPERM FILE_REFUSED (a link, a folder, no plain file), -EFBIG
 * FILE_TOO_LARGE, -EDQUOT FOLDER_FULL.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct folder {
    int fd;           /* owned; -1: closed */
    const char *path; /* borrowed */
    int64_t quota_bytes;
};

/* The folder of a thread below the service's data folder. Ids of threads come again after the restore of an older
 * backup, so the time at which the thread was made is a part of the name. */
char *folder_path(struct arena *a, const char *data_dir, int64_t thread_id, const char *created_at) MUST_CHECK;
/* Makes the folder when it is missing, with mode 0700. path is the service's own, absolute. */
int folder_open(const char *path, int64_t quota_bytes, struct folder *ret, struct err *e) MUST_CHECK;
void folder_close(struct folder *folder);

/* Whether a model may use the name: relative, at most LIMIT_FOLDER_PATH bytes and LIMIT_FOLDER_DEPTH parts, UTF-8
 * without control characters, no part "..", none that begins with FOLDER_OWN. "./" at the start is dropped. */
int folder_check_name(const char *name, const char **ret, struct err *e) MUST_CHECK;
#define FOLDER_OWN ".hearth-" /* unfinished files */

/* The whole file, at most LIMIT_FOLDER_FILE bytes. */
int folder_read(const struct folder *folder, const char *name, struct arena *a, struct slice *ret,
                struct err *e) MUST_CHECK;
/* Replaces or creates the file; folders on the way are made. */
int folder_write(const struct folder *folder, const char *name, struct slice bytes, struct err *e) MUST_CHECK;
/* Replaces the one place that is equal to `old`. -EINVAL EDIT_NOT_UNIQUE when it occurs nowhere or more than once. */
int folder_edit(const struct folder *folder, const char *name, struct slice old, struct slice new,
                struct err *e) MUST_CHECK;

struct folder_entry {
    const char *name; /* relative to the folder */
    int64_t n_bytes;
    int64_t modified_ms; /* wall clock */
    bool is_folder;
};
struct folder_entries {
    struct folder_entry *items; /* sorted by name */
    size_t n;
    bool is_cut; /* there are more than LIMIT_FOLDER_LIST */
};
/* name NULL or "": the folder itself. is_deep: what is in its folders too. Links and other things than files and
 * folders are left out. */
int folder_list(const struct folder *folder, const char *name, bool is_deep, struct arena *a,
                struct folder_entries *ret, struct err *e) MUST_CHECK;

/* The bytes and the number of everything in the folder. -EDQUOT FOLDER_FULL when it is deeper or has more entries than
 * is counted. */
struct folder_usage {
    int64_t n_bytes;
    size_t n_entries;
};
int folder_measure(const struct folder *folder, struct folder_usage *ret, struct err *e) MUST_CHECK;
