/* Checks that the databases of a data folder belong to it and are not older than last seen.
 *
 * Each database file has a row (table _instance): the id of its instance, and a generation that its writer raises with
 * the first change after each checkpoint, whichever program ran it (store/fold_mark.h). <data>/hearth.instance notes
 * both for every file, after the commit. So a file without this row, with another id or with a lower generation has
 * lost data: it is another file, an old copy, or its write-ahead log is missing. A killed process, or a program that
 * folds the log into the file, never makes a file older than its note. Any thread.
 *
 *     r = instance_open(data_dir, false, &in, e);
 *     r = instance_admit(in, INSTANCE_STORE, path, e);         before anything opens the file
 *     writer_start(&(struct writer_config){ ..., .instance = in, .file = INSTANCE_STORE }, &writer, e);
 */
#pragma once

#include "store/sql.h"

#define INSTANCE_FILE "hearth.instance"

struct instance;
enum instance_file { INSTANCE_STORE, INSTANCE_BACKEND, INSTANCE_VECTORS, INSTANCE_N_FILES };

/* The caller holds the folder's lock. accept_loss: nothing is refused; an unusable file is renamed to
 * <name>.damaged-<time>. */
int instance_open(const char *data_dir, bool accept_loss, struct instance **ret, struct err *e) MUST_CHECK;
struct instance *instance_close(struct instance *in);
/* 0: the file may be opened, or made when missing. -EUCLEAN DATA_LOST says what is lost and how to continue. */
int instance_admit(struct instance *in, enum instance_file file, const char *path, struct err *e) MUST_CHECK;
/* For a file that was admitted but could not be opened (r, e): 0 when the file was renamed and may be made anew;
 * otherwise r, with how to continue in e. */
int instance_give_up(struct instance *in, enum instance_file file, const char *path, int r, struct err *e) MUST_CHECK;
/* Returns the result that instance_admit() would return, without changing anything. */
int instance_examine(struct instance *in, enum instance_file file, const char *path, struct err *e) MUST_CHECK;
/* What was accepted so far, as sentences; NULL after the last. */
const char *instance_accepted(const struct instance *in, size_t i);

/* For the writer: makes the row in its transaction, raises the generation in its transaction, writes the note after the
 * commit. */
struct instance_row {
    char id[40];
    int64_t generation;
};
int instance_stamp(struct instance *in, enum instance_file file, struct sql_db *db, struct instance_row *ret,
                   struct err *e) MUST_CHECK;
int instance_raise(struct sql_db *db, int64_t *ret_generation, struct err *e) MUST_CHECK;
int instance_note(struct instance *in, enum instance_file file, const char *path, const struct instance_row *row,
                  struct err *e) MUST_CHECK;
