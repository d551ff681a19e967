/* The only parser of the configuration file. Pure; any thread.
 *
 * Lines `key = value`; # begins a comment at the start of a line or after a blank; a value in double quotes keeps
 * blanks and #, and may contain \" \\ \n \t.
 *
 *     r = settings_file_parse(arena, bytes, "/etc/hearth.conf", take_pair, settings, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

typedef int settings_file_fn(void *arg, const char *key, const char *value, int line, struct err *e);

/* Calls fn for each pair, in order, until one fails. -EINVAL BAD_SETTING "<name>:<line>: ..." for any other line. */
int settings_file_parse(struct arena *a, struct slice text, const char *name, settings_file_fn *fn, void *arg,
                        struct err *e) MUST_CHECK;
