/* Reading connections to one database file: one for each thread, made on first use and closed when the thread ends.
 *
 * Call readers_free() when no thread reads any more; it closes the connections of threads that still live.
 *
 *     r = sql_query(readers_get(s->readers), &rows, e, "SELECT ...", ...);
 */
#pragma once

#include "store/sql.h"

struct readers;

int readers_new(const char *path, struct readers **ret, struct err *e) MUST_CHECK;
/* fn prepares each connection that is opened from now on; before the first readers_get(). */
void readers_prepare_with(struct readers *rs, int (*fn)(struct sql_db *db, struct err *e));
struct readers *readers_free(struct readers *rs);
/* This thread's connection. Never NULL: when it could not be opened, each query returns -EIO with the reason. */
struct sql_db *readers_get(struct readers *rs);
/* Closes this thread's connection before the thread ends. */
void readers_thread_end(struct readers *rs);
