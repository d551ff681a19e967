/* Foreign text where a person reads it: a terminal, a line of the log, JSON on a terminal. Pure; any thread.
 *
 * What steers a terminal (C0, DEL, C1, ESC among them), turns the order of what is read (bidirectional controls), splits lines unseen (U+2028, U+2029),
 * is not seen at all (zero width, fillers, tags) or is no UTF-8 is written as an escape. All else stays as it is. Escaping twice changes nothing.
 */
#pragma once

#include "base/buf.h"

enum visible_form {
    VISIBLE_LINE,                       /* one line: line feeds and tabs are escaped too */
    VISIBLE_LINES,                      /* line feeds and tabs stay */
    VISIBLE_JSON,                       /* the text is JSON: escapes are those of its strings (RFC 8259 section 7) */
};

void visible_add(struct buf *out, struct slice text, enum visible_form form);
