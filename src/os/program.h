/* Finds the program of a command; when it cannot run, the error says in one sentence what to do. Any thread; blocking.
 *
 *     r = program_find(arena, "uvx", working_dir, path_of_the_child, &path, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Without a slash the command is looked up in search_path (colons between; only absolute folders count; NULL: the
 * system's usual ones). With a slash the command is relative to working_dir (NULL: the service's). -ENOENT
 * COMMAND_NOT_FOUND, -EACCES COMMAND_NOT_EXECUTABLE. *ret is the path to pass to execve() inside working_dir. */
int program_find(struct arena *a, const char *command, const char *working_dir, const char *search_path, char **ret,
                 struct err *e) MUST_CHECK;
