/* The last lines a child wrote, with time and stream. Bounded by LIMIT_LOG_LINES and LIMIT_LOG_BYTES; oldest leave first.
 * Reference counted, any thread (one mutex). A line above LIMIT_LOG_LINE_BYTES is cut there and marked. Invalid UTF-8 and
 * control bytes are replaced.
 */
#pragma once

#include "base/arena.h"
#include <stdatomic.h>

enum child_stream { CHILD_STDOUT, CHILD_STDERR, CHILD_NOTE /* the supervisor's own words */ };

struct child_log;
const char *child_stream_name(enum child_stream s);     /* "stdout", "stderr", "note" */
struct child_line { int64_t number; int64_t wall_ms; enum child_stream stream; const char *text; };

struct child_log *child_log_new(void) MUST_CHECK;
struct child_log *child_log_ref(struct child_log *log);
struct child_log *child_log_unref(struct child_log *log);
void child_log_add_bytes(struct child_log *log, enum child_stream stream, struct slice bytes);  /* splits into lines */
void child_log_note(struct child_log *log, const char *fmt, ...) PRINTF_LIKE(2, 3);
void child_log_flush(struct child_log *log);            /* an unfinished last line becomes a line */
/* Lines with number > after (0 = from the oldest kept), at most max of the newest, copied into the arena. */
size_t child_log_lines(struct child_log *log, struct arena *a, int64_t after, size_t max, struct child_line **ret);
/* Last n lines of one stream joined by newlines: for "last lines of standard error". */
char *child_log_tail(struct child_log *log, struct arena *a, enum child_stream stream, size_t n);
/* All kept lines, "time stream text" each. */
char *child_log_text(struct child_log *log, struct arena *a);
/* Waits until a line with number > after is there, one of the flags is true, or the time is over. */
void child_log_wait(struct child_log *log, int64_t after, int timeout_ms, const atomic_bool *is_gone, const atomic_bool *is_leaving);
