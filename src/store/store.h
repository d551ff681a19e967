/* The service's own database (<data>/hearth.db): one writer thread, one reading connection a thread.
 *
 * Opened once by main; shared by every worker. Tables and their functions live in one file a group (store/keys.h,
 * store/apps.h, store/grants.h, store/audit.h, store/tasks.h, store/runs.h, store/calendar.h, store/workspaces.h,
 * store/agents.h, store/settings_rows.h, store/sessions.h, store/deliveries.h, store/meta.h, store/backend_tokens.h,
 * store/usage.h, store/rates.h).
 * A copy of the file is kept before every migration; a schema newer than this program is refused (SCHEMA_TOO_NEW).
 */
#pragma once

#include "store/sql.h"
#include "store/writer.h"

struct store;

int store_open(const char *data_dir, struct store **ret, struct err *e) MUST_CHECK;
struct store *store_close(struct store *s);
/* This thread's reading connection; made on first use. NULL never: -EIO is remembered and told by the next query. */
struct sql_db *store_reader(struct store *s);
/* Closes this thread's reading connection: pools call it when a thread ends. */
void store_thread_end(struct store *s);
int store_write(struct store *s, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg, struct err *e) MUST_CHECK;
/* One statement through the writer, for the many writes that need nothing else. ret_changes may be NULL. */
int store_exec(struct store *s, struct err *e, int64_t *ret_changes, const char *sql, const char *binds, ...) MUST_CHECK;
/* Writes a consistent copy to path, then checks its integrity. -EEXIST when path exists. */
int store_backup(struct store *s, const char *path, struct err *e) MUST_CHECK;
/* PRAGMA integrity_check; the first complaint is the error text. */
int store_check(struct store *s, struct err *e) MUST_CHECK;
/* Puts a backup in the place of <data>/hearth.db, while no service runs (the caller holds the folder's lock). The file is
 * checked first; what was there is kept as hearth.db.before-restore-<time>. */
int store_restore(const char *data_dir, const char *backup_path, struct err *e) MUST_CHECK;
