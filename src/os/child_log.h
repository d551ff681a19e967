/* The last lines that a child wrote, with time and stream. Bounded by LIMIT_LOG_LINES and LIMIT_LOG_BYTES; the oldest
 * lines are dropped first. Reference counted, any thread (one mutex). A line above LIMIT_LOG_LINE_BYTES is cut there
 * and marked. Invalid UTF-8 and control bytes are replaced.
 */
#pragma once

#include "base/arena.h"
#include <stdatomic.h>

enum child_stream {
    CHILD_STDOUT,
    CHILD_STDERR,
    CHILD_NOTE /* messages of the supervisor */,
    CHILD_ENTRY /* entries that the app sent to its log */
};

struct child_log;
const char *child_stream_name(enum child_stream s); /* "stdout", "stderr", "note", "log" */
struct child_line {
    int64_t number;
    int64_t wall_ms;
    enum child_stream stream;
    const char *text;
};

struct child_log *child_log_new(void) MUST_CHECK;
struct child_log *child_log_ref(struct child_log *log);
struct child_log *child_log_unref(struct child_log *log);
void child_log_add_bytes(struct child_log *log, enum child_stream stream, struct slice bytes); /* splits into lines */
/* Whole lines of CHILD_NOTE or CHILD_ENTRY. */
void child_log_add_text(struct child_log *log, enum child_stream stream, struct slice text);
void child_log_note(struct child_log *log, const char *fmt, ...) PRINTF_LIKE(2, 3);
void child_log_flush(struct child_log *log); /* an unfinished last line becomes a line */
/* Copies the lines with number > after (0 = from the oldest kept) into the arena; of more than max lines, the
 * newest. */
size_t child_log_lines(struct child_log *log, struct arena *a, int64_t after, size_t max, struct child_line **ret);
/* The last n lines of one stream joined by newlines, for messages such as "last lines of standard error". */
char *child_log_tail(struct child_log *log, struct arena *a, enum child_stream stream, size_t n);
/* All kept lines, each as "time stream text". */
char *child_log_text(struct child_log *log, struct arena *a);
/* Waits until a line with number > after exists, one of the flags is true, or the time is over. */
void child_log_wait(struct child_log *log, int64_t after, int timeout_ms, const atomic_bool *is_gone,
                    const atomic_bool *is_leaving);
