#include "base/secret.h"

#include <sodium.h>
#include <sys/mman.h>

void *secret_new(size_t n)
{
    void *p = sodium_malloc(n);

    if (p)
        sodium_memzero(p, n);
    return p;
}

void secret_freeze(void *p)
{
    sodium_mprotect_readonly(p);
}

void *secret_free(void *p)
{
    sodium_free(p);
    return NULL;
}

bool secret_is_locked(void *p, size_t n)
{
    return mlock(p, n) == 0;
}

void secret_wipe(void *p, size_t n)
{
    sodium_memzero(p, n);
}
