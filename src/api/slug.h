/* Slugs: the part of a name that goes into a URL. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum { SLUG_CHARS = 64 };

/* `given` checked (-EINVAL VALIDATION_ERROR unless lower-case letters, digits, '-' and '_'), or one made from `name`. */
int slug_of(struct arena *a, const char *given, const char *name, const char **ret, struct err *e) MUST_CHECK;
