/* How what is started for an app differs from what a grant was decided for, in words for the person. Pure; any thread.
 *
 *     command_change(a, row.command, row.app_command)      "command: "/bin/sh", before "/bin/true"; variables: ..."
 */
#pragma once

#include "base/arena.h"

/* Both are texts of apps/command.h; NULL: not known. */
const char *command_change(struct arena *a, const char *before, const char *after);
