#include "base/json_names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 8, FIRST_SLOTS = 16 };

static int compare_names(struct slice one, struct slice other)
{
    size_t n = MIN(one.n, other.n);
    int order = n > 0 ? memcmp(one.p, other.p, n) : 0;

    return order ? order : one.n < other.n ? -1 : one.n > other.n;
}

static struct slice name_at(const struct json_names *names, size_t at)
{
    const struct json_value v = { names->doc, at };

    return names->are_members ? json_name_of(v) : json_string(v);
}

static int by_name(const void *one, const void *other, void *arg)
{
    size_t a = *(const size_t *)one, b = *(const size_t *)other;
    int order = compare_names(name_at(arg, a), name_at(arg, b));

    return order ? order : a < b ? -1 : a > b;
}

struct json_names json_names_of(struct arena *a, struct json_value v)
{
    bool is_array = json_type(v) == JSON_ARRAY;
    struct json_names names = { v.doc, arena_array(a, json_length(v) + 1, sizeof(*names.at)), 0, !is_array };
    struct json_value item;

    for (struct json_iter it = json_iter(v); json_next(&it, NULL, &item);)
        if (!is_array || json_type(item) == JSON_STRING)
            names.at[names.n++] = item.at;
    qsort_r(names.at, names.n, sizeof(*names.at), by_name, &names);
    return names;
}

struct json_value json_names_get(const struct json_names *names, struct slice name)
{
    size_t low = 0, high = names->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_names(name_at(names, names->at[middle]), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == names->n || !slice_eq(name_at(names, names->at[low]), name))
        return (struct json_value){ 0 };
    return (struct json_value){ names->doc, names->at[low] };
}

/* ---- an index over many containers ---- */

struct slot {
    struct json_value of;
    struct json_names names;
};

struct json_index {
    struct arena *arena; /* borrowed */
    struct slot *slots;  /* in the arena; a power of two of them, at most half in use */
    size_t n, n_slots;
};

struct json_index *json_index_new(struct arena *a)
{
    struct json_index *index = ARENA_NEW(a, struct json_index);

    index->arena = a;
    return index;
}

/* The slot of v, or the free slot where v belongs. */
static struct slot *find_slot(const struct json_index *index, struct json_value v)
{
    uint64_t mixed = ((uint64_t)v.at ^ (uint64_t)(uintptr_t)v.doc) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(mixed >> 32);

    for (;; at++) {
        struct slot *slot = &index->slots[at & (index->n_slots - 1)];

        if (!slot->of.doc || (slot->of.doc == v.doc && slot->of.at == v.at))
            return slot;
    }
}

static void grow(struct json_index *index)
{
    const struct slot *old = index->slots;
    size_t n_old = index->n_slots;

    index->n_slots = n_old ? 2 * n_old : FIRST_SLOTS;
    index->slots = arena_array(index->arena, index->n_slots, sizeof(*index->slots));
    for (size_t i = 0; i < n_old; i++)
        if (old[i].of.doc)
            *find_slot(index, old[i].of) = old[i];
}

static const struct json_names *names_of(struct json_index *index, struct json_value v)
{
    struct slot *slot;

    if (2 * index->n >= index->n_slots)
        grow(index);
    slot = find_slot(index, v);
    if (!slot->of.doc) {
        *slot = (struct slot){ v, json_names_of(index->arena, v) };
        index->n++;
    }
    return &slot->names;
}

/* A container with few elements is searched linearly. */
static struct json_value find_among_few(struct json_value v, struct slice name)
{
    bool is_array = json_type(v) == JSON_ARRAY;
    struct json_value item;
    struct slice key;

    for (struct json_iter it = json_iter(v); json_next(&it, &key, &item);)
        if (is_array ? json_type(item) == JSON_STRING && slice_eq(json_string(item), name) : slice_eq(key, name))
            return item;
    return (struct json_value){ 0 };
}

struct json_value json_index_get(struct json_index *index, struct json_value v, struct slice name)
{
    return json_length(v) <= SMALL ? find_among_few(v, name) : json_names_get(names_of(index, v), name);
}
