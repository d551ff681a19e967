/* Slugs: the part of a name that goes into a URL. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum { SLUG_CHARS = 64 };

/* Returns `given` after checking it (-EINVAL VALIDATION_ERROR unless it has only lower-case letters, digits, '-' and
 * '_'), else a slug made from `name`. */
int slug_of(struct arena *a, const char *given, const char *name, const char **ret, struct err *e) MUST_CHECK;
