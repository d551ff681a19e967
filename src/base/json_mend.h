/* Mends JSON that other programs write and simdjson refuses: halves of surrogate pairs (a text that JavaScript cut
 * within an emoji) and integers beyond 64 bits. Private to json_parse(); any thread.
 *
 * A lone surrogate becomes \ufffd, but not in the name of a member: two names could become equal. "e0" is appended to
 * an integer beyond 64 bits, so that it is read as a double.
 *
 *     n = json_mend(text, &out, SIZE_MAX);
 */
#pragma once

#include "base/buf.h"

/* Writes the mended text to out until out has at least `enough` bytes. Returns how many bytes of the text were read. */
size_t json_mend(struct slice text, struct buf *out, size_t enough);
