/* One archive of the content of a data folder: copies of the databases, the settings file, the master key. Any thread;
 * blocking.
 *
 * A gzipped tar (mode 0600): first hearth-backup.json with a digest of each file, last a digest of all members. It
 * contains the key to every sealed secret, but no data of Local Apps. The archive is made completely and on disk or not
 * at all, also while the service uses the databases; it is restored only after every digest and database in it has been
 * checked.
 *
 *     r = backup_create(arena, &(struct backup_source){ data_dir, backend_file }, "/mnt/hearth.tar.gz", &files, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct backup_source {
    const char *data_dir;
    const char
        *backend_file; /* may be outside data_dir; in the archive its name is backend.db; NULL: the archive has none */
};

struct backup_files {
    const char **items;
    size_t n;
}; /* names in the archive, without the manifest */

/* -EEXIST when path exists. */
int backup_create(struct arena *a, const struct backup_source *from, const char *path, struct backup_files *ret,
                  struct err *e) MUST_CHECK;
struct backup_options {
    bool is_forced;    /* also over existing data */
    int64_t max_bytes; /* total size of the files; 0: the default of archive_unpack() */
};

struct backup_restored {
    struct backup_files files;
    bool is_unproven; /* the archive has no digests, being older: only SQLite's own checks were made */
};

/* Call while no service runs: the caller holds the folder's lock. -EEXIST when data_dir holds databases and is_forced
 * is not set; with it they are kept as <name>.before-restore-<time>. backend.db is restored into data_dir, wherever it
 * came from. The folder holds either the old data or the backup, even when this process is killed: then
 * backup_finish_restore() must be called before anything in the folder is used. */
int backup_restore(struct arena *a, const char *path, const char *data_dir, const struct backup_options *options,
                   struct backup_restored *ret, struct err *e) MUST_CHECK;
/* The files of a restore wait to be moved into place. */
bool backup_is_restoring(const char *data_dir);
int backup_finish_restore(const char *data_dir, bool *ret_was_unfinished, struct err *e) MUST_CHECK;
/* Removes the files that killed backups and restores left in the folder; returns how many. The caller holds the
 * folder's lock. */
size_t backup_clean(const char *data_dir);
