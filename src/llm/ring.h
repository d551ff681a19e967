/* The last events of a stream, numbered from 1, so that a client that was cut off can go on behind the last one it saw.
 *
 * Embedded in its owner. Keeps at most LIMIT_RING_BYTES; the oldest leave first, when the owner lets them. One thread.
 */
#pragma once

#include "base/buf.h"

struct llm_ring_event;

struct llm_ring {
    struct llm_ring_event *first, *last;        /* owned */
    int64_t n_events;                   /* ever added: the number of the last one */
    size_t n_bytes;
};

void llm_ring_clear(struct llm_ring *ring);
void llm_ring_add(struct llm_ring *ring, struct slice event);
/* Above half: the owner who wants to lose nothing stops now, and what is on its way still fits. */
bool llm_ring_is_full(const struct llm_ring *ring);
/* Everything behind the event of this number (0: from the start) into out. -ENOENT when some of it has left already, or was never there. */
int llm_ring_replay(const struct llm_ring *ring, int64_t after, struct buf *out) MUST_CHECK;
