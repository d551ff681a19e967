/* Where the service keeps its data. Any thread; reads the environment only. The caller that needs the folder makes it
 * with dir_make() (0700).
 *
 *     r = paths_data_dir(arena, options.data, &data_dir, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* The first of these that is set: flag, $HEARTH_DATA, $XDG_DATA_HOME/hearth, $HOME/.local/share/hearth, the same below
 * the home folder in the password database. Always absolute. -ENOENT when none is set. */
int paths_data_dir(struct arena *a, const char *flag, char **ret, struct err *e) MUST_CHECK;
/* The folder that this is when neither the flag nor $HEARTH_DATA nor $XDG_DATA_HOME says anything: the same for every
 * program of the user, whatever its environment. NULL when there is no home folder. */
char *paths_plain_data_dir(struct arena *a);
/* $XDG_CONFIG_HOME, or ~/.config. -ENOENT NO_HOME. */
int paths_config_dir(struct arena *a, char **ret, struct err *e) MUST_CHECK;
/* The program file of this process, with links followed. -ENOENT when it was removed or replaced. */
int paths_program(struct arena *a, char **ret, struct err *e) MUST_CHECK;
/* The folder that this file was started from, also when the file was removed or replaced since, as by an upgrade. */
const char *paths_program_dir(struct arena *a);
