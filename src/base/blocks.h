/* Keeps a few large blocks of the heap after they were freed, for the next request that needs such a block.
 *
 * The system adds and clears each page of a new block at the first write to it, which takes longer than copying the
 * body of a request into it. Until blocks_set_up() no block is kept. Any thread.
 *
 *     block = block_take(n, &n_usable);
 *     if (!block)
 *         block = malloc(n);
 *     ...
 *     block_free(block);
 */
#pragma once

#include "base/memory.h"

enum {
    BLOCK_LEAST_BYTES = MEMORY_OWN_PAGES_BYTES, /* smaller blocks are reused by malloc() itself */
    BLOCKS_MOST_BYTES = 8 << 20,                /* kept in all */
    BLOCKS_MOST = 16,
};

/* Call before other threads run, after mallopt(). */
void blocks_set_up(void);
/* The smallest kept block of n bytes up to a quarter more, and its size; or NULL. A much larger one is not taken: its
 * pages are all in memory, and budgets count what a request uses. Its content is arbitrary. The block is one of
 * malloc().
 */
void *block_take(size_t n, size_t *ret_n);
/* Like free(); NULL is fine. */
void block_free(void *block);
/* Frees the blocks that were kept before the last call as well. Call at intervals. */
void blocks_drop_idle(void);
/* Frees all, for a shortage of memory. False: there was none. */
bool blocks_drop(void);
