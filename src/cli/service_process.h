/* The process that serves a data folder, found by the folder's lock and its socket, never by a name; and starting one
 * in the background. One thread.
 *
 *     r = service_process_find(data_dir, PATIENCE_MS, &pid, e);       0 and pid 0: none runs
 *     r = service_process_stop(data_dir, pid, STOP_MS, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <sys/types.h>

/* Waits up to patience_ms for a process that holds the folder to answer on its socket: another short command, or a
 * service that is starting. -EBUSY NOT_ANSWERING names the process that still did not. */
int service_process_find(const char *data_dir, int64_t patience_ms, pid_t *ret, struct err *e) MUST_CHECK;
/* SIGTERM to the process that service_process_find() found, through a pidfd, after checking once more that it serves
 * the folder; waits for its end. -ETIMEDOUT STOP_TIMED_OUT. */
int service_process_stop(const char *data_dir, pid_t pid, int64_t deadline_ms, struct err *e) MUST_CHECK;
/* Starts `program serve --data data_dir` in a session of its own, its output in the log file, and waits until it
 * answers. -ECHILD START_FAILED with the last line of its output; -ETIMEDOUT when it still starts after deadline_ms. */
int service_process_start(const char *program, const char *data_dir, int64_t deadline_ms, struct err *e) MUST_CHECK;
/* <data>/hearth.log */
char *service_process_log(struct arena *a, const char *data_dir);
