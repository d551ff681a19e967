/* The writer thread: owns the one writing connection of a database file and commits in groups.
 *
 * writer_run() hands it a closure and sleeps until the transaction that holds the change is on disk. Each closure runs
 * in a savepoint of its own: one that fails is undone alone and its error goes to its caller; when the commit fails
 * every caller of the group gets the error and nothing of it is stored. Closures must be quick, must not call
 * writer_run() and must not keep pointers into the connection. Metrics: hearth_db_commits_total, hearth_db_commit_group_size,
 * hearth_db_commit_seconds, hearth_db_waiting labelled db="<label>".
 *
 *     static int insert_key(struct sql_db *db, void *arg, struct err *e) { ... }
 *     r = writer_run(store->writer, insert_key, &key, e);
 */
#pragma once

#include "store/sql.h"

struct writer;

struct writer_config {
    const char *path;
    const char *label;                  /* "store", "backend": metrics and thread name */
    /* Called on the writer thread after a commit that changed something (not while in a transaction). */
    void (*on_commit)(void *arg);
    void *arg;
    int busy_timeout_ms;                /* waits for another process's transaction; 0: 10000 */
};

int writer_start(const struct writer_config *c, struct writer **ret, struct err *e) MUST_CHECK;
struct writer *writer_stop(struct writer *w);           /* runs what waits, then closes */
int writer_run(struct writer *w, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg, struct err *e) MUST_CHECK;
size_t writer_n_waiting(struct writer *w);              /* changes not yet begun */
