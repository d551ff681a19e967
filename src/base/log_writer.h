/* Writes log lines to a descriptor from a thread of its own, so that a reader that stops reading blocks no other
 * thread: lines wait in a bounded queue, and lines beyond its size are dropped and counted
 * (`hearth_log_dropped_lines_total`).
 *
 * One for each process, between log_writer_start() and log_writer_stop(); before and after that, base/log.c writes
 * directly. Any thread may add lines.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

int log_writer_start(int fd, struct err *e) MUST_CHECK;
/* Writes the waiting lines, for at most LIMIT_LOG_FLUSH_MS. Does nothing when no writer was started. */
void log_writer_stop(void);
/* A whole line with its newline. False: no writer was started. Never waits for the descriptor. */
bool log_writer_add(struct slice line);
/* How many lines were dropped since the last call; 0 until there is room for two lines again. */
uint64_t log_writer_take_dropped(void);
