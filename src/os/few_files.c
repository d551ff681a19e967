#include "os/few_files.h"

#include <sys/resource.h>

enum {
    LEAST_FILES = 48,
    FEW_FILES = 256,
    FEW_THREADS = 2,
    FEW_IDLE_MS = 100,
};

static rlim_t most_files(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? RLIM_INFINITY : limit.rlim_cur;
}

int few_files_check(struct err *e)
{
    rlim_t limit = most_files();

    if (limit >= LEAST_FILES)
        return 0;
    return err_set(e, -EMFILE, "TOO_FEW_FILES",
                   "The service may have %llu open files and needs at least %d: raise the limit (`ulimit -n`, "
                   "LimitNOFILE= of systemd).",
                   (unsigned long long)limit, LEAST_FILES);
}

void few_files_adapt(struct pool_config *c)
{
    if (most_files() >= FEW_FILES)
        return;
    c->n_min = 0;
    c->n_max = MIN(c->n_max, (size_t)FEW_THREADS);
    c->idle_ms = FEW_IDLE_MS;
}
