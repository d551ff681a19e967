/* Makes foreign text safe for a person to read: on a terminal, in a line of the log, as JSON on a terminal. Pure
 * functions; any thread.
 *
 * Characters that control a terminal (C0 with ESC, DEL, C1), reverse the reading order (bidirectional controls), break
 * lines invisibly (U+2028, U+2029) or are invisible (zero width, fillers, tags), and bytes that are not UTF-8, are
 * written as escapes. All other text is unchanged. A second escaping changes nothing.
 */
#pragma once

#include "base/buf.h"

enum visible_form {
    VISIBLE_LINE,  /* one line: line feeds and tabs are escaped too */
    VISIBLE_LINES, /* line feeds and tabs stay */
    VISIBLE_JSON,  /* the text is JSON: escapes are those of its strings (RFC 8259 section 7) */
};

void visible_add(struct buf *out, struct slice text, enum visible_form form);
