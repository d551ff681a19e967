/* All output of the commands goes through here, so that no foreign text controls the terminal (base/visible.h);
 * tests/static/shape.mjs checks this. One thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>

/* One line or a part of a line: line feeds stay only at the beginning and end of the text. */
void out_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same on standard error. */
void out_complain(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Lines unchanged: logs, tables, help. */
void out_lines(FILE *to, struct slice text);
void out_json(struct slice json);
/* A line on standard error, a terminal, that the next one replaces; "" takes it away. */
void out_progress(struct slice line);
/* Adds the text in single quotes, as one word of a shell. */
void out_add_word(struct buf *to, const char *text);
/* A value in the form for one line. */
char *out_shown(struct arena *a, struct slice value);
