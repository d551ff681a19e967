#include "llm/ring.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

/* Each event: its length, then its bytes. */
struct llm_ring_block {
    struct llm_ring_block *next;
    size_t at; /* the first event that is not dropped */
    size_t n, size;
    char bytes[];
};

enum { BLOCK_ROOM = RING_BLOCK_BYTES - sizeof(struct llm_ring_block) };

static void drop_block(struct llm_ring *ring)
{
    struct llm_ring_block *gone = ring->first;

    ring->first = gone->next;
    if (!ring->first)
        ring->last = NULL;
    ring->n_blocks--;
    free(gone);
}

void llm_ring_clear(struct llm_ring *ring)
{
    while (ring->first)
        drop_block(ring);
    ring->n_held = 0;
    ring->n_bytes = 0;
}

bool llm_ring_is_full(const struct llm_ring *ring)
{
    return ring->n_bytes >= LIMIT_RING_BYTES / 2;
}

/* The event at *at, which moves behind it. */
static struct slice take_event(const struct llm_ring_block *block, size_t *at)
{
    struct slice event = { block->bytes + *at + sizeof(event.n), 0 };

    memcpy(&event.n, block->bytes + *at, sizeof(event.n));
    *at += sizeof(event.n) + event.n;
    return event;
}

static void drop_event(struct llm_ring *ring)
{
    struct llm_ring_block *block = ring->first;

    ring->n_bytes -= take_event(block, &block->at).n;
    ring->n_held--;
    if (block->at == block->n)
        drop_block(ring);
}

/* An event larger than a block gets one of its own size. */
static void add_block(struct llm_ring *ring, size_t n)
{
    size_t size = MAX(n, (size_t)BLOCK_ROOM);
    struct llm_ring_block *added = xcalloc(1, sizeof(*added) + size);

    added->size = size;
    if (ring->last)
        ring->last->next = added;
    else
        ring->first = added;
    ring->last = added;
    ring->n_blocks++;
}

void llm_ring_add(struct llm_ring *ring, struct slice event)
{
    size_t n = sizeof(event.n) + event.n;
    struct llm_ring_block *block;

    if (!ring->last || ring->last->size - ring->last->n < n)
        add_block(ring, n);
    block = ring->last;
    memcpy(block->bytes + block->n, &event.n, sizeof(event.n));
    if (event.n > 0)
        memcpy(block->bytes + block->n + sizeof(event.n), event.p, event.n);
    block->n += n;
    ring->n_bytes += event.n;
    ring->n_events++;
    ring->n_held++;
    while (ring->n_bytes > LIMIT_RING_BYTES && ring->n_held > 1)
        drop_event(ring);
}

int llm_ring_replay(const struct llm_ring *ring, int64_t after, struct buf *out)
{
    int64_t number = ring->n_events - ring->n_held;

    if (after < number || after > ring->n_events)
        return -ENOENT;
    for (const struct llm_ring_block *block = ring->first; block; block = block->next)
        for (size_t at = block->at; at < block->n;) {
            struct slice event = take_event(block, &at);

            if (++number > after)
                buf_add_slice(out, event);
        }
    return 0;
}
