/* The service's own database (<data>/hearth.db): one writer thread, and one reading connection for each thread.
 *
 * Opened once by main; shared by every worker. Each group of tables has a file with its functions (store/tables/keys.h,
 * store/tables/apps.h, store/tables/grants.h, store/tables/audit.h, store/tables/tasks.h, store/tables/runs.h,
 * store/tables/calendar.h, store/tables/workspaces.h, store/tables/agents.h, store/tables/settings_rows.h,
 * store/tables/sessions.h, store/tables/deliveries.h, store/meta.h, store/tables/backend_tokens.h,
 * store/tables/usage.h, store/tables/rates.h). A copy of the file is kept before every migration; a schema newer than
 * this program is refused (SCHEMA_TOO_NEW).
 */
#pragma once

#include "store/sql.h"
#include "store/writer.h"

struct store;
struct backup_patience;

/* store_open_of() without an instance, for tests. */
int store_open(const char *data_dir, struct store **ret, struct err *e) MUST_CHECK;
/* The same, after the instance admits the file. */
int store_open_of(struct instance *instance, const char *data_dir, struct store **ret, struct err *e) MUST_CHECK;
struct store *store_close(struct store *s);
/* This thread's reading connection; made on first use. Never NULL: when it could not be opened, each query returns -EIO
 * with the reason. */
struct sql_db *store_reader(struct store *s);
/* Closes this thread's reading connection; pools call it when a thread ends. */
void store_thread_end(struct store *s);
int store_write(struct store *s, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg,
                struct err *e) MUST_CHECK;
/* The first half of store_write(); writer_end() is the second (store/writer.h). */
int store_begin(struct store *s, struct writer_job *job, struct err *e) MUST_CHECK;
/* Runs one statement through the writer, for writes that need nothing else. ret_changes may be NULL. */
int store_exec(struct store *s, struct err *e, int64_t *ret_changes, const char *sql, const char *binds,
               ...) MUST_CHECK;
/* PRAGMA integrity_check and the schema; the first message is the error text. */
int store_check(struct store *s, const struct backup_patience *patience, struct err *e) MUST_CHECK;
/* Checks that this copy of a hearth.db can replace the original: made by Hearth, undamaged, and of a known version. */
int store_check_file(const char *path, struct err *e) MUST_CHECK;
