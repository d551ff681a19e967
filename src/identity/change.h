/* Describes to the person how an app's command differs from the command its grant was decided for. Pure; any thread.
 *
 *     command_change(a, row.command, row.app_command)      "command: "/bin/sh", before "/bin/true"; variables: ..."
 */
#pragma once

#include "base/arena.h"

/* Both are texts of apps/command.h; NULL: unknown. */
const char *command_change(struct arena *a, const char *before, const char *after);
