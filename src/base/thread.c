#include "base/thread.h"

#include <signal.h>

enum { NAME_SIZE = 16 }; /* the kernel's limit, with NUL */

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg)
{
    char shown[NAME_SIZE];
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0)
        return -r;
    snprintf(shown, sizeof(shown), "%s", name);
    pthread_setname_np(*ret, shown);
    return 0;
}
