/* Values of metadata keys by row, so that filters are decided in memory. A key's column is made when a filter first names
 * it, from the file, and kept up with the rows; a row's metadata never changes (an upsert makes a new row).
 *
 * One struct a namespace; its lock is held while a column is made or used. Columns stand for the slots of one slab and
 * are forgotten with it.
 *
 *     r = columns_match(c, db, &view, &of, &filter, mask, &n, e);
 */
#pragma once

#include "store/vectors_db.h"
#include "vector/slab.h"
#include "vector/vector_filter.h"

#include <pthread.h>

struct column;

struct columns {
    pthread_mutex_t lock;
    uint64_t slab_serial;               /* of the slab they stand for; 0: none */
    struct column *first;               /* owned; used last first */
    atomic_size_t *account;             /* borrowed */
};

void columns_init(struct columns *c, atomic_size_t *account);
void columns_clear(struct columns *c);
void columns_forget(struct columns *c); /* frees all of them */

/* Sets the bits of the view's live rows that match in mask (view->n bits, zero before) and counts them. -ESTALE when the
 * file no longer has a row of the view; -E2BIG when a key has more values than memory is kept for (LIMIT_VECTOR_COLUMN_BYTES).
 * Inside vectors_db_begin/end. */
int columns_match(struct columns *c, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
                  const struct vector_filter *filter, uint64_t *mask, size_t *ret_n, struct err *e) MUST_CHECK;
