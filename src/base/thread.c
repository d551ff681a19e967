#include "base/thread.h"

#include <signal.h>

enum { NAME_SIZE = 16 }; /* the kernel's limit, with NUL */

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
