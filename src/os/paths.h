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
