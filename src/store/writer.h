/* The writer: owns the only writing connection of a database file and commits in groups.
 *
 * writer_run() queues a closure and returns when the transaction with the change is on disk. While no group is being
 * committed and the last one had a single change, the caller's own thread runs the closure and commits, with all that
 * is queued: two switches of threads less. Otherwise the change belongs to the next group, which the writer's thread
 * runs. The thread also folds a long write-ahead log into the file, after the callers of the commit that made it long
 * have returned. Each closure runs in a savepoint of its own: a failed closure is rolled back alone and its caller gets
 * the error; when the commit fails, every caller of the group gets the error and nothing of the group is stored.
 * Closures run on the thread of any caller, must be quick, must not call writer_run() and must not keep pointers into
 * the connection. Any thread but the loop, with 256 KiB of stack. Metrics: hearth_db_commits_total,
 * hearth_db_commit_group_size, hearth_db_commit_seconds, hearth_db_waiting labelled db="<label>".
 *
 *     static int insert_key(struct sql_db *db, void *arg, struct err *e) { ... }
 *     r = writer_run(store->writer, insert_key, &key, e);
 *
 * writer_begin() only queues the change, so that the caller can work meanwhile; writer_end() commits it or waits for
 * the group that does. Between the two the change is stored only if another change is, or after writer_hasten().
 */
#pragma once

#include "store/instance.h"

#include <semaphore.h>

struct writer;

struct writer_config {
    const char *path;
    const char *label; /* "store", "backend": metrics and thread name */
    /* Called on the thread that committed, after a commit that changed something (not while in a transaction). */
    void (*on_commit)(void *arg);
    void *arg;
    int busy_timeout_ms;  /* how long to wait for another process's transaction; 0: 10000 */
    int checkpoint_pages; /* size of the write-ahead log at which it is folded into the file; 0: 1000 */
    bool folds_beside; /* most of a long log is folded beside changes, by a thread that gives way; changes wait for it
                          when the log has grown to 2.5 times that size meanwhile */
    struct instance *instance; /* borrowed; NULL: the file belongs to no instance */
    enum instance_file file;
    bool is_schema_trusted; /* see struct sql_options */
};

/* A change under way. In memory of its caller, who leaves it alone from writer_begin() to writer_end(), also what arg
 * and e point to. */
struct writer_job {
    int (*fn)(struct sql_db *db, void *arg, struct err *e);
    void *arg;
    struct err *e; /* may be NULL */
    /* the writer's own: */
    struct writer *writer;
    struct writer_job *next;
    bool is_taken;  /* by a group */
    bool is_ended;  /* its caller waits for it */
    bool is_called; /* to run the next group */
    int r;
    sem_t is_done;
};

int writer_start(const struct writer_config *c, struct writer **ret, struct err *e) MUST_CHECK;
struct writer *writer_stop(struct writer *w); /* runs the waiting changes, then closes */
int writer_run(struct writer *w, int (*fn)(struct sql_db *db, void *arg, struct err *e), void *arg,
               struct err *e) MUST_CHECK;
/* The two halves of writer_run(). After a begin that returned 0 writer_end() must be called, also when the writer was
 * stopped meanwhile; it returns the error of the change, with job->e set. */
int writer_begin(struct writer *w, struct writer_job *job, struct err *e) MUST_CHECK;
/* Has the writer's thread begin with what is queued. */
void writer_hasten(struct writer_job *job);
int writer_end(struct writer_job *job) MUST_CHECK;
/* Folds the log into the file, as far as readers allow, on a connection of its own: changes do not wait. */
int writer_fold(struct writer *w, struct err *e) MUST_CHECK;
size_t writer_n_waiting(struct writer *w); /* changes not yet begun */
