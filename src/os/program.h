/* Finding the program a command names, and saying in one sentence what to do when it cannot be run. Any thread; blocking.
 *
 *     r = program_find(arena, "uvx", working_dir, path_of_the_child, &path, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Without a slash the command is looked up in search_path (colons between; only absolute folders count; NULL: the system's
 * usual ones). With one it is meant relative to working_dir (NULL: the service's).
 * -ENOENT COMMAND_NOT_FOUND, -EACCES COMMAND_NOT_EXECUTABLE. *ret is what to hand to execve() from within working_dir. */
int program_find(struct arena *a, const char *command, const char *working_dir, const char *search_path, char **ret,
                 struct err *e) MUST_CHECK;
