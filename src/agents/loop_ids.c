/* The ids of all calls of a conversation, as hashes in an open table: equal hashes of different ids only cost a new id.
 */
#include "agents/loop_private.h"

#include "base/hash.h"
#include "base/uuid.h"

static uint64_t hash_of(const char *id)
{
    uint64_t hash = hash_fast(slice_of(id));

    return hash ? hash : 1;
}

static bool put(struct loop_ids *ids, uint64_t hash)
{
    size_t at = (size_t)hash & (ids->cap - 1);

    while (ids->slots[at] != 0 && ids->slots[at] != hash)
        at = (at + 1) & (ids->cap - 1);
    if (ids->slots[at] == hash)
        return false;
    ids->slots[at] = hash;
    ids->n++;
    return true;
}

/* At most half of the slots are taken. */
static void make_room(struct loop_ids *ids, struct arena *a)
{
    struct loop_ids old = *ids;

    if (2 * (ids->n + 1) <= ids->cap)
        return;
    *ids = (struct loop_ids){ .cap = old.cap ? 2 * old.cap : 64 };
    ids->slots = arena_array(a, ids->cap, sizeof(*ids->slots));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            put(ids, old.slots[i]);
}

void loop_ids_note(struct loop_ids *ids, struct arena *a, const char *id)
{
    make_room(ids, a);
    put(ids, hash_of(id));
}

const char *loop_ids_take(struct loop_ids *ids, struct arena *a, const char *id)
{
    char own[UUID_SIZE];

    make_room(ids, a);
    if (put(ids, hash_of(id)))
        return id;
    uuid_v4(own);
    id = arena_printf(a, "call_%s", own);
    put(ids, hash_of(id));
    return id;
}
