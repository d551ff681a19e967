#include "store/fold_mark.h"
#include "base/clock.h"

#include <sys/stat.h>

/* The kernel's clock of file times ticks every 10 ms at most; some file systems keep whole seconds, or two. */
enum { TICK_MS = 20, COARSE_TICK_MS = 2000 };

struct fold_mark fold_mark_of(const char *path)
{
    struct fold_mark mark = { 0 };
    int64_t age_ms;
    struct stat st;

    if (stat(path, &st) < 0)
        return mark;
    mark.written_at = st.st_mtim;
    mark.n_bytes = st.st_size;
    age_ms = clock_wall_ms() - (int64_t)st.st_mtim.tv_sec * 1000 - st.st_mtim.tv_nsec / 1000000;
    mark.is_usable = age_ms > (st.st_mtim.tv_nsec ? TICK_MS : COARSE_TICK_MS);
    return mark;
}

bool fold_mark_holds(const struct fold_mark *mark, const char *path)
{
    struct stat st;

    return mark->is_usable && stat(path, &st) == 0 && st.st_size == mark->n_bytes &&
           st.st_mtim.tv_sec == mark->written_at.tv_sec && st.st_mtim.tv_nsec == mark->written_at.tv_nsec;
}
