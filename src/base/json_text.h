/* JSON (RFC 8259) as it passes through as text: its grammar is checked without a tree. For text of a database, which
 * may be nested more deeply and have larger numbers than json_parse() reads; whoever reads values uses json.h. Pure;
 * any thread.
 *
 *     out = arena_alloc(a, text.n + 1);
 *     n = json_text_compact(text, out);
 *     if (n == 0)
 *         return refuse(e);
 */
#pragma once

#include "base/slice.h"

/* Copies the text without the blanks between its parts to `to`, which has text.n bytes. Returns the number of bytes, 0
 * when the text is not one JSON value; `to` then holds anything. Strings must be valid UTF-8 already. */
size_t json_text_compact(struct slice text, char *to);
/* Bytes of the number at the start of the text; 0: there is none. */
size_t json_text_number_bytes(struct slice text);
