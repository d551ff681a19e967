/* One metadata key of a namespace's rows: for each slot the number of one of the distinct values. For columns.c. */
#pragma once

#include "vector/engine/slab.h"
#include "vector/vector_filter.h"

enum { COLUMN_UNKNOWN = 0, COLUMN_ABSENT = 1, COLUMN_FIRST = 2 /* of the values */ };

struct column {
    struct column *next; /* of struct columns */
    char *key;           /* owned */
    bool is_wanted;      /* by the present filter */
    uint32_t *slots;     /* owned; by slot: COLUMN_UNKNOWN, COLUMN_ABSENT, or the number of a value */
    size_t n_slots, cap_slots;
    uint32_t *moved; /* owned; the same in the order of another slab, until column_move(); NULL: none */
    size_t n_moved, cap_moved;
    struct buf values; /* JSON texts, each followed by a comma */
    size_t n_values;
    size_t *ends;    /* owned; of each text in values */
    uint32_t *table; /* owned; by hash of text: number of a value, 0 for none */
    size_t table_size;
    struct arena *parsed;   /* owned; of `list` */
    struct json_value list; /* the first n_parsed values */
    size_t n_parsed;
};

struct column *column_new(const char *key) MUST_CHECK;
struct column *column_free(struct column *c);
size_t column_bytes(const struct column *c);
/* Sets the value of a slot at or after n_slots; slots in between are unknown. -E2BIG beyond LIMIT_VECTOR_COLUMN_BYTES.
 */
int column_set(struct column *c, size_t slot, struct json_value metadata) MUST_CHECK;
/* Makes n_slots at least n. */
void column_extend(struct column *c, size_t n);
/* The moved slots take the place of the first n_before; later ones keep their order behind them. */
void column_move(struct column *c, size_t n_before);
/* Clears the bits of slots for which the condition does not hold. -ESTALE when a slot with a bit is unknown. */
int column_apply(struct column *c, const struct vector_condition *condition, uint64_t *mask, size_t n) MUST_CHECK;
