#include "base/memory.h"
#include "base/blocks.h"

#include <malloc.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum {
    FEW_ARENAS = 4, /* each takes 64 MiB of address space */
    SMALL_STACK_BYTES = 2 << 20,
    WAIT_NS = 10 * 1000 * 1000,
    MOST_TRIES = 200,
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    KEEPS_BLOCKS = false, /* the next owner of a kept block would hide a use by the last one from the sanitizer */
#else
    KEEPS_BLOCKS = true,
#endif
};

static _Atomic(void *) reserve; /* an untouched mapping; NULL: released, or never obtained */

/* Reserves address space only: untouched pages cost no memory. */
static void *map(size_t n)
{
    void *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static bool take_reserve(void)
{
    void *fresh, *none = NULL;

    if (atomic_load(&reserve))
        return true;
    fresh = map(MEMORY_RESERVE_BYTES);
    if (fresh && !atomic_compare_exchange_strong(&reserve, &none, fresh))
        munmap(fresh, MEMORY_RESERVE_BYTES);
    return fresh != NULL;
}

static bool give_reserve(void)
{
    void *held = atomic_exchange(&reserve, NULL);

    if (held)
        munmap(held, MEMORY_RESERVE_BYTES);
    return held != NULL;
}

bool memory_has_room(size_t n)
{
    void *probe = take_reserve() ? map(n ? n : 1) : NULL;

    if (!probe && blocks_drop())
        return memory_has_room(n);
    if (probe)
        munmap(probe, n ? n : 1);
    return probe != NULL;
}

bool memory_wait(unsigned *n_tries)
{
    const struct timespec pause = { .tv_nsec = WAIT_NS };

    if (blocks_drop() || give_reserve())
        return true;
    if (++*n_tries > MOST_TRIES)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

int memory_refuse(struct err *e)
{
    return err_set(e, -ENOMEM, "OUT_OF_MEMORY",
                   "The service has no memory for this request now: try again in a moment, or send less at a time.");
}

/* Thread stacks and malloc's arenas take address space that stays unused; under a limit of address space, requests need
 * it. */
static void be_modest(void)
{
    pthread_attr_t attr;

    mallopt(M_ARENA_MAX, FEW_ARENAS);
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, SMALL_STACK_BYTES) == 0)
        pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
}

/* By default glibc raises its mmap threshold when a large block is freed, and then keeps such blocks. */
void memory_set_up(void)
{
    struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

    mallopt(M_MMAP_THRESHOLD, MEMORY_OWN_PAGES_BYTES);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        be_modest();
    else if (KEEPS_BLOCKS)
        blocks_set_up();
    take_reserve();
}
