#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NAME_SIZE = 16,       /* the kernel's limit, with NUL */
    SLICE_NS = 100000,    /* the shortest that Linux gives */
    KEEP_POLICY_FLAG = 8, /* SCHED_FLAG_KEEP_POLICY of sched_setattr(2) */
};

static int create(pthread_t *ret, size_t stack_bytes, void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t attr;
    int r;

    pthread_attr_init(&attr);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    r = pthread_create(ret, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return r;
}

int thread_start_sized(pthread_t *ret, const char *name, size_t stack_bytes, void *(*fn)(void *arg), void *arg)
{
    char shown[NAME_SIZE];
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = create(ret, stack_bytes, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0)
        return -r;
    snprintf(shown, sizeof(shown), "%s", name);
    pthread_setname_np(*ret, shown);
    return 0;
}

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg)
{
    return thread_start_sized(ret, name, 0, fn, arg);
}

/* struct sched_attr of the kernel, whose header and the library's do not go together. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice_ns, deadline_ns, period_ns;
};

/* Of the calling thread. What fails is left as it is: threads work either way. */
static void schedule(int policy, uint64_t flags, int least_nice)
{
    int nice = MAX(getpriority(PRIO_PROCESS, 0), least_nice);
    struct scheduling attr = {
        .size = sizeof(attr), .policy = (uint32_t)policy, .flags = flags, .nice = nice, .slice_ns = SLICE_NS
    };

    if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0 && setpriority(PRIO_PROCESS, 0, nice) < 0)
        return;
}

void thread_give_way(int least_nice)
{
    schedule(0, KEEP_POLICY_FLAG, least_nice);
}

void thread_preempt_none(int least_nice)
{
    schedule(SCHED_BATCH, 0, least_nice);
}
