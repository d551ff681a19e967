/* Copies and checks database files. Blocking; any thread.
 *
 *     r = backup_copy("/data/hearth.db", "/mnt/hearth.bak", e);     whole and checked, or not there at all
 */
#pragma once

#include "store/sql.h"

/* A consistent copy of a database that may be in use: checked, fsynced, mode 0600. -EEXIST when `to` exists. */
int backup_copy(const char *from, const char *to, struct err *e) MUST_CHECK;
/* Runs PRAGMA integrity_check and foreign_key_check; -EUCLEAN STORE_DAMAGED with the first message. */
int backup_check(const char *path, struct err *e) MUST_CHECK;
/* The same check for a large file while others wait: it ends with -EINTR when goes_on() returns false. */
struct backup_patience {
    bool (*goes_on)(void *arg);
    void *arg;
};
int backup_check_while(const char *path, const struct backup_patience *patience, struct err *e) MUST_CHECK;
/* Makes a rename of path durable: fsync of its folder. */
int backup_sync_folder(const char *path, struct err *e) MUST_CHECK;
