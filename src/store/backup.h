/* Copies of database files and the check of them. Blocking; any thread.
 *
 *     r = backup_copy("/data/hearth.db", "/mnt/hearth.bak", e);     whole and checked, or not there at all
 */
#pragma once

#include "store/sql.h"

/* A consistent copy of a database that may be in use: checked, fsynced, mode 0600. -EEXIST when `to` exists. */
int backup_copy(const char *from, const char *to, struct err *e) MUST_CHECK;
/* PRAGMA integrity_check and foreign_key_check; -EUCLEAN STORE_DAMAGED with the first complaint. */
int backup_check(const char *path, struct err *e) MUST_CHECK;
/* Makes a rename of path durable: fsync of the folder it is in. */
int backup_sync_folder(const char *path, struct err *e) MUST_CHECK;
