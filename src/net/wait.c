#include "net/wait.h"

#include "base/clock.h"

#include <poll.h>

enum { LOOK_MS = 50 }; /* interval at which the flags are checked */

struct net_wait net_wait_of(int64_t total_ms, const atomic_bool *is_gone, const atomic_bool *is_leaving)
{
    return (struct net_wait){ total_ms, clock_mono_ms() + total_ms, is_gone, is_leaving, NULL, NULL };
}

struct net_wait net_wait_part(const struct net_wait *w, int64_t total_ms)
{
    struct net_wait part = net_wait_of(total_ms, w->is_gone, w->is_leaving);

    part.holder = w->holder;
    part.quiet_until_ms = w->quiet_until_ms;
    return part.deadline_ms < w->deadline_ms ? part : *w;
}

static bool is_set(const atomic_bool *flag)
{
    return flag && atomic_load(flag);
}

int64_t net_wait_left(const struct net_wait *w, struct err *e)
{
    int64_t now_ms = clock_mono_ms(), left_ms = w->deadline_ms - now_ms, quiet_ms;

    if (is_set(w->is_gone) || is_set(w->is_leaving))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    if (left_ms <= 0)
        return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "It took longer than %g seconds in all.",
                       (double)w->total_ms / 1e3);
    quiet_ms = w->quiet_until_ms ? atomic_load(w->quiet_until_ms) - now_ms : left_ms;
    if (quiet_ms <= 0)
        return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "Nothing was heard for too long.");
    return MIN(left_ms, quiet_ms);
}

int net_wait_fds(const struct net_wait *w, struct pollfd *fds, size_t n_fds, struct err *e)
{
    int64_t left_ms;
    int n = 0;

    while (n == 0) {
        left_ms = net_wait_left(w, e);
        if (left_ms < 0)
            return (int)left_ms;
        n = poll(fds, n_fds, (int)MIN(left_ms, (int64_t)LOOK_MS));
        if (n < 0 && errno == EINTR)
            n = 0;
        if (n < 0)
            return err_errno(e, errno, "A connection cannot be waited for");
    }
    return 0;
}

int net_wait_fd(const struct net_wait *w, int fd, short events, struct err *e)
{
    struct pollfd waited = { .fd = fd, .events = events };

    return net_wait_fds(w, &waited, 1, e);
}
