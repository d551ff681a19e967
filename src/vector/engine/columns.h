/* Values of metadata keys by row, so that filters are evaluated in memory. A key's column is read from the file when a
 * filter first names the key, and then extended with new rows; a row's metadata never changes (an upsert makes a new
 * row).
 *
 * One struct for each namespace; its lock is held while a column is made or used. Columns belong to the slots of one
 * slab. When another slab takes its place, they are moved to that one's slots, or freed.
 *
 *     r = columns_match(c, &request, mask, &n, e);
 */
#pragma once

#include "store/vectors/vectors_db.h"
#include "vector/engine/slab.h"
#include "vector/vector_filter.h"

#include <pthread.h>

struct column;

struct columns {
    pthread_mutex_t lock;
    uint64_t slab_serial;   /* of the slab the columns belong to; 0: none */
    struct column *first;   /* owned; the last used first */
    atomic_size_t *account; /* borrowed */
};

void columns_init(struct columns *c, atomic_size_t *account);
void columns_clear(struct columns *c);
void columns_forget(struct columns *c); /* frees all of them */

struct columns_match_request {
    struct vectors_db *db; /* read for keys without a column */
    const struct slab_view *view;
    const struct vectors_db_space *of; /* the namespace in the file */
    const struct vector_filter *filter;
};
/* Sets in mask (view->n bits, zero before) the bits of the view's live rows that match, and counts them. -ESTALE when
 * the file no longer has a row of the view, or another slab has taken the place of the view's; -E2BIG when the values
 * of a key take more than LIMIT_VECTOR_COLUMN_BYTES. Inside vectors_db_begin/end. */
int columns_match(struct columns *c, const struct columns_match_request *request, uint64_t *mask, size_t *ret_n,
                  struct err *e) MUST_CHECK;

/* A new order of the view's live rows: the row in slot i of the new slab is in slot order[i] of the view's. */
struct columns_move {
    const struct slab_view *view;
    const uint32_t *order;
};
/* Before the exchange: extends the columns to all rows of the view, and makes their slots in the new order. */
void columns_extend(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                    const struct vectors_db_space *of);
void columns_prepare_move(struct columns *c, const struct columns_move *move);
/* With the exchange: between begin and end no query uses the columns, and the views that queries take change from one
 * slab to the other. The new slab has the view's live rows, and behind them all later ones of the old slab. false: a
 * query uses them for long; they are freed later. */
bool columns_begin_move(struct columns *c) MUST_CHECK;
void columns_end_move(struct columns *c, const struct columns_move *move, uint64_t slab_serial);
