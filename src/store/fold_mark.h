/* Whether a checkpoint, of this or any other program, has written into a database file. In WAL mode nothing else writes
 * the file itself, so its times and size tell. Any thread.
 *
 *     struct fold_mark mark = fold_mark_of(path);
 *     ...
 *     if (!fold_mark_holds(&mark, path))         written since, or unknown
 */
#pragma once

#include "base/util.h"

#include <time.h>

struct fold_mark {
    struct timespec written_at;
    int64_t n_bytes;
    bool is_usable; /* false: no file, or written so recently that another write may leave the same times */
};

struct fold_mark fold_mark_of(const char *path);
bool fold_mark_holds(const struct fold_mark *mark, const char *path);
