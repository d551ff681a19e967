/* Where the service keeps its data. Any thread; reads the environment only. The folder is made with dir_make() (0700) by
 * who needs it.
 *
 *     r = paths_data_dir(arena, options.data, &data_dir, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* The first that is given of: flag, $HEARTH_DATA, $XDG_DATA_HOME/hearth, $HOME/.local/share/hearth, the same below the home
 * folder of the password database. Always absolute. -ENOENT when none is. */
int paths_data_dir(struct arena *a, const char *flag, char **ret, struct err *e) MUST_CHECK;
