/* What the commands print. Everything goes through here, so that no foreign text steers the terminal (base/visible.h); tests/static/shape.mjs sees
 * to it. One thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>

/* One line or a part of it: line feeds stay at its beginning and end only. */
void out_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same on standard error. */
void out_complain(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Lines as they are: logs, tables, help. */
void out_lines(FILE *to, struct slice text);
void out_json(struct slice json);
/* One line's form of a value. */
char *out_shown(struct arena *a, struct slice value);
