#include "os/few_files.h"

#include "base/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LEAST_FILES = 64,
    FEW_FILES = 256,
    FEW_THREADS = 2,
    FEW_IDLE_MS = 100,
};

static rlim_t most_files(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? RLIM_INFINITY : limit.rlim_cur;
}

/* Descriptors are given out from the lowest number, so the free ones are found soonest from the highest. */
static size_t count_free(size_t most)
{
    rlim_t limit = most_files();
    size_t n = 0;

    if (limit == RLIM_INFINITY)
        return most;
    for (rlim_t fd = limit; fd-- > 0 && n < most;)
        n += fcntl((int)fd, F_GETFD) < 0;
    return n;
}

void few_files_reserve(size_t most)
{
    rlim_t last = MIN(most_files(), (rlim_t)most) - 1;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)last);

    if (fd >= 0)
        close(fd);
}

size_t few_files_room(size_t most)
{
    size_t n = count_free(LIMIT_FREE_FILES + most * LIMIT_START_FILES);

    return n < LIMIT_FREE_FILES ? 0 : (n - LIMIT_FREE_FILES) / LIMIT_START_FILES;
}

int few_files_admit(struct err *e)
{
    if (few_files_room(1) > 0)
        return 0;
    return err_set(e, -EMFILE, "TOO_FEW_FILES",
                   "Fewer than %d descriptors are free, of which %d are for requests: raise the limit (`ulimit -n`, "
                   "LimitNOFILE= of systemd).",
                   LIMIT_FREE_FILES + LIMIT_START_FILES, LIMIT_FREE_FILES);
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
