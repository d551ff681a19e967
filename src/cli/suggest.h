/* Suggestions for a mistyped name or command. Pure. */
#pragma once

#include "base/arena.h"

/* The nearest of the names; NULL when no name is near. */
const char *suggest_name(const char *typed, const char *const *names, size_t n);
/* The words of the nearest command or group ("app list", "app"), or NULL when none is near. second may be NULL. */
const char *suggest_command(struct arena *a, const char *first, const char *second);
