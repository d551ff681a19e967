#include "vector/engine/column.h"
#include "base/hash.h"
#include "base/limits.h"
#include <stdlib.h>
#include <string.h>

enum { COLUMN_FIRST_TABLE = 64, COLUMN_FIRST_SLOTS = 1024 };

struct column *column_new(const char *key)
{
    struct column *c = xcalloc(1, sizeof(*c));

    c->key = xstrdup(key);
    buf_init(&c->values, LIMIT_VECTOR_COLUMN_BYTES);
    return c;
}

struct column *column_free(struct column *c)
{
    if (!c)
        return NULL;
    arena_free(c->parsed);
    buf_clear(&c->values);
    free(c->slots);
    free(c->moved);
    free(c->ends);
    free(c->table);
    free(c->key);
    free(c);
    return NULL;
}

size_t column_bytes(const struct column *c)
{
    return c->cap_slots * sizeof(*c->slots) + c->values.cap + c->table_size * (sizeof(*c->table) + sizeof(*c->ends));
}

/* --- distinct values --- */

static struct slice text_of(const struct column *c, size_t i)
{
    size_t from = i > 0 ? c->ends[i - 1] + 1 : 0; /* after the comma */

    return (struct slice){ c->values.p + from, c->ends[i] - from };
}

/* The text's place in the table, or the free place where the text belongs. */
static uint32_t *place_of(const struct column *c, struct slice text)
{
    size_t at = hash_fast(text) & (c->table_size - 1);

    while (c->table[at] && !slice_eq(text_of(c, c->table[at] - COLUMN_FIRST), text))
        at = (at + 1) & (c->table_size - 1);
    return &c->table[at];
}

static void grow_table(struct column *c)
{
    c->table_size = c->table_size ? 2 * c->table_size : COLUMN_FIRST_TABLE;
    free(c->table);
    c->table = xcalloc(c->table_size, sizeof(*c->table));
    c->ends = xrealloc(c->ends, c->table_size * sizeof(*c->ends));
    for (size_t i = 0; i < c->n_values; i++)
        *place_of(c, text_of(c, i)) = (uint32_t)(i + COLUMN_FIRST);
}

static int add_value(struct column *c, struct slice text, uint32_t *ret)
{
    uint32_t *place;

    if (2 * (c->n_values + 1) > c->table_size)
        grow_table(c);
    place = place_of(c, text);
    if (!*place) {
        buf_add_slice(&c->values, text);
        buf_add_char(&c->values, ',');
        if (c->values.overflowed)
            return -E2BIG;
        c->ends[c->n_values++] = c->values.n - 1;
        *place = (uint32_t)(c->n_values - 1 + COLUMN_FIRST);
    }
    *ret = *place;
    return 0;
}

/* No condition compares arrays or objects, so all of them count as one value. */
static int number_of(struct column *c, struct json_value value, uint32_t *ret)
{
    struct buf text;
    int r;

    *ret = COLUMN_ABSENT;
    if (json_is_absent(value))
        return 0;
    if (json_type(value) == JSON_ARRAY || json_type(value) == JSON_OBJECT)
        return add_value(c, SLICE_LIT("[]"), ret);
    buf_init(&text, 8 * LIMIT_VECTOR_METADATA); /* escapes are longer than the escaped characters */
    json_print(&text, value);
    r = add_value(c, buf_slice(&text), ret);
    buf_clear(&text);
    return r;
}

/* --- slots --- */

void column_extend(struct column *c, size_t n)
{
    if (n > c->cap_slots) {
        c->cap_slots = MAX(MAX(n, 2 * c->cap_slots), (size_t)COLUMN_FIRST_SLOTS);
        c->slots = xrealloc(c->slots, c->cap_slots * sizeof(*c->slots));
    }
    for (; c->n_slots < n; c->n_slots++)
        c->slots[c->n_slots] = COLUMN_UNKNOWN;
}

int column_set(struct column *c, size_t slot, struct json_value metadata)
{
    uint32_t number = COLUMN_UNKNOWN;
    int r = number_of(c, json_get(metadata, c->key), &number);

    if (r < 0)
        return r;
    column_extend(c, MAX(slot + 1, c->n_slots));
    c->slots[slot] = number;
    return 0;
}

void column_move(struct column *c, size_t n_before)
{
    size_t n_later = c->n_slots - n_before;

    if (c->n_moved + n_later > c->cap_moved) {
        c->cap_moved = c->n_moved + n_later;
        c->moved = xrealloc(c->moved, c->cap_moved * sizeof(*c->moved));
    }
    memcpy(c->moved + c->n_moved, c->slots + n_before, n_later * sizeof(*c->slots));
    free(c->slots);
    c->slots = TAKE(c->moved);
    c->n_slots = c->n_moved + n_later;
    c->cap_slots = c->cap_moved;
    c->n_moved = c->cap_moved = 0;
}

/* --- conditions --- */

/* Parses the distinct values as JSON, again when there are new values. */
static int parse_values(struct column *c)
{
    struct buf text;
    int r;

    if (c->n_parsed == c->n_values)
        return 0;
    c->parsed = arena_free(c->parsed);
    c->parsed = arena_new();
    buf_init(&text, c->values.n + 2);
    buf_add_char(&text, '[');
    buf_add(&text, c->values.p, c->values.n - 1);
    buf_add_char(&text, ']');
    r = json_parse(c->parsed, buf_slice(&text), &c->list, NULL);
    buf_clear(&text);
    if (r == 0)
        c->n_parsed = c->n_values;
    return r;
}

enum { HOLDS = 1, IS_UNKNOWN = 2 };

/* What the condition makes of each value number. */
static uint8_t *decide(struct column *c, const struct vector_condition *condition)
{
    uint8_t *verdicts = xcalloc(c->n_values + COLUMN_FIRST, sizeof(*verdicts));
    struct json_value value;
    size_t i = COLUMN_FIRST;

    verdicts[COLUMN_UNKNOWN] = IS_UNKNOWN;
    verdicts[COLUMN_ABSENT] = vector_condition_holds(condition, (struct json_value){ 0 }) ? HOLDS : 0;
    for (struct json_iter it = json_iter(c->list); c->n_values && json_next(&it, NULL, &value); i++)
        verdicts[i] = vector_condition_holds(condition, value) ? HOLDS : 0;
    return verdicts;
}

/* The rows of a block whose verdicts have the flag HOLDS; ret_unknown: those with IS_UNKNOWN. */
static uint64_t rows_that_hold(const uint8_t *verdicts, const uint32_t *numbers, size_t n, uint64_t *ret_unknown)
{
    uint64_t bits = 0, unknown = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t verdict = verdicts[numbers[i]];

        bits |= (verdict & HOLDS) << i;
        unknown |= (verdict >> 1) << i;
    }
    *ret_unknown = unknown;
    return bits;
}

int column_apply(struct column *c, const struct vector_condition *condition, uint64_t *mask, size_t n)
{
    uint64_t all_unknown = 0;
    uint8_t *verdicts;
    int r = parse_values(c);

    if (r < 0)
        return r;
    verdicts = decide(c, condition);
    for (size_t base = 0; base < n; base += SLAB_BLOCK_ROWS) {
        uint64_t *word = &mask[base / SLAB_BLOCK_ROWS], unknown, bits;

        if (*word == 0)
            continue;
        bits = rows_that_hold(verdicts, c->slots + base, MIN((size_t)SLAB_BLOCK_ROWS, n - base), &unknown);
        all_unknown |= *word & unknown;
        *word &= bits;
    }
    free(verdicts);
    return all_unknown ? -ESTALE : 0;
}
