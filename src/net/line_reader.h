/* Splits arriving bytes, in pieces of any size, into lines: for streams with one JSON value on each line (NDJSON). A
 * line ends with LF or CR LF.
 *
 * Embedded in its owner. A line above LIMIT_SSE_EVENT is an error, it is never cut; empty lines are skipped. One
 * thread.
 */
#pragma once

#include "base/buf.h"

struct line_reader {
    struct buf line;
    int (*on_line)(void *arg, struct slice line); /* negative stops and is returned */
    void *arg;
};

void line_reader_init(struct line_reader *r, int (*on_line)(void *arg, struct slice line), void *arg);
void line_reader_clear(struct line_reader *r);
int line_reader_feed(struct line_reader *r, struct slice bytes, struct err *e) MUST_CHECK;
/* Call at the end of the bytes: a last line without a line end is also reported. */
int line_reader_end(struct line_reader *r) MUST_CHECK;
