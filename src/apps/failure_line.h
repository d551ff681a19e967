/* The line of a program's output that states why the program ended: npm and Node write more lines after it. Pure; any
 * thread.
 *
 *     line = failure_line(child_log_tail(log, a, CHILD_STDERR, FAILURE_LINES), a);
 */
#pragma once

#include "base/arena.h"

enum { FAILURE_LINES = 60 };

/* npm's first sentence about its error, else the last exception of Node, else the last line; "" for "". In the arena.
 */
const char *failure_line(const char *lines, struct arena *a);
