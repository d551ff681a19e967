#include "llm/ring.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct llm_ring_event {
    struct llm_ring_event *next;
    int64_t number;
    size_t n;
    char bytes[];
};

static void drop_first(struct llm_ring *ring)
{
    struct llm_ring_event *gone = ring->first;

    ring->first = gone->next;
    if (!ring->first)
        ring->last = NULL;
    ring->n_bytes -= gone->n;
    free(gone);
}

void llm_ring_clear(struct llm_ring *ring)
{
    while (ring->first)
        drop_first(ring);
}

bool llm_ring_is_full(const struct llm_ring *ring)
{
    return ring->n_bytes >= LIMIT_RING_BYTES / 2;
}

void llm_ring_add(struct llm_ring *ring, struct slice event)
{
    struct llm_ring_event *added = xcalloc(1, sizeof(*added) + event.n);

    added->number = ++ring->n_events;
    added->n = event.n;
    if (event.n > 0)
        memcpy(added->bytes, event.p, event.n);
    if (ring->last)
        ring->last->next = added;
    else
        ring->first = added;
    ring->last = added;
    ring->n_bytes += event.n;
    while (ring->n_bytes > LIMIT_RING_BYTES && ring->first != ring->last)
        drop_first(ring);
}

int llm_ring_replay(const struct llm_ring *ring, int64_t after, struct buf *out)
{
    if (after < 0 || after > ring->n_events || (ring->first && after + 1 < ring->first->number))
        return -ENOENT;
    for (const struct llm_ring_event *event = ring->first; event; event = event->next)
        if (event->number > after)
            buf_add(out, event->bytes, event->n);
    return 0;
}
