/* What a person may have meant by a command that is not there. Pure. */
#pragma once

#include "base/arena.h"

/* The words of the nearest command or group ("app list", "app"), or NULL when nothing is near. second may be NULL. */
const char *suggest_command(struct arena *a, const char *first, const char *second);
