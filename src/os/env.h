/* The environment of a child: PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TZ, TMPDIR, XDG_RUNTIME_DIR of the service when
 * they are set, PYTHONUNBUFFERED=1 (Python then writes each line at once), and the variables that the caller adds.
 * Nothing else is inherited. Later settings of a name replace
 * earlier ones.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct env_list;

struct env_list *env_list_new(struct arena *a) MUST_CHECK; /* starts with the inherited variables */
/* -EINVAL for a name that is not [A-Za-z_][A-Za-z0-9_]*, -E2BIG above LIMIT_ARG_BYTES. */
int env_list_set(struct env_list *l, const char *name, const char *value, struct err *e) MUST_CHECK;
/* "svc", "APP_ID" -> "SVC_APP_ID". */
char *env_name(struct arena *a, const char *prefix, const char *rest);
const char *const *env_list_strings(struct env_list *l); /* NULL-ended; in the arena */
