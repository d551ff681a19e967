/* Reading the change log of an embedded file: every committed change once, in commit order, from every writer.
 *
 * One thread at a time. The cursor is at the last change reported; a change that was trimmed before it could be
 * reported is a gap.
 *
 *     r = embedded_log_open(path, deletions, &log, e);
 *     r = embedded_log_seek_end(&log, e);
 *     r = embedded_log_read(&log, &sink, e);              again after each wake
 */
#pragma once

#include "backend/backend.h"
#include "store/sql.h"

struct embedded_log {
    struct sql_db *db;     /* owned */
    const char *deletions; /* borrowed: the table of tombstones */
    int64_t cursor;
    int64_t data_version; /* of db at the last reading; -1: read in any case */
};

struct embedded_log_sink {
    void (*on_event)(void *arg, const struct backend_event *event);
    void (*on_gap)(void *arg);
    void *arg;
};

int embedded_log_open(const char *path, const char *deletions, struct embedded_log *ret, struct err *e) MUST_CHECK;
void embedded_log_close(struct embedded_log *log);
/* Only changes committed from now on are reported. */
int embedded_log_seek_end(struct embedded_log *log, struct err *e) MUST_CHECK;
int embedded_log_read(struct embedded_log *log, const struct embedded_log_sink *sink, struct err *e) MUST_CHECK;
