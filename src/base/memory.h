/* Handles a shortage of memory: under a limit of address space (ulimit -v, RLIMIT_AS), or when the system refuses to
 * overcommit more.
 *
 * When a small allocation fails, the reserve is released for it; then it waits briefly until others free memory
 * (xcalloc(), xrealloc() and xstrdup() do this). A large request checks first whether its memory is available, and is
 * answered 503 OUT_OF_MEMORY when it is not. Any thread.
 *
 *     if (!memory_has_room(n_bytes))
 *         return memory_refuse(e);
 */
#pragma once

#include "base/err.h"

enum {
    MEMORY_RESERVE_BYTES = 32 << 20,    /* held for small allocations */
    MEMORY_SPARE_BYTES = 96 << 20,      /* what arriving bodies leave for running requests */
    MEMORY_LARGE_BYTES = 64 << 10,      /* from this size, an allocation for a request may be refused */
    MEMORY_OWN_PAGES_BYTES = 256 << 10, /* an allocation from this size has pages of its own, returned when freed */
};

/* Call before other threads run. Freed large blocks are returned to the system, some of them after a while
 * (base/blocks.h); under a limit of address space all at once, and threads take less of it. */
void memory_set_up(void);
/* Whether n more bytes are available in addition to the reserve. */
bool memory_has_room(size_t n);
/* Call after a failed allocation; true: try again. *n_tries counts the tries and starts at 0. */
bool memory_wait(unsigned *n_tries) MUST_CHECK;
/* -ENOMEM OUT_OF_MEMORY. */
int memory_refuse(struct err *e) MUST_CHECK;
