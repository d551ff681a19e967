/* Reading connections of one database file, one a thread, made on first use and closed when the thread ends.
 *
 * readers_free() comes when no thread reads any more; it closes those of threads that still live.
 *
 *     r = sql_query(readers_get(s->readers), &rows, e, "SELECT ...", ...);
 */
#pragma once

#include "store/sql.h"

struct readers;

int readers_new(const char *path, struct readers **ret, struct err *e) MUST_CHECK;
struct readers *readers_free(struct readers *rs);
/* This thread's connection. Never NULL: when it could not be opened, its queries say -EIO and why. */
struct sql_db *readers_get(struct readers *rs);
/* Closes this thread's connection before the thread ends. */
void readers_thread_end(struct readers *rs);
