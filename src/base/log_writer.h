/* Writes log lines to a descriptor from a thread of its own, so that a reader who does not read stops nobody: lines wait in a bounded
 * queue, and those beyond it are dropped and counted (`hearth_log_dropped_lines_total`).
 *
 * One a process, between log_writer_start() and log_writer_stop(); base/log.c writes directly before and after. Any thread may add lines.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

int log_writer_start(int fd, struct err *e) MUST_CHECK;
/* Writes what waits, for at most LIMIT_LOG_FLUSH_MS. Does nothing when none was started. */
void log_writer_stop(void);
/* A whole line with its newline. False: no writer was started. Never waits for the descriptor. */
bool log_writer_add(struct slice line);
/* How many lines were dropped since the last call, once there is room for two lines again; before that 0. */
uint64_t log_writer_take_dropped(void);
