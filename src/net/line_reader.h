/* Lines out of bytes as they come, split anywhere: streams of one JSON value a line (NDJSON). Ends are LF or CR LF.
 *
 * Embedded in its owner. A line above LIMIT_SSE_EVENT is an error, never a cut; empty lines are left out. One thread.
 */
#pragma once

#include "base/buf.h"

struct line_reader {
    struct buf line;
    int (*on_line)(void *arg, struct slice line);       /* negative stops and is returned */
    void *arg;
};

void line_reader_init(struct line_reader *r, int (*on_line)(void *arg, struct slice line), void *arg);
void line_reader_clear(struct line_reader *r);
int line_reader_feed(struct line_reader *r, struct slice bytes, struct err *e) MUST_CHECK;
/* The bytes have ended: a last line without its end is a line too. */
int line_reader_end(struct line_reader *r) MUST_CHECK;
