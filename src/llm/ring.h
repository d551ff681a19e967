/* The last events of a stream, numbered from 1, so that a client whose connection broke can continue after the last
 * event it saw.
 *
 * Embedded in its owner, zeroed at the start. Keeps at most LIMIT_RING_BYTES; beyond that the oldest events are
 * dropped, which the owner prevents by pausing when the ring is full. One thread.
 *
 * Events lie one behind the other in a few blocks with pages of their own, which the system gets back whole: hundreds
 * of streams with thousands of small allocations each would leave a heap that stays large.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"

enum { RING_BLOCK_BYTES = MEMORY_OWN_PAGES_BYTES }; /* untouched pages of a block cost no memory */

struct llm_ring_block;

struct llm_ring {
    struct llm_ring_block *first, *last; /* owned */
    int64_t n_events;                    /* ever added: the number of the last event */
    int64_t n_held;                      /* the last ones, not dropped */
    size_t n_bytes;                      /* of the events held */
    size_t n_blocks;
};

void llm_ring_clear(struct llm_ring *ring);
void llm_ring_add(struct llm_ring *ring, struct slice event);
/* More than half is used: an owner that must lose nothing pauses now; events already on their way still fit. */
bool llm_ring_is_full(const struct llm_ring *ring);
/* Writes every event after this number (0: from the start) into out. -ENOENT when one of them was dropped already, or
 * the number was never reached. */
int llm_ring_replay(const struct llm_ring *ring, int64_t after, struct buf *out) MUST_CHECK;
